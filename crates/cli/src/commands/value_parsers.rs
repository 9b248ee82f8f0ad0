//! Parsers of argument values.

use std::convert::Infallible;
use std::ffi::OsStr;
use std::str::FromStr;
use std::time::Duration;

use clap::builder::{PossibleValue, TypedValueParser};
use clap::{Arg, Command};
use jiff::civil::{Date, DateTime, Time};
use jiff::{ToSpan as _, Zoned};
use ostler_model::status::{PROCESS_STATUSES, ProcessStatus};
use ostler_model::{
    AlertTextError, AlertThresholds, BackendName, Capability, IsolationLevel, NetworkAccess,
    Signal, Timestamp, duration,
};

use crate::error::CommandError;

/// Parses a duration such as `90`, `1.5s`, `500ms`, `1h30m`; a bare number is in seconds.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    duration::parse(text).ok_or_else(|| "write a span such as 90, 1.5s, 500ms or 1h30m".to_owned())
}

/// Parses a time to come: a span from now, or a date and time with its offset.
pub(crate) fn future_time(text: &str) -> Result<Timestamp, String> {
    let now = Timestamp::now();
    let allowed = "write a span such as 12h or 30d, or a time to come such as 2027-01-31T12:00:00Z";
    let span = duration::parse_sum(text, &duration::CALENDAR_UNITS);
    let time = match span {
        Some(span) => now.checked_add(span).ok(),
        None => text.parse().ok(),
    };
    time.filter(|time| *time > now)
        .ok_or_else(|| allowed.to_owned())
}

/// A time in the past, for the daemon: times without an offset are those of this process's time
/// zone, which may differ from the daemon's, and become RFC 3339. Everything else, as a span or a
/// cursor, stays as it is.
///
/// # Errors
/// None: the daemon refuses what is no time.
#[expect(clippy::unnecessary_wraps, reason = "the signature of a value parser")]
pub(crate) fn past_time(text: &str) -> Result<String, Infallible> {
    let now = Zoned::now();
    Ok(local_time(text.trim(), &now).map_or_else(|| text.to_owned(), |time| time.to_string()))
}

/// The time that a word or a time without an offset means in the zone of `now`.
fn local_time(text: &str, now: &Zoned) -> Option<Timestamp> {
    // A time with an offset needs no zone; a cursor is two numbers.
    if text.parse::<Timestamp>().is_ok() || text.bytes().all(|b| b.is_ascii_digit() || b == b'.') {
        return None;
    }
    let local = match text {
        "now" => return Some(now.timestamp()),
        "today" => now.date().to_datetime(Time::midnight()),
        "yesterday" => {
            let yesterday: Date = now.date().checked_sub(1.day()).ok()?;
            yesterday.to_datetime(Time::midnight())
        }
        _ => match text.parse::<DateTime>() {
            Ok(time) => time,
            Err(_) => now.date().to_datetime(text.parse().ok()?),
        },
    };
    let zoned = local.to_zoned(now.time_zone().clone()).ok()?;
    Some(zoned.timestamp())
}

/// A parser of values that completion scripts suggest; others may be allowed.
#[derive(Debug, Clone)]
pub(crate) struct SuggestingParser<T> {
    parse: fn(&str) -> Result<T, String>,
    values: fn() -> Vec<&'static str>,
}

impl<T: Clone + Send + Sync + 'static> TypedValueParser for SuggestingParser<T> {
    type Value = T;

    fn parse_ref(
        &self,
        command: &Command,
        arg: Option<&Arg>,
        value: &OsStr,
    ) -> Result<T, clap::Error> {
        self.parse.parse_ref(command, arg, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(
            (self.values)().into_iter().map(PossibleValue::new),
        ))
    }
}

/// Parses a signal by name or number.
pub(crate) const SIGNAL: SuggestingParser<Signal> = SuggestingParser {
    parse: parse_word,
    values: || Signal::NAMES.to_vec(),
};

/// Parses an isolation level.
pub(crate) const ISOLATION_LEVEL: SuggestingParser<IsolationLevel> = SuggestingParser {
    parse: parse_word,
    values: || IsolationLevel::ALL.map(IsolationLevel::as_str).to_vec(),
};

/// Parses a capability of level high.
pub(crate) const CAPABILITY: SuggestingParser<Capability> = SuggestingParser {
    parse: parse_word,
    values: || Capability::OPTIONAL_NAMES.to_vec(),
};

const BACKENDS: [&str; 2] = ["local", "container"];

/// Parses the name of a backend.
pub(crate) const BACKEND: SuggestingParser<BackendName> = SuggestingParser {
    parse: |text| {
        let known = [BackendName::local(), BackendName::container()];
        let found = known.into_iter().find(|it| it.0 == text);
        found.ok_or_else(|| format!("allowed: {}", BACKENDS.join(", ")))
    },
    values: || BACKENDS.to_vec(),
};

/// The word for executions whose processes are stopped.
pub(crate) const PAUSED: &str = "paused";

/// Parses a status of an execution.
pub(crate) const STATUS: SuggestingParser<&'static str> = SuggestingParser {
    parse: parse_status,
    values: || statuses().to_vec(),
};

/// Parses a status of an execution.
pub(crate) fn parse_status(text: &str) -> Result<&'static str, String> {
    let found = statuses().into_iter().find(|it| *it == text);
    found.ok_or_else(|| format!("allowed: {}", statuses().join(", ")))
}

fn statuses() -> [&'static str; 6] {
    let [first, second, third, fourth, fifth] = PROCESS_STATUSES.map(ProcessStatus::as_str);
    [first, second, third, fourth, fifth, PAUSED]
}

fn parse_word<T: FromStr<Err: std::fmt::Display>>(text: &str) -> Result<T, String> {
    text.parse().map_err(|error: T::Err| error.to_string())
}

/// Parses network access.
///
/// # Errors
/// For the first word that is not a host.
pub(crate) fn network(text: &str) -> Result<NetworkAccess, CommandError> {
    text.parse().map_err(|error: ostler_model::HostRuleError| {
        CommandError::value(format!("--network: {error}")).with_hint(
            "write none, full, or hosts such as example.org,*.example.org:8443,10.0.0.0/8",
        )
    })
}

/// A query string to be appended to another.
pub(crate) fn append_query(query: &str) -> String {
    match query.trim_start_matches('&') {
        "" => String::new(),
        query => format!("&{query}"),
    }
}

/// Parses a threshold of an alert.
pub(crate) fn alert(text: &str) -> Result<AlertThresholds, AlertTextError> {
    let mut thresholds = AlertThresholds::default();
    thresholds.set(text)?;
    Ok(thresholds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_read_as_people_write_them() {
        let read = |text: &str| super::duration(text).map(duration::as_millis);
        assert_eq!(read("90"), Ok(90_000));
        assert_eq!(read("1.5"), Ok(1_500));
        assert_eq!(read("500ms"), Ok(500));
        assert_eq!(read("1h30m"), Ok(5_400_000));
        assert_eq!(read("0"), Ok(0));
        for bad in ["", "-1", "-1s", "soon", "1e400", "nan", "inf"] {
            assert!(read(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_time_without_an_offset_is_local() {
        let now: Zoned = "2026-11-21T12:00:00+02:00[+02:00]".parse().expect("a time");
        let read = |text: &str| local_time(text, &now).map(|time| time.to_string());
        let at = |text: &str| Some(text.to_owned());
        assert_eq!(read("2026-11-21 14:30"), at("2026-11-21T12:30:00Z"));
        assert_eq!(read("2026-11-21"), at("2026-11-20T22:00:00Z"));
        assert_eq!(read("09:15"), at("2026-11-21T07:15:00Z"));
        assert_eq!(read("today"), at("2026-11-20T22:00:00Z"));
        assert_eq!(read("yesterday"), at("2026-11-19T22:00:00Z"));
        assert_eq!(read("now"), at("2026-11-21T10:00:00Z"));
        for other in [
            "",
            "10m",
            "1d ago",
            "120000.5",
            "4096.7",
            "10",
            "2026-11-21T14:30:00Z",
            "2026-11-21T14:30:00+05:30",
            "soon",
        ] {
            assert_eq!(read(other), None, "{other}");
        }
    }

    #[test]
    fn a_time_to_come_is_a_span_or_a_date() {
        let in_two_days = future_time("2d").expect("a time");
        let left = duration::between(Timestamp::now(), in_two_days).as_secs();
        assert!((172_790..=172_800).contains(&left), "{left}");
        assert!(future_time("9000-01-01T00:00:00Z").is_ok());
        for bad in [
            "",
            "0s",
            "-1d",
            "2001-01-01T00:00:00Z",
            "soon",
            "99999999999999w",
        ] {
            assert!(future_time(bad).is_err(), "{bad}");
        }
    }
}
