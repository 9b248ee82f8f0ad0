//! What both starters take.

use std::time::Duration;

use ostler_engine::{Face, StartRequest, StdinRequest};
use ostler_model::{Command, Text};

use crate::error::Failure;
use crate::mcp::context::Call;
use crate::mcp::tools::walls;
use crate::params::{Arguments, Kind, Parameter};

/// The longest time limit that can be asked for, in seconds: thirty days.
pub(super) const TIMEOUT_LIMIT_S: i64 = 30 * 24 * 60 * 60;
/// The most lines one text block can be asked to hold.
pub(super) const BLOCK_LINES_LIMIT: i64 = 100_000;

/// What runs a recognised service as a plain command.
pub(super) const OTHERWISE: &str = "variable OSTLER_SERVICE=off";

pub(super) const COMMAND: Parameter = Parameter::required("command", Kind::Text, "");
pub(super) const ARGS: Parameter = Parameter::optional("args", Kind::List, "");
pub(super) const DIRECTORY: Parameter = Parameter::required("directory", Kind::Text, "");
pub(super) const STDIN: Parameter = Parameter::optional("stdin", Kind::Text, "");
pub(super) const ENVS: Parameter = Parameter::optional("envs", Kind::Map, "");
pub(super) const ENCODING: Parameter = Parameter::optional("encoding", Kind::Text, "");
pub(super) const ISOLATION: Parameter = Parameter::optional("isolation", walls::LEVELS, "");
pub(super) const BLOCK_LINES: Parameter = Parameter::optional(
    "limit_lines",
    Kind::Integer(1, BLOCK_LINES_LIMIT),
    "Lines per text block",
)
.or(500);

/// The request both starters make of their common parameters.
pub(super) fn request(call: Call<'_>, arguments: &mut Arguments) -> Result<StartRequest, Failure> {
    let command = Command::Argv {
        program: arguments.required_text("command").into(),
        args: arguments.list("args").into_iter().map(Text::from).collect(),
    };
    let directory = arguments.required_text("directory");
    if directory.is_empty() {
        return Err(Failure::value(
            "parameter 'directory' is empty; allowed: the path of a directory",
        ));
    }
    let mut request = call.start(command, &directory);
    request.face = Face::Command;
    request.set_env = variables(arguments);
    if let Some(stdin) = arguments.text("stdin") {
        request.stdin = StdinRequest::Given(stdin.into_bytes());
    }
    request.timeout = arguments.count("timeout").map(Duration::from_secs);
    request.encoding = arguments.text("encoding").or(request.encoding);
    request.level = walls::level(arguments)?.or(request.level);
    Ok(request)
}

fn variables(arguments: &mut Arguments) -> Vec<(Text, Text)> {
    let given = arguments.map("envs").into_iter();
    given
        .map(|(name, value)| (name.into(), value.into()))
        .collect()
}

/// How many lines one block may hold.
pub(super) fn block_lines(arguments: &Arguments) -> usize {
    let lines = arguments.count("limit_lines").unwrap_or(1);
    usize::try_from(lines).unwrap_or(usize::MAX)
}
