//! Parameters shared by the two tools that start commands.

use std::time::Duration;

use ostler_engine::{ClientKind, StartRequest, StdinRequest};
use ostler_model::{ByteString, Command};

use crate::tool_call::ToolCall;
use crate::tools::params::isolation;
use ostler_interface::error::ApiError;
use ostler_interface::params::{Arguments, Parameter, ParameterKind};

/// The longest timeout, in seconds: thirty days.
pub(super) const TIMEOUT_LIMIT_S: i64 = 30 * 24 * 60 * 60;
/// The most lines of one text block.
pub(super) const BLOCK_LINES_LIMIT: i64 = 100_000;

/// The setting that runs a recognised service as a plain command.
pub(super) const OPT_OUT: &str = "variable OSTLER_SERVICE=off";

pub(super) const COMMAND: Parameter = Parameter::required("command", ParameterKind::Text, "");
pub(super) const ARGS: Parameter = Parameter::optional("args", ParameterKind::List, "");
pub(super) const DIRECTORY: Parameter = Parameter::required("directory", ParameterKind::Text, "");
pub(super) const STDIN: Parameter = Parameter::optional("stdin", ParameterKind::Text, "");
pub(super) const ENVS: Parameter = Parameter::optional("envs", ParameterKind::Map, "");
pub(super) const ENCODING: Parameter = Parameter::optional("encoding", ParameterKind::Text, "");
pub(super) const ISOLATION: Parameter = Parameter::optional("isolation", isolation::LEVELS, "");
pub(super) const BLOCK_LINES: Parameter = Parameter::optional(
    "limit_lines",
    ParameterKind::Integer(1, BLOCK_LINES_LIMIT),
    "Lines per text block",
)
.with_default(500);

/// The request from the shared parameters.
pub(super) fn start_request(
    call: ToolCall<'_>,
    arguments: &mut Arguments,
) -> Result<StartRequest, ApiError> {
    let command = Command::Argv {
        program: arguments.required_text("command").into(),
        args: arguments
            .list("args")
            .into_iter()
            .map(ByteString::from)
            .collect(),
    };
    let directory = arguments.required_text("directory");
    if directory.is_empty() {
        return Err(ApiError::value(
            "parameter 'directory' is empty; allowed: the path of a directory",
        ));
    }
    let mut request = call.start_request(command, &directory);
    request.client_kind = ClientKind::Command;
    request.options.set_env = parse_envs(arguments);
    if let Some(stdin) = arguments.text("stdin") {
        request.stdin = StdinRequest::Bytes(stdin.into_bytes());
    }
    request.options.timeout = arguments.count("timeout").map(Duration::from_secs);
    request.options.encoding = arguments.text("encoding").or(request.options.encoding);
    isolation::apply_level(&mut request, arguments)?;
    Ok(request)
}

fn parse_envs(arguments: &mut Arguments) -> Vec<(ByteString, ByteString)> {
    let entries = arguments.map("envs").into_iter();
    entries
        .map(|(name, value)| (name.into(), value.into()))
        .collect()
}

/// The number of lines per text block.
pub(super) fn block_lines(arguments: &Arguments) -> usize {
    let lines = arguments.count("limit_lines").unwrap_or(1);
    usize::try_from(lines).unwrap_or(usize::MAX)
}
