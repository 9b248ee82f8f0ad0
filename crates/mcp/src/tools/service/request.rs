//! Parses the request of a service.

use std::time::Duration;

use ostler_engine::{ClientKind, PortRequest, ServiceRequest, StartRequest};
use ostler_model::{Dependency, DependencyCondition, ReadyCondition, RestartPolicy};

use super::ready::parse_ready_when;
use crate::tool_call::ToolCall;
use crate::tools::params::{choose_shell, isolation, parse_command};
use ostler_interface::error::ApiError;
use ostler_interface::params::{Arguments, PortArgument};

/// Attempts after the first, where restarts are requested.
const MAX_RESTARTS: u32 = 5;

/// The parameters of a start, besides the command.
pub(super) const START_PARAMETERS: [&str; 9] = [
    "env",
    "port",
    "ready_when",
    "ready_pattern",
    "timeout",
    "restart",
    "depends_on",
    "isolation",
    "image",
];

/// The request from these arguments; none where they only name a service.
pub(super) fn parse_request(
    call: ToolCall<'_>,
    arguments: &mut Arguments,
) -> Result<Option<ServiceRequest>, ApiError> {
    if !arguments.is_given("command") {
        return check_name_only(arguments).map(|()| None);
    }
    let command = parse_command(arguments, None)?;
    let mut start = call.start_request(command, &arguments.text("cwd").unwrap_or_default());
    start.client_kind = ClientKind::Core;
    let variables = arguments.map("env").into_iter();
    start.options.set_env = variables
        .map(|(name, value)| (name.into(), value.into()))
        .collect();
    choose_shell(call, &mut start);
    isolation::apply_level(&mut start, arguments)?;
    // Checked with the service, for all who start or define one.
    let pattern = arguments.text("ready_pattern");
    let when = arguments.text("ready_when");
    let when = when.map(|when| parse_ready_when(&when)).transpose()?;
    Ok(Some(ServiceRequest {
        name: arguments.text("name"),
        // A pattern alone implies readiness by log line.
        ready_when: when.or(pattern.as_ref().map(|_| ReadyCondition::Log)),
        ready_pattern: pattern,
        ready_timeout: arguments.count("timeout").map(Duration::from_secs),
        restart: parse_restart(arguments),
        depends_on: parse_dependencies(arguments)?,
        port: parse_port(arguments),
        ..ServiceRequest::new(start)
    }))
}

/// The settings a definition's services are started with, besides its own.
pub(super) fn base_request(call: ToolCall<'_>, arguments: &mut Arguments) -> StartRequest {
    let nothing = ostler_model::Command::Argv {
        program: String::new().into(),
        args: Vec::new(),
    };
    let mut base = call.start_request(nothing, &arguments.text("cwd").unwrap_or_default());
    base.client_kind = ClientKind::Core;
    base
}

/// Refuses parameters of a start besides the name.
fn check_name_only(arguments: &Arguments) -> Result<(), ApiError> {
    if !arguments.is_given("name") {
        return Err(ApiError::value(
            "parameter 'command' or 'name' is missing; allowed: command, a script for bash or a \
             list of words, or the name of a service that is defined",
        ));
    }
    match START_PARAMETERS
        .iter()
        .find(|name| arguments.is_given(name))
    {
        Some(name) => Err(ApiError::value(format!(
            "parameter '{name}' goes with 'command'; a service that is defined is started as its \
             definition says"
        ))),
        None => Ok(()),
    }
}

fn parse_restart(arguments: &mut Arguments) -> RestartPolicy {
    match arguments.text("restart").as_deref() {
        Some("on-failure") => RestartPolicy::OnFailure { max: MAX_RESTARTS },
        Some("always") => RestartPolicy::Always { max: MAX_RESTARTS },
        _ => RestartPolicy::Never,
    }
}

/// `db`, or `db:started`.
fn parse_dependencies(arguments: &mut Arguments) -> Result<Vec<Dependency>, ApiError> {
    let given = arguments.list("depends_on").into_iter();
    given.map(|word| parse_dependency(&word)).collect()
}

fn parse_dependency(word: &str) -> Result<Dependency, ApiError> {
    let (name, condition) = word.split_once(':').unwrap_or((word, "ready"));
    let condition = match condition {
        "started" => DependencyCondition::Started,
        "listening" => DependencyCondition::Listening,
        "ready" => DependencyCondition::Ready,
        "completed" => DependencyCondition::Completed,
        _ => {
            return Err(ApiError::value(format!(
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

fn parse_port(arguments: &mut Arguments) -> PortRequest {
    match arguments.take_port("port") {
        Some(PortArgument::Auto) => PortRequest::Lease,
        Some(PortArgument::Number(port)) => PortRequest::Fixed(port),
        None => PortRequest::Own,
    }
}
