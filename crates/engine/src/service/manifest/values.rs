//! Parsers for values with their own grammar (durations, ports, conditions).

use std::time::Duration;

use ostler_model::duration;
use ostler_model::{
    ByteString, Dependency, DependencyCondition, HealthRule, ReadyCondition, RestartPolicy,
};

use super::ManifestError;
use super::toml_value::TomlValue;
use crate::admission::service_plan as rules;
use ostler_model::PortRequest;

/// The most restarts where a policy sets no number.
pub(crate) const RESTARTS_DEFAULT: u32 = 5;

const DURATION: &str = "a duration in quotes: \"500ms\", \"5s\", \"2m\" or \"1h\"";
const READY: &str = "\"auto\", \"listening\", \"responding\", \"log\", \"notify\", \
                     { http = \"/health\" }, { tcp = 5432 }, { exec = [\"pg_isready\"] } or \
                     { quiet = \"5s\" }";
const PORT: &str = "a number from 1 to 65535, or \"auto\"";
const RESTART: &str = "\"never\", \"on-failure\", \"always\" or \
                       { policy = \"on-failure\", max = 5 }";
const HEALTH: &str = "a table with one of http, tcp, exec or probe (\"listening\" or \
                      \"responding\"), and interval, failures, restart";

/// Parses a duration into milliseconds.
pub(super) fn millis(item: &TomlValue<'_>) -> Result<u64, ManifestError> {
    let wrong = || item.invalid(DURATION);
    let text = item.str().ok_or_else(wrong)?.trim();
    let digits = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let duration = duration::parse_unit(number, unit.trim(), &duration::CLOCK_UNITS);
    let duration = duration.ok_or_else(wrong)?;
    if !rules::is_valid_duration(duration) {
        return Err(item.invalid(&format!("{DURATION}, more than 0 and at most a day")));
    }
    Ok(duration::as_millis(duration))
}

/// Parses a regular expression.
pub(super) fn expression(item: &TomlValue<'_>) -> Result<String, ManifestError> {
    let text = item.string("a regular expression, in quotes")?;
    rules::check_pattern(&text).map_err(|problem| item.refuse(&problem))?;
    Ok(text)
}

/// Parses a readiness condition.
pub(super) fn ready(item: &TomlValue<'_>) -> Result<ReadyCondition, ManifestError> {
    if let Some(word) = item.str() {
        return match word {
            "auto" => Ok(ReadyCondition::Auto),
            "listening" => Ok(ReadyCondition::Listening),
            "responding" => Ok(ReadyCondition::Responding),
            "log" => Ok(ReadyCondition::Log),
            "notify" => Ok(ReadyCondition::Notify),
            _ => Err(item.invalid(READY)),
        };
    }
    let section = item.table().ok_or_else(|| item.invalid(READY))?;
    let pattern = ["log", "pattern"]
        .into_iter()
        .find_map(|key| section.get(key));
    if let Some(pattern) = pattern {
        return Err(
            pattern.error("is no key: a line that reports it ready goes in 'ready_pattern'")
        );
    }
    section.reject_unknown_keys(&["http", "tcp", "exec", "quiet"])?;
    match (section.items().as_slice(), section.get("quiet")) {
        ([_], Some(quiet)) => Ok(ReadyCondition::Quiet {
            ms: millis(&quiet)?,
        }),
        ([(key, value)], None) => probe(key, value),
        _ => Err(item.invalid(READY)),
    }
}

/// Parses `http`, `tcp` or `exec` with its value.
fn probe(key: &str, value: &TomlValue<'_>) -> Result<ReadyCondition, ManifestError> {
    match key {
        "http" => {
            let target = value.string("a path (\"/health\") or a URL of this machine")?;
            rules::check_target(&target).map_err(|problem| value.refuse(&problem))?;
            Ok(ReadyCondition::Http { target })
        }
        "tcp" => {
            let number = value.number().and_then(|it| u16::try_from(it).ok());
            let port = number.filter(|port| *port > 0);
            let port = port.ok_or_else(|| value.invalid("a number from 1 to 65535"))?;
            Ok(ReadyCondition::Tcp { port })
        }
        _ => {
            const ALLOWED: &str = "a list: program and arguments";
            let argv: Vec<ByteString> = value
                .strings(ALLOWED)?
                .into_iter()
                .map(ByteString::from)
                .collect();
            if argv.first().is_none_or(ByteString::is_empty) {
                return Err(value.invalid(ALLOWED));
            }
            Ok(ReadyCondition::Exec { argv })
        }
    }
}

/// Parses a port request.
pub(super) fn port(item: &TomlValue<'_>) -> Result<PortRequest, ManifestError> {
    if item.str() == Some("auto") {
        return Ok(PortRequest::Lease);
    }
    let number = item.number().and_then(|it| u16::try_from(it).ok());
    let port = number.filter(|port| *port > 0);
    port.map(PortRequest::Fixed)
        .ok_or_else(|| item.invalid(PORT))
}

/// Parses a restart policy.
pub(super) fn restart(item: &TomlValue<'_>) -> Result<RestartPolicy, ManifestError> {
    let policy = |word: Option<&str>, max: u32| match word {
        Some("never") => Some(RestartPolicy::Never),
        Some("on-failure") => Some(RestartPolicy::OnFailure { max }),
        Some("always") => Some(RestartPolicy::Always { max }),
        Some(_) | None => None,
    };
    let found = match item.table() {
        None => policy(item.str(), RESTARTS_DEFAULT),
        Some(section) => {
            section.reject_unknown_keys(&["policy", "max"])?;
            let max = section.read("max", |it| {
                let number = it.number().and_then(|it| u32::try_from(it).ok());
                number.ok_or_else(|| it.invalid("a number of attempts after the first"))
            })?;
            let word = section.get("policy");
            let word = word.as_ref().and_then(TomlValue::str);
            if let ("never", Some(max)) = (word.unwrap_or_default(), section.get("max")) {
                return Err(max.error("does not go with the policy \"never\"; leave it out"));
            }
            policy(word, max.unwrap_or(RESTARTS_DEFAULT))
        }
    };
    found.ok_or_else(|| item.invalid(RESTART))
}

/// Parses a health rule.
pub(super) fn health(item: &TomlValue<'_>) -> Result<HealthRule, ManifestError> {
    let section = item.table().ok_or_else(|| item.invalid(HEALTH))?;
    const PROBES: [&str; 4] = ["http", "tcp", "exec", "probe"];
    section.reject_unknown_keys(&[
        "http", "tcp", "exec", "probe", "interval", "failures", "restart",
    ])?;
    let all = section.items();
    let mut probes = all.iter().filter(|(key, _)| PROBES.contains(&key.as_str()));
    let (Some((key, value)), None) = (probes.next(), probes.next()) else {
        return Err(item.invalid(HEALTH));
    };
    let probe = match (key.as_str(), value.str()) {
        ("probe", Some("listening")) => ReadyCondition::Listening,
        ("probe", Some("responding")) => ReadyCondition::Responding,
        ("probe", _) => return Err(value.invalid("\"listening\" or \"responding\"")),
        (key, _) => probe(key, value)?,
    };
    let failures = section.read("failures", |it| {
        let number = it.number().and_then(|it| u32::try_from(it).ok());
        let number = number.filter(|it| (1..=rules::FAILURES_MAX).contains(it));
        number.ok_or_else(|| it.invalid("a number from 1 to 1000"))
    })?;
    let interval = section.read("interval", millis)?;
    Ok(HealthRule {
        probe,
        interval: interval.map(Duration::from_millis),
        failures: failures.unwrap_or(0),
        restart: section.read("restart", TomlValue::flag)?.unwrap_or(false),
    })
}

/// Parses the condition on a dependency.
pub(super) fn condition(item: &TomlValue<'_>) -> Result<DependencyCondition, ManifestError> {
    let known = item.str().and_then(parse_condition);
    known.ok_or_else(|| item.invalid("\"started\", \"listening\", \"ready\" or \"completed\""))
}

/// Parses a dependency: `db`, or `db:started`.
pub(super) fn dependency(word: &str) -> Option<Dependency> {
    let (name, condition) = match word.split_once(':') {
        Some((name, condition)) => (name, parse_condition(condition)?),
        None => (word, DependencyCondition::default()),
    };
    Some(Dependency {
        name: name.to_owned(),
        condition,
    })
}

fn parse_condition(word: &str) -> Option<DependencyCondition> {
    match word {
        "started" => Some(DependencyCondition::Started),
        "listening" => Some(DependencyCondition::Listening),
        "ready" => Some(DependencyCondition::Ready),
        "completed" => Some(DependencyCondition::Completed),
        _ => None,
    }
}
