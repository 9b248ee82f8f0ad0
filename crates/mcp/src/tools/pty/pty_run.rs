//! `pty_run`: a command in a shell session, its exit status and exactly its output.

use std::time::{Duration, Instant};

use ostler_engine::{ExecutionInfo, ShellCommand, ShellEnd, ShellRun, WaitEnd, WaitOutcome};
use ostler_model::duration;
use ostler_terminal::ShellState;
use serde_json::{Value, json};

use super::output_text;
use super::prompt_text::{clip, prompt_fields};
use super::session::{self, SESSION};
use super::session_reply::SessionReply;
use crate::progress::ProgressTarget;
use crate::reply::ToolReply;
use crate::tool_call::ToolCall;
use crate::tools::params::WAIT_LIMIT_MS;
use crate::tools::registry::{ToolDefinition, ToolHints, ToolResult};
use ostler_interface::error::ApiError;
use ostler_interface::params::{Arguments, Parameter, ParameterKind};

/// The default wait for the command's end, in milliseconds.
const WAIT_MS: i64 = 30_000;
/// The largest offset in a call.
pub(super) const OFFSET_LIMIT: i64 = i64::MAX;

pub(super) const DEFINITION: ToolDefinition = ToolDefinition {
    name: "pty_run",
    title: "Run in a shell session",
    about: "Type a command into a session's shell; answers when it ended: exit status, cwd, its \
            output. Earlier if it asks for something, or after wait_ms; it then goes on: answer \
            with pty_write, wait on with pty_run and offset. cd, exports and jobs stay.",
    parameters: &[
        SESSION,
        Parameter::optional("script", ParameterKind::Text, "May have several lines"),
        Parameter::optional(
            "offset",
            ParameterKind::Integer(0, OFFSET_LIMIT),
            "Instead of script: wait on for the command whose answer told it",
        ),
        Parameter::optional(
            "wait_ms",
            ParameterKind::Integer(0, WAIT_LIMIT_MS),
            "At most; 45 s a call",
        )
        .with_default(WAIT_MS),
    ],
    hints: ToolHints::EXECUTES,
    output: None,
    handler: |call, arguments| {
        Box::pin(session::with_session_error_code(run_tool(call, arguments)))
    },
};

/// What to wait for.
#[derive(Debug)]
enum RunRequest {
    /// The end of this script, which is typed first.
    Script(String),
    /// The end of the command whose output began at this offset.
    Running(u64),
}

async fn run_tool(call: ToolCall<'_>, mut arguments: Arguments) -> ToolResult {
    let id = arguments.required_text("session");
    let request = parse_request(&mut arguments)?;
    let idempotency = match (&request, call.context.attempt()) {
        (RunRequest::Script(_), Some(attempt)) => Some(attempt.next_input()?),
        (RunRequest::Script(_) | RunRequest::Running(_), _) => None,
    };
    // A session may have ended by what an earlier attempt at this request typed.
    let before = if idempotency.is_some_and(|it| it.is_retry) {
        session::find_session(call, &id)?
    } else {
        session::find_running(call, &id, "nothing was run")?
    };
    let timeout = Duration::from_millis(arguments.count("wait_ms").unwrap_or_default());
    let max_wait = call.context.max_wait();
    let timeout = max_wait.map_or(timeout, |patience| patience.min(timeout));
    let started_at = Instant::now();
    let timed = match &request {
        RunRequest::Running(from) => TimedPart::Wait(Some(*from)),
        RunRequest::Script(_) if idempotency.is_some_and(|it| it.is_retry) => TimedPart::Wait(None),
        RunRequest::Script(_) => TimedPart::Command,
    };
    let result = match request {
        RunRequest::Script(script) => {
            let command = ShellCommand {
                script,
                timeout,
                lease: None,
                idempotency,
            };
            let running = call.engine.run_in_shell(call.caller, &id, command);
            call.run_with_progress(ProgressTarget::Name(&id), running)
                .await
        }
        RunRequest::Running(from) => {
            let waiting = call.engine.wait_in_shell(call.caller, &id, from, timeout);
            call.run_with_progress(ProgressTarget::Name(&id), waiting)
                .await
        }
    };
    let shell_run = result.map_err(|error| session::session_failure(call, &id, error))?;
    let time = CallTime {
        elapsed: started_at.elapsed(),
        timed,
    };
    Ok(run_reply(call, shell_run, &before, time).await?)
}

/// How long a call took.
#[derive(Debug, Clone, Copy)]
struct CallTime {
    elapsed: Duration,
    timed: TimedPart,
}

/// What the time of a call measures.
#[derive(Debug, Clone, Copy)]
enum TimedPart {
    /// The command, from its typing on.
    Command,
    /// The wait for a command that was typed before: the one whose output began at this offset, or
    /// that of an earlier attempt at this request.
    Wait(Option<u64>),
}

impl CallTime {
    /// As text of the first line.
    fn text(self) -> String {
        let elapsed = duration::seconds(self.elapsed);
        match self.timed {
            TimedPart::Command => elapsed,
            TimedPart::Wait(_) => format!("waited {elapsed}"),
        }
    }

    /// The name of its field.
    const fn field(self) -> &'static str {
        match self.timed {
            TimedPart::Command => "execution_time",
            TimedPart::Wait(_) => "waited_time",
        }
    }

    /// The offset in the call.
    const fn offset(self) -> Option<u64> {
        match self.timed {
            TimedPart::Command => None,
            TimedPart::Wait(offset) => offset,
        }
    }
}

fn parse_request(arguments: &mut Arguments) -> Result<RunRequest, ApiError> {
    match (arguments.text("script"), arguments.count("offset")) {
        (Some(script), None) if script.trim().is_empty() => Err(ApiError::value(
            "parameter 'script' is empty; allowed: a command",
        )),
        (Some(script), None) => Ok(RunRequest::Script(script)),
        (None, Some(from)) => Ok(RunRequest::Running(from)),
        (Some(_), Some(_)) => Err(ApiError::value(
            "parameters 'script' and 'offset' are both given; allowed: one of them",
        )),
        (None, None) => Err(ApiError::value(
            "parameter 'script' is missing; allowed: a command, or offset to wait on for one",
        )),
    }
}

async fn run_reply(
    call: ToolCall<'_>,
    shell_run: ShellRun,
    before: &ExecutionInfo,
    time: CallTime,
) -> Result<ToolReply, ApiError> {
    let ShellRun {
        end,
        from,
        to,
        info,
    } = shell_run;
    let id = info.id.short();
    let session = session::find_session(call, &id);
    let is_alive = session.as_ref().is_ok_and(|info| !info.state.is_finished());
    let ending = session.ok().and_then(|info| session::ending_text(&info));
    // `exec` in a shell replaces it with another program.
    let is_replaced = end == ShellEnd::ShellEnded && is_alive;
    let first = if is_replaced {
        format!(
            "[{id} another program took the shell's place, {}]",
            time.text()
        )
    } else {
        first_line(&id, &end, ending.as_deref(), time)
    };
    let unread = call.unread_from(before);
    let end_offset = info.output_end;
    let waited = WaitOutcome {
        cursor: info.cursor(),
        end: match &end {
            ShellEnd::Prompt(prompt) => WaitEnd::Prompt(prompt.clone()),
            ShellEnd::ShellEnded if !is_replaced => WaitEnd::Exit,
            ShellEnd::ShellEnded
            | ShellEnd::Finished { .. }
            | ShellEnd::Incomplete
            | ShellEnd::NoMarker
            | ShellEnd::TimedOut => WaitEnd::Nothing,
        },
        info,
    };
    let reply = SessionReply::new(call, waited);
    let mut reply = match end {
        // A full-screen program may have started.
        ShellEnd::Prompt(_) | ShellEnd::TimedOut => reply.with_so_far(from, to).await?,
        ShellEnd::Finished { .. }
        | ShellEnd::Incomplete
        | ShellEnd::NoMarker
        | ShellEnd::ShellEnded => reply.with_exactly(from, to).await?,
    };
    if let Some(unread) = unread {
        let until = before.output_end.min(from);
        if output_text::has_line(call, before, unread, until).await {
            reply.add_note(format!(
                "before that, other output came that you were not shown: pty_read \
                 {{\"session\":\"{id}\",\"view\":\"text\",\"offset\":{unread}}}"
            ));
        }
        reply.extend_shown_start(unread);
    }
    if matches!(end, ShellEnd::Finished { .. }) {
        // The prompt after it.
        reply.extend_shown_end(end_offset);
        reply = reply.of_ended_command();
    }
    for (name, value) in end_fields(&end) {
        reply.set_field(name, value);
    }
    reply.set_field(time.field(), duration::as_seconds(time.elapsed));
    reply.set_next(if is_replaced {
        Some("the session goes on with it: pty_write and pty_read".to_owned())
    } else if end == ShellEnd::NoMarker && time.offset().is_some() {
        Some(step_without_end(call, &id).await)
    } else {
        next_step(&id, &end, from)
    });
    Ok(reply.into_reply(Some(first)).await)
}

/// The result of the command, in one line.
fn first_line(id: &str, end: &ShellEnd, ending: Option<&str>, time: CallTime) -> String {
    let elapsed_text = time.text();
    match end {
        ShellEnd::Finished { status, cwd } => {
            let cwd = cwd
                .as_deref()
                .map_or_else(String::new, |cwd| format!(" | cwd {}", clip(cwd)));
            format!("[{id} exit {status}, {elapsed_text}{cwd}]")
        }
        ShellEnd::Prompt(_) => format!("[{id} the command waits for input, {elapsed_text}]"),
        ShellEnd::Incomplete => format!("[{id} the command is incomplete, {elapsed_text}]"),
        ShellEnd::NoMarker => match time.offset() {
            None => format!("[{id} exit status unknown, {elapsed_text}]"),
            Some(from) => {
                format!("[{id} no end of a command was found from offset {from}, {elapsed_text}]")
            }
        },
        ShellEnd::ShellEnded => {
            let ending = ending.map_or_else(String::new, |it| format!(" ({})", clip(it)));
            format!("[{id} the shell has ended{ending}, {elapsed_text}]")
        }
        ShellEnd::TimedOut => format!("[{id} still running, {elapsed_text}]"),
    }
}

/// How to continue where no command ended after the offset of the call.
async fn step_without_end(call: ToolCall<'_>, id: &str) -> String {
    match call.engine.shell_state(call.caller, id).await {
        Ok(ShellState::Prompt { .. }) => {
            "the shell is at its prompt: run a command with script; pty_read shows what there is"
                .to_owned()
        }
        Ok(ShellState::Running { since, .. }) => {
            format!("a command runs; wait: pty_run {{\"session\":\"{id}\",\"offset\":{since}}}")
        }
        Ok(ShellState::Unknown | ShellState::Ended { .. } | ShellState::Incomplete { .. })
        | Err(_) => "pty_read shows what there is".to_owned(),
    }
}

/// Notes, and how to continue.
fn next_step(id: &str, end: &ShellEnd, from: u64) -> Option<String> {
    match end {
        ShellEnd::Finished { .. } | ShellEnd::Incomplete => None,
        ShellEnd::Prompt(_) => Some(format!(
            "after the answer, wait: pty_run {{\"session\":\"{id}\",\"offset\":{from}}}"
        )),
        ShellEnd::NoMarker => Some(
            "the shell reads again without having told how the command ended: its prompt was \
             changed. Type with pty_write instead, or open another session"
                .to_owned(),
        ),
        ShellEnd::ShellEnded => Some("open another session with pty_start".to_owned()),
        ShellEnd::TimedOut => Some(format!(
            "it goes on; wait: pty_run {{\"session\":\"{id}\",\"offset\":{from}}}; \
             interrupt: pty_write {{\"session\":\"{id}\",\"keys\":[\"ctrl-c\"]}}"
        )),
    }
}

fn end_fields(end: &ShellEnd) -> Vec<(&'static str, Value)> {
    let word = |word: &str| ("end", Value::from(word));
    match end {
        ShellEnd::Finished { status, cwd } => vec![
            word("finished"),
            ("exit_status", json!(status)),
            ("cwd", json!(cwd)),
        ],
        ShellEnd::Prompt(prompt) => vec![word("prompt"), ("prompt", prompt_fields(prompt))],
        ShellEnd::Incomplete => vec![word("incomplete")],
        ShellEnd::NoMarker => vec![word("silent")],
        ShellEnd::ShellEnded => vec![word("shell_ended")],
        ShellEnd::TimedOut => vec![word("running")],
    }
}
