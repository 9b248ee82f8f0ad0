//! `pty_run`: a command in a shell session, its exit status and exactly its output (C14).

use std::time::{Duration, Instant};

use ostler_engine::{Info, ShellCommand, ShellEnd, ShellRun, WaitEnd, Waited};
use serde_json::{Value, json};

use super::session::{self, SESSION};
use super::span;
use super::told::{self, Telling, clip, took};
use crate::error::Failure;
use crate::mcp::context::Call;
use crate::mcp::progress::Of;
use crate::mcp::reply::Reply;
use crate::mcp::tools::core::WAIT_LIMIT_MS;
use crate::mcp::tools::registry::{Answer, Definition, Hints};
use crate::params::{Arguments, Kind, Parameter};

/// How long a call waits for the command's end, in milliseconds.
const WAIT_MS: i64 = 30_000;
/// The largest offset that can be asked for.
pub(super) const OFFSET_LIMIT: i64 = i64::MAX;

pub(super) const DEFINITION: Definition = Definition {
    name: "pty_run",
    title: "Run in a shell session",
    about: "Type a command into a session's shell; answers when it ended: exit status, cwd, its \
            output. Earlier if it asks for something, or after wait_ms; it then goes on: answer \
            with pty_write, wait on with pty_run and offset. cd, exports and jobs stay.",
    parameters: &[
        SESSION,
        Parameter::optional("script", Kind::Text, "May have several lines"),
        Parameter::optional(
            "offset",
            Kind::Integer(0, OFFSET_LIMIT),
            "Instead of script: wait on for the command whose answer told it",
        ),
        Parameter::optional(
            "wait_ms",
            Kind::Integer(0, WAIT_LIMIT_MS),
            "At most; 45 s a call",
        )
        .or(WAIT_MS),
    ],
    hints: Hints::RUNS,
    output: None,
    call: |call, arguments| Box::pin(session::told(answer(call, arguments))),
};

/// What is waited for.
#[derive(Debug)]
enum Asked {
    /// The end of this script, to be typed first.
    Script(String),
    /// The end of the command whose output began here.
    Begun(u64),
}

async fn answer(call: Call<'_>, mut arguments: Arguments) -> Answer {
    let id = arguments.required_text("session");
    let asked = asked(&mut arguments)?;
    let before = session::living(call, &id, "nothing was run")?;
    let at_most = Duration::from_millis(arguments.count("wait_ms").unwrap_or_default());
    let patience = call.link.patience();
    let at_most = patience.map_or(at_most, |patience| patience.min(at_most));
    let begun = Instant::now();
    let ran = match asked {
        Asked::Script(script) => {
            let command = ShellCommand {
                script,
                at_most,
                lease: None,
                once: None,
            };
            let running = call.engine.run_in_shell(call.caller, &id, command);
            call.link.attend(call, Of::Name(&id), running).await
        }
        Asked::Begun(from) => {
            let waiting = call.engine.wait_in_shell(call.caller, &id, from, at_most);
            call.link.attend(call, Of::Name(&id), waiting).await
        }
    };
    let ran = ran.map_err(|error| session::failure(call, &id, error))?;
    Ok(told(call, (ran, &before), begun.elapsed()).await?)
}

fn asked(arguments: &mut Arguments) -> Result<Asked, Failure> {
    match (arguments.text("script"), arguments.count("offset")) {
        (Some(script), None) if script.trim().is_empty() => Err(Failure::value(
            "parameter 'script' is empty; allowed: a command",
        )),
        (Some(script), None) => Ok(Asked::Script(script)),
        (None, Some(from)) => Ok(Asked::Begun(from)),
        (Some(_), Some(_)) => Err(Failure::value(
            "parameters 'script' and 'offset' are both given; allowed: one of them",
        )),
        (None, None) => Err(Failure::value(
            "parameter 'script' is missing; allowed: a command, or offset to wait on for one",
        )),
    }
}

async fn told(
    call: Call<'_>,
    (ran, before): (ShellRun, &Info),
    time: Duration,
) -> Result<Reply, Failure> {
    let ShellRun {
        end,
        from,
        to,
        info,
    } = ran;
    let id = info.id.short();
    let lives = session::find(call, &id).is_ok_and(|info| !info.state.is_finished());
    // `exec` in a shell puts another program in its place.
    let replaced = end == ShellEnd::ShellEnded && lives;
    let first = if replaced {
        format!(
            "[{id} another program took the shell's place, {}]",
            took(time)
        )
    } else {
        first_line(&id, &end, time)
    };
    let unread = call.unread(before);
    let end_offset = info.output_end;
    let waited = Waited {
        cursor: info.cursor(),
        why: match &end {
            ShellEnd::Prompt(prompt) => WaitEnd::Prompt(prompt.clone()),
            ShellEnd::ShellEnded if !replaced => WaitEnd::Exit,
            ShellEnd::ShellEnded
            | ShellEnd::Finished { .. }
            | ShellEnd::Incomplete
            | ShellEnd::Silent
            | ShellEnd::AtMost => WaitEnd::Nothing,
        },
        info,
    };
    let telling = Telling::new(call, waited);
    let mut telling = match end {
        // A full-screen program may have begun.
        ShellEnd::Prompt(_) | ShellEnd::AtMost => telling.with_so_far(from, to).await?,
        ShellEnd::Finished { .. }
        | ShellEnd::Incomplete
        | ShellEnd::Silent
        | ShellEnd::ShellEnded => telling.with_exactly(from, to).await?,
    };
    if let Some(unread) = unread {
        let stretch = (unread, before.output_end.min(from));
        if span::has_line(call, before, stretch).await {
            telling.note(format!(
                "before that, other output came that you were not shown: pty_read \
                 {{\"session\":\"{id}\",\"view\":\"text\",\"offset\":{unread}}}"
            ));
        }
        telling.shown_from(unread);
    }
    if matches!(end, ShellEnd::Finished { .. }) {
        // The prompt behind it.
        telling.shown_to(end_offset);
    }
    for (name, value) in fields(&end) {
        telling.field(name, value);
    }
    telling.field("execution_time", crate::wire::info::millis_as_seconds(time));
    telling.next(if replaced {
        Some("the session goes on with it: pty_write and pty_read".to_owned())
    } else {
        next(&id, &end, from)
    });
    Ok(telling.reply(Some(first)).await)
}

/// How it came out, in one line.
fn first_line(id: &str, end: &ShellEnd, time: Duration) -> String {
    let time = took(time);
    match end {
        ShellEnd::Finished { status, cwd } => {
            let cwd = cwd
                .as_deref()
                .map_or_else(String::new, |cwd| format!(" | cwd {}", clip(cwd)));
            format!("[{id} exit {status}, {time}{cwd}]")
        }
        ShellEnd::Prompt(_) => format!("[{id} the command waits for input, {time}]"),
        ShellEnd::Incomplete => format!("[{id} the command is incomplete, {time}]"),
        ShellEnd::Silent => format!("[{id} exit status unknown, {time}]"),
        ShellEnd::ShellEnded => format!("[{id} the shell has ended, {time}]"),
        ShellEnd::AtMost => format!("[{id} still running, {time}]"),
    }
}

/// What else is to be known, and how to go on.
fn next(id: &str, end: &ShellEnd, from: u64) -> Option<String> {
    match end {
        ShellEnd::Finished { .. } | ShellEnd::Incomplete => None,
        ShellEnd::Prompt(_) => Some(format!(
            "after the answer, wait: pty_run {{\"session\":\"{id}\",\"offset\":{from}}}"
        )),
        ShellEnd::Silent => Some(
            "the shell reads again without having told how the command ended: its prompt was \
             changed. Type with pty_write instead, or open another session"
                .to_owned(),
        ),
        ShellEnd::ShellEnded => Some("open another session with pty_start".to_owned()),
        ShellEnd::AtMost => Some(format!(
            "it goes on; wait: pty_run {{\"session\":\"{id}\",\"offset\":{from}}}; \
             interrupt: pty_write {{\"session\":\"{id}\",\"keys\":[\"ctrl-c\"]}}"
        )),
    }
}

fn fields(end: &ShellEnd) -> Vec<(&'static str, Value)> {
    let word = |word: &str| ("end", Value::from(word));
    match end {
        ShellEnd::Finished { status, cwd } => vec![
            word("finished"),
            ("exit_status", json!(status)),
            ("cwd", json!(cwd)),
        ],
        ShellEnd::Prompt(prompt) => vec![word("prompt"), ("prompt", told::fields(prompt))],
        ShellEnd::Incomplete => vec![word("incomplete")],
        ShellEnd::Silent => vec![word("silent")],
        ShellEnd::ShellEnded => vec![word("shell_ended")],
        ShellEnd::AtMost => vec![word("running")],
    }
}
