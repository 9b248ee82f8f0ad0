//! What may be asked of a service besides its command.

use std::path::Path;
use std::time::Duration;

use ostler_model::{
    Command, Dependency, ExecutionId, HealthRule, IsolationLevel, Lifetime, ReadyRule, ReadyWhen,
    ServicePlan,
};
use regex::RegexBuilder;

use crate::effects::NotifySocket;
use crate::error::Error;
use crate::service::{ServiceError, names};

/// Where notify sockets stand below the state directory, each in a directory of its own.
pub(crate) const NOTIFY_DIRECTORY: &str = "notify";
/// Bytes of the longest path a unix socket can have (unix(7)), without the final NUL.
const SOCKET_PATH_BYTES: usize = 107;
/// Expressions of one kind.
const EXPRESSIONS: usize = 64;
/// Bytes of one expression.
const EXPRESSION_BYTES: usize = 4 * 1024;
/// Bytes of one compiled expression.
const COMPILED_BYTES: usize = 1024 * 1024;
/// Bytes of a path or URL.
const TARGET_BYTES: usize = 2 * 1024;
/// Words of a command that probes.
const ARGV_WORDS: usize = 256;
/// The longest time of a plan, in seconds: a day.
const TIME_MAX_S: u64 = 24 * 60 * 60;
/// Services one may depend on.
const DEPENDENCIES: usize = 64;
/// Looks that may fail in a row.
pub(crate) const FAILURES_MAX: u32 = 1_000;

/// Checks the plan of a service; anything else passes.
///
/// # Errors
/// [`ServiceError::Value`] for the first thing that cannot be.
pub(crate) fn check(
    lifetime: Option<&Lifetime>,
    level: IsolationLevel,
    state_dir: &Path,
) -> Result<(), Error> {
    let Some(plan) = lifetime.and_then(Lifetime::plan) else {
        return Ok(());
    };
    if !plan.name.is_empty() {
        names::check(&plan.name).map_err(|problem| value("service name", &plan.name, problem))?;
    }
    rule(&plan.ready)?;
    if let Some(health) = &plan.health {
        check_health(health)?;
    }
    check_dependencies(plan)?;
    if level >= IsolationLevel::High && !probes(lifetime).is_empty() {
        let problem = "it would run outside the walls of level high; ask for http, tcp or \
                       listening";
        return Err(value("probe", "exec", problem).into());
    }
    if plan.ready.when == ReadyWhen::Notify {
        notify(level, state_dir)?;
    }
    Ok(())
}

/// Commands that look at a service, which run beside it: they are held to the same rules.
pub(crate) fn probes(lifetime: Option<&Lifetime>) -> Vec<Command> {
    let Some(plan) = lifetime.and_then(Lifetime::plan) else {
        return Vec::new();
    };
    let health = plan.health.as_ref().map(|it| &it.probe);
    let all = [Some(&plan.ready.when), health].into_iter().flatten();
    all.filter_map(|when| match when {
        ReadyWhen::Exec { argv } => {
            let (program, args) = argv.split_first()?;
            Some(Command::Argv {
                program: program.clone(),
                args: args.to_vec(),
            })
        }
        ReadyWhen::Auto
        | ReadyWhen::Listening
        | ReadyWhen::Responding
        | ReadyWhen::Log
        | ReadyWhen::Http { .. }
        | ReadyWhen::Tcp { .. }
        | ReadyWhen::Notify
        | ReadyWhen::Quiet { .. } => None,
    })
    .collect()
}

/// Whether commands of this level can say that they are ready, and where.
fn notify(level: IsolationLevel, state_dir: &Path) -> Result<(), ServiceError> {
    if level >= IsolationLevel::High {
        let problem = "level high shows no notify socket; ask for 'listening', 'responding' or \
                       'log'";
        return Err(value("ready_when", "notify", problem));
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
    Err(value("ready_when", "notify", problem))
}

fn rule(rule: &ReadyRule) -> Result<(), ServiceError> {
    for (what, list) in [
        ("ready_pattern", &rule.ready),
        ("fail_pattern", &rule.fail),
        ("url pattern", &rule.url),
    ] {
        if list.len() > EXPRESSIONS {
            let problem = format!("at most {EXPRESSIONS} are allowed");
            return Err(value(what, &list.len().to_string(), problem));
        }
        for text in list {
            expression(text).map_err(|problem| value(what, text, problem))?;
        }
    }
    if rule.when == ReadyWhen::Log && rule.ready.is_empty() {
        let problem = "there is no line to wait for; give a ready_pattern";
        return Err(value("ready_when", "log", problem));
    }
    if let Some(timeout) = rule.timeout {
        time("ready_timeout", timeout)?;
    }
    when("ready_when", &rule.when)
}

fn when(what: &'static str, when: &ReadyWhen) -> Result<(), ServiceError> {
    match when {
        ReadyWhen::Auto
        | ReadyWhen::Listening
        | ReadyWhen::Responding
        | ReadyWhen::Log
        | ReadyWhen::Notify => Ok(()),
        ReadyWhen::Http { target: given } => {
            target(given).map_err(|problem| value(what, given, problem))
        }
        ReadyWhen::Tcp { port: 0 } => Err(value(what, "0", "a port is from 1 to 65535")),
        ReadyWhen::Tcp { .. } => Ok(()),
        ReadyWhen::Exec { argv } => {
            let first = argv.first().map(ToString::to_string).unwrap_or_default();
            if first.is_empty() {
                return Err(value(what, "exec", "it needs a program"));
            }
            if argv.len() > ARGV_WORDS {
                let problem = format!("at most {ARGV_WORDS} words are allowed");
                return Err(value(what, &first, problem));
            }
            if argv.iter().any(ostler_model::Text::has_nul) {
                return Err(value(what, &first, "a word contains a NUL byte"));
            }
            Ok(())
        }
        ReadyWhen::Quiet { ms } => time(what, Duration::from_millis(*ms)),
    }
}

fn check_health(health: &HealthRule) -> Result<(), ServiceError> {
    match &health.probe {
        ReadyWhen::Http { .. }
        | ReadyWhen::Tcp { .. }
        | ReadyWhen::Exec { .. }
        | ReadyWhen::Listening
        | ReadyWhen::Responding => when("health", &health.probe)?,
        ReadyWhen::Auto | ReadyWhen::Log | ReadyWhen::Notify | ReadyWhen::Quiet { .. } => {
            let problem = "health is looked at by http, tcp, exec, listening or responding";
            return Err(value("health", "probe", problem));
        }
    }
    if health.failures > FAILURES_MAX {
        let problem = format!("at most {FAILURES_MAX} are allowed");
        return Err(value(
            "health failures",
            &health.failures.to_string(),
            problem,
        ));
    }
    health
        .interval
        .map_or(Ok(()), |it| time("health interval", it))
}

fn check_dependencies(plan: &ServicePlan) -> Result<(), ServiceError> {
    if plan.depends_on.len() > DEPENDENCIES {
        let problem = format!("at most {DEPENDENCIES} are allowed");
        return Err(value(
            "depends_on",
            &plan.depends_on.len().to_string(),
            problem,
        ));
    }
    for Dependency { name, .. } in &plan.depends_on {
        names::check(name).map_err(|problem| value("depends_on", name, problem))?;
    }
    Ok(())
}

/// Whether an expression can be used.
///
/// # Errors
/// What is wrong with it.
pub(crate) fn expression(text: &str) -> Result<(), String> {
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

/// Whether something can be asked for by HTTP: a path, or a URL of this machine.
///
/// # Errors
/// What is allowed.
pub(crate) fn target(given: &str) -> Result<(), String> {
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
    if authority.is_some_and(is_here) {
        return Ok(());
    }
    Err(format!("allowed: {ALLOWED}"))
}

/// Whether `host[:port]` names this machine.
fn is_here(authority: &str) -> bool {
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

/// Whether a plan may hold this time.
pub(crate) fn is_fitting(time: Duration) -> bool {
    !time.is_zero() && time <= Duration::from_secs(TIME_MAX_S)
}

fn time(what: &'static str, given: Duration) -> Result<(), ServiceError> {
    if is_fitting(given) {
        return Ok(());
    }
    let problem = "more than 0 and at most a day is allowed";
    Err(value(what, &format!("{} s", given.as_secs_f64()), problem))
}

fn value(what: &'static str, given: &str, problem: impl Into<String>) -> ServiceError {
    ServiceError::Value {
        what,
        given: given.to_owned(),
        problem: problem.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ostler_model::{Restart, Text};

    fn checked(change: impl FnOnce(&mut ServicePlan)) -> Result<(), String> {
        let mut plan = ServicePlan::default();
        change(&mut plan);
        let lifetime = Lifetime::Service {
            restart: Restart::Never,
            plan: Box::new(plan),
        };
        check(Some(&lifetime), IsolationLevel::Medium, Path::new("/s"))
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
        assert!(checked(|plan| plan.ready.when = ReadyWhen::Log).is_err());
        for good in [
            "/",
            "/health?x=1",
            "http://localhost:3000/",
            "https://[::1]:8443/x",
            "http://127.0.0.1",
        ] {
            assert_eq!(target(good), Ok(()), "{good}");
        }
        for bad in [
            "",
            "health",
            "http://example.org/",
            "http://localhost.evil.org/",
            "ftp://localhost/",
            "http://127.0.0.1@evil.org/",
            "http://localhost:99999/",
            "/a b",
            "http://[::1/",
            "http://10.0.0.1/",
        ] {
            assert!(target(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn plans_are_bounded() {
        assert!(checked(|plan| plan.name = "Web".to_owned()).is_err());
        assert!(checked(|plan| plan.ready.timeout = Some(Duration::ZERO)).is_err());
        assert!(checked(|plan| plan.ready.when = ReadyWhen::Quiet { ms: 0 }).is_err());
        assert!(checked(|plan| plan.ready.when = ReadyWhen::Tcp { port: 0 }).is_err());
        assert!(checked(|plan| plan.ready.when = ReadyWhen::Exec { argv: vec![] }).is_err());
        let nul = ReadyWhen::Exec {
            argv: vec![Text::from("a\0")],
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
            checked(|plan| plan.health = health(ReadyWhen::Listening)),
            Ok(())
        );
        assert!(checked(|plan| plan.health = health(ReadyWhen::Notify)).is_err());
    }

    #[test]
    fn a_notify_socket_needs_a_path_that_fits() {
        assert_eq!(checked(|plan| plan.ready.when = ReadyWhen::Notify), Ok(()));
        let plan = ServicePlan {
            ready: ReadyRule {
                when: ReadyWhen::Notify,
                ..ReadyRule::default()
            },
            ..ServicePlan::default()
        };
        let lifetime = Lifetime::Service {
            restart: Restart::Never,
            plan: Box::new(plan),
        };
        let long = format!("/{}", "x".repeat(90));
        let refused = check(Some(&lifetime), IsolationLevel::Basic, Path::new(&long));
        let error = refused.expect_err("too long").to_string();
        assert!(
            error.contains("choose a shorter state directory"),
            "{error}"
        );
        assert!(check(Some(&lifetime), IsolationLevel::High, Path::new("/s")).is_err());
    }

    #[test]
    fn no_probe_runs_outside_the_walls() {
        let argv = vec![Text::from("true")];
        let plan = ServicePlan {
            ready: ReadyRule {
                when: ReadyWhen::Exec { argv },
                ..ReadyRule::default()
            },
            ..ServicePlan::default()
        };
        let lifetime = Lifetime::Service {
            restart: Restart::Never,
            plan: Box::new(plan),
        };
        let at = |level| check(Some(&lifetime), level, Path::new("/s"));
        assert!(at(IsolationLevel::Medium).is_ok());
        let error = at(IsolationLevel::High).expect_err("outside").to_string();
        assert!(error.contains("outside the walls"), "{error}");
        assert_eq!(probes(Some(&lifetime)).len(), 1);
    }
}
