//! `pty_start`: a shell, or a program, in a terminal of its own.

use std::time::Duration;

use ostler_engine::{Face, StartRequest, WaitEnd};
use ostler_model::{Command, Cursor, ShellKind, TermSize, Text};

use super::session;
use super::settle::{self, Outcome, Until, Wait};
use super::told::Telling;
use crate::error::Failure;
use crate::mcp::consent;
use crate::mcp::context::Call;
use crate::mcp::reply::Interrupted;
use crate::mcp::tools::core::WAIT_LIMIT_MS;
use crate::mcp::tools::registry::{Answer, Definition, Hints};
use crate::mcp::tools::walls;
use crate::params::{Arguments, Kind, Parameter};

/// The longest time limit that can be asked for, in seconds: thirty days.
const TIMEOUT_LIMIT_S: i64 = 30 * 24 * 60 * 60;
/// How long a call waits for the first screen, in milliseconds.
const WAIT_MS: i64 = 3_000;

pub(super) const COLS: Parameter =
    Parameter::optional("cols", Kind::Integer(1, TermSize::COLS_MAX as i64), "").or(80);
pub(super) const ROWS: Parameter =
    Parameter::optional("rows", Kind::Integer(1, TermSize::ROWS_MAX as i64), "").or(24);

pub(super) const DEFINITION: Definition = Definition {
    name: "pty_start",
    title: "Open a terminal",
    about: "Start a shell (for pty_run), or a program (command: [\"python3\"], [\"vim\", \"a\"]) \
            in a terminal of its own. Answers the session's id and its first screen. It lives \
            until pty_close, its end or timeout.",
    parameters: &[
        Parameter::optional("command", Kind::List, "Program and arguments"),
        Parameter::optional(
            "shell",
            Kind::Choice(&["bash", "zsh", "fish"]),
            "Instead of command; default bash",
        ),
        Parameter::optional("cwd", Kind::Text, "Default: yours"),
        Parameter::optional("env", Kind::Map, "Variables to add"),
        COLS,
        ROWS,
        Parameter::optional(
            "timeout",
            Kind::Integer(1, TIMEOUT_LIMIT_S),
            "Seconds until it is killed; default never",
        ),
        Parameter::optional(
            "wait_ms",
            Kind::Integer(0, WAIT_LIMIT_MS),
            "At most, for it to draw or ask",
        )
        .or(WAIT_MS),
        Parameter::optional("description", Kind::Text, ""),
        Parameter::optional("labels", Kind::List, ""),
        Parameter::optional("isolation", walls::LEVELS, ""),
        walls::NETWORK,
        walls::WORKSPACE,
        walls::ALLOW_DEGRADED,
        walls::FORWARD,
        walls::SECRETS,
        walls::LIMITS,
        walls::APPROVAL,
    ],
    hints: Hints::RUNS,
    output: None,
    call: |call, arguments| Box::pin(session::told(answer(call, arguments))),
};

async fn answer(call: Call<'_>, mut arguments: Arguments) -> Answer {
    let request = request(call, &mut arguments).await?;
    let at_most = Duration::from_millis(arguments.count("wait_ms").unwrap_or_default());
    let begun = consent::begin(call, request).await?;
    let id = begun.id().short();
    // Until the answer is on its way the session is nobody's, and ends with the request (F7).
    let info = call.give_out(begun);
    let outcome = settle::of_start(settled(call, &id, at_most).await, info)?;
    Ok(Telling::of(call, outcome).started().await)
}

async fn settled(call: Call<'_>, id: &str, at_most: Duration) -> Result<Outcome, Interrupted> {
    let wait = Wait {
        until: Until::Settled,
        at_most,
    };
    let mut outcome = settle::wait(call, id, &wait, Some(Cursor::START)).await?;
    if outcome.waited.why == WaitEnd::AtMost {
        // Nothing in particular was waited for.
        outcome.waited.why = WaitEnd::Nothing;
    }
    Ok(outcome)
}

/// Everything is checked before anything is started.
async fn request(call: Call<'_>, arguments: &mut Arguments) -> Result<StartRequest, Failure> {
    let has_command = arguments.is_given("command");
    let command = arguments.list("command");
    let shell = arguments.text("shell");
    let directory = arguments.text("cwd");
    if directory.as_deref() == Some("") {
        return Err(Failure::value(
            "parameter 'cwd' is empty; allowed: the path of a directory, or leave it out",
        ));
    }
    let directory = directory.unwrap_or_default();
    let size = size(arguments).unwrap_or(TermSize { cols: 80, rows: 24 });
    let mut request = match (has_command, shell) {
        (true, Some(_)) => {
            return Err(Failure::value(
                "parameters 'command' and 'shell' are both given; allowed: one of them",
            ));
        }
        (true, None) => of_program(call, command, &directory)?,
        (false, shell) => of_shell(call, shell.as_deref(), &directory, size).await?,
    };
    request.pty = Some(size);
    request.face = Face::Pty;
    let variables = arguments.map("env").into_iter();
    request
        .set_env
        .extend(variables.map(|(name, value)| (name.into(), value.into())));
    request.timeout = arguments.count("timeout").map(Duration::from_secs);
    request.description = arguments.text("description").unwrap_or_default();
    request.labels = arguments.list("labels");
    walls::put_in(&mut request, arguments)?;
    Ok(request)
}

fn of_program(
    call: Call<'_>,
    command: Vec<String>,
    directory: &str,
) -> Result<StartRequest, Failure> {
    let mut words = command.into_iter().map(Text::from);
    let Some(program) = words.next() else {
        return Err(Failure::value(
            "parameter 'command' is empty; allowed: a program and its arguments as in \
             [\"python3\", \"-q\"], or leave it out for a shell",
        ));
    };
    let command = Command::Argv {
        program,
        args: words.collect(),
    };
    Ok(call.start(command, directory))
}

/// A shell that tells where commands begin and end.
async fn of_shell(
    call: Call<'_>,
    shell: Option<&str>,
    directory: &str,
    size: TermSize,
) -> Result<StartRequest, Failure> {
    let kind: Result<ShellKind, _> = shell.unwrap_or("bash").parse();
    let kind =
        kind.map_err(|error: ostler_model::UnknownShell| Failure::value(error.to_string()))?;
    let cwd = call.directory(directory);
    let base_env = call.front.env.clone();
    let made = call.engine.shell_request(kind, cwd, size, base_env).await?;
    // What the front brings to each of its starts holds for shells, too.
    let front = call.start(made.command.clone(), directory);
    Ok(StartRequest {
        allowed: front.allowed,
        encoding: front.encoding,
        retention: front.retention,
        level: front.level,
        ..made
    })
}

/// Columns and rows, where both are given or preset.
pub(super) fn size(arguments: &Arguments) -> Option<TermSize> {
    let of = |name| arguments.count(name).and_then(|it| u16::try_from(it).ok());
    Some(TermSize {
        cols: of("cols")?,
        rows: of("rows")?,
    })
}
