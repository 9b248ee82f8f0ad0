//! What was asked of a service.

use std::time::Duration;

use ostler_engine::{Face, PortWish, ServiceRequest, StartRequest};
use ostler_model::{Condition, Dependency, ReadyWhen, Restart};

use super::ready::ready_when;
use crate::error::{Failure, bad_pattern};
use crate::mcp::context::Call;
use crate::mcp::tools::core;
use crate::mcp::tools::walls;
use crate::params::{Arguments, Port};

/// Attempts after the first, where a service is to be started again.
const RESTARTS: u32 = 5;

/// Parameters of a start, besides the command.
pub(super) const OF_START: [&str; 8] = [
    "env",
    "port",
    "ready_when",
    "ready_pattern",
    "timeout",
    "restart",
    "depends_on",
    "isolation",
];

/// The request that these arguments make; none where they name a service only.
pub(super) fn request(
    call: Call<'_>,
    arguments: &mut Arguments,
) -> Result<Option<ServiceRequest>, Failure> {
    if !arguments.is_given("command") {
        return named(arguments).map(|()| None);
    }
    let command = core::program(arguments, None)?;
    let mut start = call.start(command, &arguments.text("cwd").unwrap_or_default());
    start.face = Face::Core;
    let variables = arguments.map("env").into_iter();
    start.set_env = variables
        .map(|(name, value)| (name.into(), value.into()))
        .collect();
    core::choose_shell(call, &mut start);
    start.level = walls::level(arguments)?.or(start.level);
    let pattern = pattern(arguments)?;
    let when = arguments.text("ready_when");
    let when = when.map(|when| ready_when(&when)).transpose()?;
    Ok(Some(ServiceRequest {
        name: arguments.text("name"),
        // A line alone says what it is for.
        ready_when: when.or(pattern.as_ref().map(|_| ReadyWhen::Log)),
        ready_pattern: pattern,
        ready_timeout: arguments.count("timeout").map(Duration::from_secs),
        restart: restart(arguments),
        depends_on: dependencies(arguments)?,
        port: port(arguments),
        ..ServiceRequest::new(start)
    }))
}

/// What a definition's services are started with, besides what it says.
pub(super) fn base(call: Call<'_>, arguments: &mut Arguments) -> StartRequest {
    let nothing = ostler_model::Command::Argv {
        program: String::new().into(),
        args: Vec::new(),
    };
    let mut base = call.start(nothing, &arguments.text("cwd").unwrap_or_default());
    base.face = Face::Core;
    base
}

/// Nothing of a start but its name is given.
fn named(arguments: &Arguments) -> Result<(), Failure> {
    if !arguments.is_given("name") {
        return Err(Failure::value(
            "parameter 'command' or 'name' is missing; allowed: command, a script for bash or a \
             list of words, or the name of a service that is defined",
        ));
    }
    match OF_START.iter().find(|name| arguments.is_given(name)) {
        Some(name) => Err(Failure::value(format!(
            "parameter '{name}' goes with 'command'; a service that is defined is started as its \
             definition says"
        ))),
        None => Ok(()),
    }
}

/// It is read where it is used; here it is only held against the syntax.
fn pattern(arguments: &mut Arguments) -> Result<Option<String>, Failure> {
    let Some(given) = arguments.text("ready_pattern") else {
        return Ok(None);
    };
    match ostler_journal::Pattern::new(&given) {
        Ok(_) => Ok(Some(given)),
        Err(error) => Err(bad_pattern("ready_pattern", &given, &error)),
    }
}

fn restart(arguments: &mut Arguments) -> Restart {
    match arguments.text("restart").as_deref() {
        Some("on-failure") => Restart::OnFailure { max: RESTARTS },
        Some("always") => Restart::Always { max: RESTARTS },
        _ => Restart::Never,
    }
}

/// `db`, or `db:started`.
fn dependencies(arguments: &mut Arguments) -> Result<Vec<Dependency>, Failure> {
    let given = arguments.list("depends_on").into_iter();
    given.map(|word| dependency(&word)).collect()
}

fn dependency(word: &str) -> Result<Dependency, Failure> {
    let (name, condition) = word.split_once(':').unwrap_or((word, "ready"));
    let condition = match condition {
        "started" => Condition::Started,
        "listening" => Condition::Listening,
        "ready" => Condition::Ready,
        "completed" => Condition::Completed,
        _ => {
            return Err(Failure::value(format!(
                "parameter 'depends_on' has '{word}'; allowed: a service's name, alone or with \
                 :started, :listening, :ready or :completed behind it"
            )));
        }
    };
    Ok(Dependency {
        name: name.to_owned(),
        condition,
    })
}

fn port(arguments: &mut Arguments) -> PortWish {
    match arguments.port("port") {
        Some(Port::Auto) => PortWish::Lease,
        Some(Port::Number(port)) => PortWish::Fixed(port),
        None => PortWish::Own,
    }
}
