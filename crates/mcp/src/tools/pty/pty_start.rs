//! `pty_start`: a shell, or a program, in a new terminal.

use std::time::Duration;

use ostler_engine::{ClientKind, StartRequest, WaitEnd};
use ostler_model::{ByteString, Command, Cursor, ShellKind, TermSize};
use ostler_terminal::shell::LITERAL_INPUT;

use super::session;
use super::session_reply::SessionReply;
use super::settle::{self, SettleOutcome, SettleUntil, SettleWait};
use crate::approval;
use crate::reply::ToolInterrupt;
use crate::tool_call::ToolCall;
use crate::tools::params::WAIT_LIMIT_MS;
use crate::tools::params::isolation;
use crate::tools::registry::{ToolDefinition, ToolHints, ToolResult};
use ostler_interface::error::ApiError;
use ostler_interface::params::{Arguments, Parameter, ParameterKind};

/// The longest timeout, in seconds: thirty days.
const TIMEOUT_LIMIT_S: i64 = 30 * 24 * 60 * 60;
/// The default wait for the first screen, in milliseconds.
const WAIT_MS: i64 = 3_000;

pub(super) const COLS: Parameter = Parameter::optional(
    "cols",
    ParameterKind::Integer(1, TermSize::COLS_MAX as i64),
    "",
)
.with_default(80);
pub(super) const ROWS: Parameter = Parameter::optional(
    "rows",
    ParameterKind::Integer(1, TermSize::ROWS_MAX as i64),
    "",
)
.with_default(24);

pub(super) const DEFINITION: ToolDefinition = ToolDefinition {
    name: "pty_start",
    title: "Open a terminal",
    about: "Start a shell (for pty_run), or a program (command: [\"python3\"], [\"vim\", \"a\"]) \
            in a terminal of its own. Answers the session's id and its first screen. It lives \
            until pty_close, its end or timeout.",
    parameters: &[
        Parameter::optional("command", ParameterKind::List, "Program and arguments"),
        Parameter::optional(
            "shell",
            ParameterKind::Choice(&["bash", "zsh", "fish"]),
            "Instead of command; default bash",
        ),
        Parameter::optional("cwd", ParameterKind::Text, "Default: yours"),
        Parameter::optional("env", ParameterKind::Map, "Variables to add"),
        COLS,
        ROWS,
        Parameter::optional(
            "timeout",
            ParameterKind::Integer(1, TIMEOUT_LIMIT_S),
            "Seconds until it is killed; default never",
        ),
        Parameter::optional(
            "wait_ms",
            ParameterKind::Integer(0, WAIT_LIMIT_MS),
            "At most, for it to draw or ask",
        )
        .with_default(WAIT_MS),
        Parameter::optional("description", ParameterKind::Text, ""),
        Parameter::optional("labels", ParameterKind::List, ""),
        Parameter::optional("isolation", isolation::LEVELS, ""),
        isolation::BACKEND,
        isolation::IMAGE,
        isolation::NETWORK,
        isolation::WORKSPACE,
        isolation::ALLOW_DEGRADED,
        isolation::FORWARD,
        isolation::SECRETS,
        isolation::LIMITS,
        isolation::APPROVAL,
    ],
    hints: ToolHints::EXECUTES,
    output: None,
    handler: |call, arguments| {
        Box::pin(session::with_session_error_code(run_tool(call, arguments)))
    },
};

async fn run_tool(call: ToolCall<'_>, mut arguments: Arguments) -> ToolResult {
    let request = start_request(call, &mut arguments).await?;
    let timeout = Duration::from_millis(arguments.count("wait_ms").unwrap_or_default());
    let start_guard = approval::begin(call, request).await?;
    let id = start_guard.id().short();
    // Until its id is published, cancelling the request ends the session.
    let info = call.publish_id(start_guard);
    let waited = wait_settled(call, &id, timeout).await;
    let outcome = settle::outcome_of_start(call, waited, info)?;
    Ok(SessionReply::of_outcome(call, outcome).start_reply().await)
}

async fn wait_settled(
    call: ToolCall<'_>,
    id: &str,
    timeout: Duration,
) -> Result<SettleOutcome, ToolInterrupt> {
    let wait = SettleWait {
        until: SettleUntil::Settled,
        timeout,
    };
    let mut outcome = settle::wait_session(call, id, &wait, Some(Cursor::START)).await?;
    if outcome.waited.end == WaitEnd::TimedOut {
        // The call waited for no particular condition.
        outcome.waited.end = WaitEnd::Nothing;
    }
    Ok(outcome)
}

/// Every argument is validated before anything is started.
async fn start_request(
    call: ToolCall<'_>,
    arguments: &mut Arguments,
) -> Result<StartRequest, ApiError> {
    let has_command = arguments.is_given("command");
    let command = arguments.list("command");
    let shell = arguments.text("shell");
    let directory = arguments.text("cwd");
    if directory.as_deref() == Some("") {
        return Err(ApiError::value(
            "parameter 'cwd' is empty; allowed: the path of a directory, or leave it out",
        ));
    }
    let directory = directory.unwrap_or_default();
    let size = parse_size(arguments).unwrap_or(TermSize { cols: 80, rows: 24 });
    let mut request = match (has_command, shell) {
        (true, Some(_)) => {
            return Err(ApiError::value(
                "parameters 'command' and 'shell' are both given; allowed: one of them",
            ));
        }
        (true, None) => program_request(call, command, &directory)?,
        (false, shell) => shell_request(call, shell.as_deref(), &directory, size).await?,
    };
    request.options.pty = Some(size);
    request.client_kind = ClientKind::Pty;
    let variables = arguments.map("env").into_iter();
    request
        .options
        .set_env
        .extend(variables.map(|(name, value)| (name.into(), value.into())));
    request.options.timeout = arguments.count("timeout").map(Duration::from_secs);
    request.options.description = arguments.text("description").unwrap_or_default();
    request.options.labels = arguments.list("labels");
    isolation::apply_isolation(&mut request, arguments)?;
    Ok(request)
}

fn program_request(
    call: ToolCall<'_>,
    command: Vec<String>,
    directory: &str,
) -> Result<StartRequest, ApiError> {
    let mut words = command.into_iter().map(ByteString::from);
    let Some(program) = words.next() else {
        return Err(ApiError::value(
            "parameter 'command' is empty; allowed: a program and its arguments as in \
             [\"python3\", \"-q\"], or leave it out for a shell",
        ));
    };
    let command = Command::Argv {
        program,
        args: words.collect(),
    };
    Ok(call.start_request(command, directory))
}

/// A shell that reports where commands start and end.
async fn shell_request(
    call: ToolCall<'_>,
    shell: Option<&str>,
    directory: &str,
    size: TermSize,
) -> Result<StartRequest, ApiError> {
    let kind: Result<ShellKind, _> = shell.unwrap_or("bash").parse();
    let kind =
        kind.map_err(|error: ostler_model::UnknownShell| ApiError::value(error.to_string()))?;
    let cwd = call.resolve_directory(directory);
    let base_env = call.client_context.env.clone();
    let mut request = call.engine.shell_request(kind, cwd, size, base_env).await?;
    // The client's defaults apply to shells, too.
    let defaults = call.start_request(request.command.clone(), directory);
    request.options = request.options.over(defaults.options);
    // fish has no history expansion.
    if kind != ShellKind::Fish {
        let literal = (LITERAL_INPUT.into(), "1".into());
        request.options.set_env.push(literal);
    }
    Ok(request)
}

/// Columns and rows, where both are given or have defaults.
pub(super) fn parse_size(arguments: &Arguments) -> Option<TermSize> {
    let dimension = |name| arguments.count(name).and_then(|it| u16::try_from(it).ok());
    Some(TermSize {
        cols: dimension("cols")?,
        rows: dimension("rows")?,
    })
}
