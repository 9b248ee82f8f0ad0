//! Validation of the service part of a request.

use std::collections::HashSet;
use std::path::Path;
use std::time::Duration;

use ostler_model::{
    ByteString, Command, Dependency, ExecutionId, HealthRule, IsolationLevel, Lifetime,
    ReadyCondition, ReadyRule, ServicePlan,
};
use regex::RegexBuilder;

use crate::error::{Error, ServiceError};
use crate::probes::NotifySocket;
use crate::request::StartRequest;
use crate::service_names;

/// The directory of the notify sockets below the state directory; each socket has its own
/// subdirectory.
pub(crate) const NOTIFY_DIRECTORY: &str = "notify";
/// The longest path of a unix socket (unix(7)), in bytes without the final NUL.
const SOCKET_PATH_BYTES: usize = 107;
/// The most regular expressions of one kind.
const EXPRESSIONS: usize = 64;
/// The longest regular expression, in bytes.
const EXPRESSION_BYTES: usize = 4 * 1024;
/// The largest compiled regular expression, in bytes.
const COMPILED_BYTES: usize = 1024 * 1024;
/// The longest path or URL, in bytes.
const TARGET_BYTES: usize = 2 * 1024;
/// The most words of a probe command.
const ARGV_WORDS: usize = 256;
/// The longest duration in a plan, in seconds: a day.
const TIME_MAX_S: u64 = 24 * 60 * 60;
/// The most dependencies of a service.
const DEPENDENCIES: usize = 64;
/// The most consecutive failures before a service counts as unhealthy.
pub(crate) const FAILURES_MAX: u32 = 1_000;

/// An invalid value in a service's plan; as an [`Error`] it is
/// [`ServiceError::Value`](crate::ServiceError::Value).
#[derive(Debug)]
pub(crate) struct InvalidServicePlan {
    /// The part of the plan.
    pub(crate) what: &'static str,
    /// The value as given.
    pub(crate) given: String,
    /// The problem.
    pub(crate) problem: String,
}

impl From<InvalidServicePlan> for Error {
    fn from(invalid: InvalidServicePlan) -> Self {
        let InvalidServicePlan {
            what,
            given,
            problem,
        } = invalid;
        Self::Service(ServiceError::Value {
            what,
            given,
            problem,
        })
    }
}

/// Checks the plan of a service; other lifetimes pass.
///
/// # Errors
/// [`InvalidServicePlan`] for the first invalid value.
pub(crate) fn check_plan(
    lifetime: Option<&Lifetime>,
    level: IsolationLevel,
    state_dir: &Path,
) -> Result<(), Error> {
    let Some(plan) = lifetime.and_then(Lifetime::plan) else {
        return Ok(());
    };
    if !plan.name.is_empty() {
        service_names::check(&plan.name)
            .map_err(|problem| invalid_value("service name", &plan.name, problem))?;
    }
    check_ready_rule(&plan.ready)?;
    if let Some(health) = &plan.health {
        check_health(health)?;
    }
    check_dependencies(plan)?;
    if level >= IsolationLevel::High && !probe_commands(lifetime).is_empty() {
        let problem = format!(
            "it would run outside the restrictions of level {level}; ask for http, tcp or listening"
        );
        return Err(invalid_value("probe", "exec", problem).into());
    }
    if plan.ready.when == ReadyCondition::Notify {
        check_notify(level, state_dir)?;
    }
    Ok(())
}

/// The commands that run repeatedly with a start, and without a person: the probes of a service, and
/// the health check of a container. They must satisfy the same rules as its command.
pub(crate) fn unattended_commands(request: &StartRequest) -> Vec<Command> {
    let mut all = probe_commands(request.lifetime.as_ref());
    if let Some(health) = &request.options.container.health
        && let Some((program, args)) = health.command.split_first()
    {
        all.push(Command::Argv {
            program: ByteString::from(program.as_str()),
            args: args.iter().map(|it| it.as_str().into()).collect(),
        });
    }
    all
}

/// The probe commands of a service, which must satisfy the same rules as its command.
pub(crate) fn probe_commands(lifetime: Option<&Lifetime>) -> Vec<Command> {
    let Some(plan) = lifetime.and_then(Lifetime::plan) else {
        return Vec::new();
    };
    let health = plan.health.as_ref().map(|it| &it.probe);
    let all = [Some(&plan.ready.when), health].into_iter().flatten();
    all.filter_map(|when| match when {
        ReadyCondition::Exec { argv } => {
            let (program, args) = argv.split_first()?;
            Some(Command::Argv {
                program: program.clone(),
                args: args.to_vec(),
            })
        }
        ReadyCondition::Auto
        | ReadyCondition::Listening
        | ReadyCondition::Responding
        | ReadyCondition::Log
        | ReadyCondition::Http { .. }
        | ReadyCondition::Tcp { .. }
        | ReadyCondition::Notify
        | ReadyCondition::Quiet { .. } => None,
    })
    .collect()
}

/// Whether commands of this level can use a notify socket, and whether its path is short enough.
fn check_notify(level: IsolationLevel, state_dir: &Path) -> Result<(), InvalidServicePlan> {
    if level >= IsolationLevel::High {
        let problem = format!(
            "level {level} shows no notify socket; ask for 'listening', 'responding' or 'log'"
        );
        return Err(invalid_value("ready_when", "notify", problem));
    }
    let dir = state_dir.join(NOTIFY_DIRECTORY);
    let socket = NotifySocket::path(&dir.join(ExecutionId::mint().short()));
    let bytes = socket.as_os_str().len();
    if bytes <= SOCKET_PATH_BYTES {
        return Ok(());
    }
    let problem = format!(
        "its socket's path would have {bytes} bytes, and a unix socket takes \
         {SOCKET_PATH_BYTES}; choose a shorter state directory"
    );
    Err(invalid_value("ready_when", "notify", problem))
}

fn check_ready_rule(rule: &ReadyRule) -> Result<(), InvalidServicePlan> {
    for (what, list) in [
        ("ready_pattern", &rule.ready),
        ("fail_pattern", &rule.fail),
        ("url pattern", &rule.url),
    ] {
        if list.len() > EXPRESSIONS {
            let problem = format!("at most {EXPRESSIONS} are allowed");
            return Err(invalid_value(what, &list.len().to_string(), problem));
        }
        for text in list {
            check_pattern(text).map_err(|problem| invalid_value(what, text, problem))?;
        }
    }
    if rule.when == ReadyCondition::Log && rule.ready.is_empty() {
        let problem = "there is no line to wait for; give a ready_pattern";
        return Err(invalid_value("ready_when", "log", problem));
    }
    if let Some(timeout) = rule.timeout {
        check_duration("ready_timeout", timeout)?;
    }
    check_ready_when("ready_when", &rule.when)
}

fn check_ready_when(what: &'static str, when: &ReadyCondition) -> Result<(), InvalidServicePlan> {
    match when {
        ReadyCondition::Auto
        | ReadyCondition::Listening
        | ReadyCondition::Responding
        | ReadyCondition::Log
        | ReadyCondition::Notify => Ok(()),
        ReadyCondition::Http { target: given } => {
            check_target(given).map_err(|problem| invalid_value(what, given, problem))
        }
        ReadyCondition::Tcp { port: 0 } => {
            Err(invalid_value(what, "0", "a port is from 1 to 65535"))
        }
        ReadyCondition::Tcp { .. } => Ok(()),
        ReadyCondition::Exec { argv } => {
            let first = argv.first().map(ToString::to_string).unwrap_or_default();
            if first.is_empty() {
                return Err(invalid_value(what, "exec", "it needs a program"));
            }
            if argv.len() > ARGV_WORDS {
                let problem = format!("at most {ARGV_WORDS} words are allowed");
                return Err(invalid_value(what, &first, problem));
            }
            if argv.iter().any(ostler_model::ByteString::has_nul) {
                return Err(invalid_value(what, &first, "a word contains a NUL byte"));
            }
            Ok(())
        }
        ReadyCondition::Quiet { ms } => check_duration(what, Duration::from_millis(*ms)),
    }
}

fn check_health(health: &HealthRule) -> Result<(), InvalidServicePlan> {
    match &health.probe {
        ReadyCondition::Http { .. }
        | ReadyCondition::Tcp { .. }
        | ReadyCondition::Exec { .. }
        | ReadyCondition::Listening
        | ReadyCondition::Responding => check_ready_when("health", &health.probe)?,
        ReadyCondition::Auto
        | ReadyCondition::Log
        | ReadyCondition::Notify
        | ReadyCondition::Quiet { .. } => {
            let problem = "health is looked at by http, tcp, exec, listening or responding";
            return Err(invalid_value("health", "probe", problem));
        }
    }
    if health.failures > FAILURES_MAX {
        let problem = format!("at most {FAILURES_MAX} are allowed");
        return Err(invalid_value(
            "health failures",
            &health.failures.to_string(),
            problem,
        ));
    }
    health
        .interval
        .map_or(Ok(()), |it| check_duration("health interval", it))
}

fn check_dependencies(plan: &ServicePlan) -> Result<(), InvalidServicePlan> {
    if plan.depends_on.len() > DEPENDENCIES {
        let problem = format!("at most {DEPENDENCIES} are allowed");
        return Err(invalid_value(
            "depends_on",
            &plan.depends_on.len().to_string(),
            problem,
        ));
    }
    let mut names = HashSet::new();
    for Dependency { name, .. } in &plan.depends_on {
        if !names.insert(name) {
            return Err(invalid_value("depends_on", name, "it is named twice"));
        }
        service_names::check(name).map_err(|problem| invalid_value("depends_on", name, problem))?;
    }
    Ok(())
}

/// Whether a regular expression is valid.
///
/// # Errors
/// The problem with it.
pub(crate) fn check_pattern(text: &str) -> Result<(), String> {
    if text.is_empty() {
        return Err("it is empty and would match every line".to_owned());
    }
    if text.len() > EXPRESSION_BYTES {
        return Err(format!("it is longer than {EXPRESSION_BYTES} bytes"));
    }
    let compiled = RegexBuilder::new(text).size_limit(COMPILED_BYTES).build();
    compiled.map(drop).map_err(|error| {
        let last = error.to_string();
        let last = last.lines().last().unwrap_or_default();
        format!(
            "it is no regular expression: {}",
            last.trim_start_matches("error: ")
        )
    })
}

/// Whether a target of an HTTP probe is valid: a path, or a URL of this machine.
///
/// # Errors
/// The allowed forms.
pub(crate) fn check_target(given: &str) -> Result<(), String> {
    const ALLOWED: &str = "a path (\"/health\") on its main port, or a URL of this machine \
                           (\"http://127.0.0.1:3000/health\")";
    if given.len() > TARGET_BYTES {
        return Err(format!("it is longer than {TARGET_BYTES} bytes"));
    }
    if given.chars().any(|c| c.is_control() || c == ' ') {
        return Err(format!(
            "it has a space or control character; allowed: {ALLOWED}"
        ));
    }
    if given.starts_with('/') {
        return Ok(());
    }
    let rest = given
        .strip_prefix("http://")
        .or_else(|| given.strip_prefix("https://"));
    let authority = rest.and_then(|it| it.split(['/', '?', '#']).next());
    if authority.is_some_and(is_loopback_authority) {
        return Ok(());
    }
    Err(format!("it is no target of a probe; allowed: {ALLOWED}"))
}

/// Whether `host[:port]` names this machine.
fn is_loopback_authority(authority: &str) -> bool {
    let (host, port) = match authority.strip_prefix('[') {
        Some(rest) => match rest.split_once(']') {
            Some((host, port)) => (host, port),
            None => return false,
        },
        None => match authority.find(':') {
            Some(at) => authority.split_at(at),
            None => (authority, ""),
        },
    };
    let port_fits = port.is_empty()
        || port
            .strip_prefix(':')
            .and_then(|it| it.parse::<u16>().ok())
            .is_some_and(|it| it > 0);
    let address: Option<std::net::IpAddr> = host.parse().ok();
    let here = address.map_or_else(
        || host == "localhost" || host.ends_with(".localhost"),
        |it| it.is_loopback() || it.is_unspecified(),
    );
    port_fits && here
}

/// Whether a plan may contain this duration.
pub(crate) fn is_valid_duration(time: Duration) -> bool {
    !time.is_zero() && time <= Duration::from_secs(TIME_MAX_S)
}

fn check_duration(what: &'static str, given: Duration) -> Result<(), InvalidServicePlan> {
    if is_valid_duration(given) {
        return Ok(());
    }
    let problem = "more than 0 and at most a day is allowed";
    Err(invalid_value(
        what,
        &format!("{} s", given.as_secs_f64()),
        problem,
    ))
}

fn invalid_value(
    what: &'static str,
    given: &str,
    problem: impl Into<String>,
) -> InvalidServicePlan {
    InvalidServicePlan {
        what,
        given: given.to_owned(),
        problem: problem.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ostler_model::{ByteString, RestartPolicy};

    fn checked(change: impl FnOnce(&mut ServicePlan)) -> Result<(), String> {
        let mut plan = ServicePlan::default();
        change(&mut plan);
        let lifetime = Lifetime::Service {
            restart: RestartPolicy::Never,
            plan: Box::new(plan),
        };
        check_plan(Some(&lifetime), IsolationLevel::Medium, Path::new("/s"))
            .map_err(|error| error.to_string())
    }

    #[test]
    fn expressions_and_targets_are_read_before_anything_runs() {
        assert_eq!(
            checked(|plan| plan.ready.ready = vec!["ready in \\d+".to_owned()]),
            Ok(())
        );
        let error = checked(|plan| plan.ready.fail = vec!["(".to_owned()]).expect_err("refused");
        assert_eq!(
            error,
            "fail_pattern '(': it is no regular expression: unclosed group"
        );
        assert!(checked(|plan| plan.ready.ready = vec![String::new()]).is_err());
        assert!(checked(|plan| plan.ready.when = ReadyCondition::Log).is_err());
        for good in [
            "/",
            "/health?x=1",
            "http://localhost:3000/",
            "https://[::1]:8443/x",
            "http://127.0.0.1",
        ] {
            assert_eq!(check_target(good), Ok(()), "{good}");
        }
        for bad in [
            "",
            "health",
            "http://example.org/",
            "http://localhost.evil.example/",
            "ftp://localhost/",
            "http://127.0.0.1@evil.example/",
            "http://localhost:99999/",
            "/a b",
            "http://[::1/",
            "http://10.0.0.1/",
        ] {
            assert!(check_target(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn plans_are_bounded() {
        assert!(checked(|plan| plan.name = "Web".to_owned()).is_err());
        assert!(checked(|plan| plan.ready.timeout = Some(Duration::ZERO)).is_err());
        assert!(checked(|plan| plan.ready.when = ReadyCondition::Quiet { ms: 0 }).is_err());
        assert!(checked(|plan| plan.ready.when = ReadyCondition::Tcp { port: 0 }).is_err());
        assert!(checked(|plan| plan.ready.when = ReadyCondition::Exec { argv: vec![] }).is_err());
        let nul = ReadyCondition::Exec {
            argv: vec![ByteString::from("a\0")],
        };
        assert!(checked(|plan| plan.ready.when = nul).is_err());
        assert!(checked(|plan| plan.ready.ready = vec!["x".to_owned(); EXPRESSIONS + 1]).is_err());
        let health = |probe| {
            Some(HealthRule {
                probe,
                interval: None,
                failures: 0,
                restart: false,
            })
        };
        assert_eq!(
            checked(|plan| plan.health = health(ReadyCondition::Listening)),
            Ok(())
        );
        assert!(checked(|plan| plan.health = health(ReadyCondition::Notify)).is_err());
    }

    #[test]
    fn a_notify_socket_needs_a_path_that_fits() {
        assert_eq!(
            checked(|plan| plan.ready.when = ReadyCondition::Notify),
            Ok(())
        );
        let plan = ServicePlan {
            ready: ReadyRule {
                when: ReadyCondition::Notify,
                ..ReadyRule::default()
            },
            ..ServicePlan::default()
        };
        let lifetime = Lifetime::Service {
            restart: RestartPolicy::Never,
            plan: Box::new(plan),
        };
        let long = format!("/{}", "x".repeat(90));
        let refused = check_plan(Some(&lifetime), IsolationLevel::Basic, Path::new(&long));
        let error = refused.expect_err("too long").to_string();
        assert!(
            error.contains("choose a shorter state directory"),
            "{error}"
        );
        assert!(check_plan(Some(&lifetime), IsolationLevel::High, Path::new("/s")).is_err());
    }

    #[test]
    fn no_probe_runs_outside_the_sandbox() {
        let argv = vec![ByteString::from("true")];
        let plan = ServicePlan {
            ready: ReadyRule {
                when: ReadyCondition::Exec { argv },
                ..ReadyRule::default()
            },
            ..ServicePlan::default()
        };
        let lifetime = Lifetime::Service {
            restart: RestartPolicy::Never,
            plan: Box::new(plan),
        };
        let at = |level| check_plan(Some(&lifetime), level, Path::new("/s"));
        assert!(at(IsolationLevel::Medium).is_ok());
        let error = at(IsolationLevel::High).expect_err("outside").to_string();
        assert!(error.contains("outside the restrictions"), "{error}");
        assert_eq!(probe_commands(Some(&lifetime)).len(), 1);
    }
}
