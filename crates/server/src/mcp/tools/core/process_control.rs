//! `process_control`: act on what runs, with a result per id.

use std::time::Duration;

use futures_util::future::join_all;
use ostler_engine::{CleanOutcome, StopRequest, Typing, WaitFor};
use ostler_journal::Pattern;
use ostler_model::signal::SignalError;
use ostler_model::{ErrorCode, Io, Signal, Stdin};
use ostler_terminal::Piece;
use serde_json::{Value, json};

use super::action::{self, Action, IDS, about};
use super::select::Selection;
use super::shown;
use super::until::{self, PATTERN, WAIT_LIMIT_MS, unexplained};
use crate::error::Failure;
use crate::mcp::context::Call;
use crate::mcp::reply::Reply;
use crate::mcp::tools::command::status::seconds;
use crate::mcp::tools::registry::{Answer, Definition, Hints};
use crate::mcp::waiting;
use crate::params::{Arguments, Kind, Parameter};

const ACTIONS: &[Action] = &[
    Action {
        word: "write",
        needs: &["ids", "text"],
        takes: &["enter", "wait_ms"],
    },
    Action {
        word: "close_input",
        needs: &["ids"],
        takes: &[],
    },
    Action {
        word: "signal",
        needs: &["ids", "signal"],
        takes: &[],
    },
    Action {
        word: "pause",
        needs: &["ids"],
        takes: &[],
    },
    Action {
        word: "resume",
        needs: &["ids"],
        takes: &[],
    },
    Action {
        word: "stop",
        needs: &["ids"],
        takes: &["force", "reason"],
    },
    Action {
        word: "clean",
        needs: &["ids"],
        takes: &[],
    },
    Action {
        word: "clear_output",
        needs: &["ids"],
        takes: &[],
    },
    Action {
        word: "notify",
        needs: &["ids", "pattern"],
        takes: &[],
    },
];

pub(super) const DEFINITION: Definition = Definition {
    name: "process_control",
    title: "",
    about: "Act on ids, with a result for each. write: text to an open input. stop: end it with \
            everything it started, killed after 5 s (force: at once). clean: forget ended ones \
            and their output. notify: tell me later when a line matches pattern.",
    parameters: &[
        Parameter::required(
            "action",
            Kind::Choice(&[
                "write",
                "close_input",
                "signal",
                "pause",
                "resume",
                "stop",
                "clean",
                "clear_output",
                "notify",
            ]),
            "",
        ),
        Parameter {
            required: true,
            ..IDS
        },
        Parameter::optional("text", Kind::Text, ""),
        Parameter::optional("enter", Kind::Flag, "End text with a newline").or_flag(true),
        Parameter::optional(
            "wait_ms",
            Kind::Integer(0, WAIT_LIMIT_MS),
            "After write: for its reply",
        ),
        Parameter::optional("signal", Kind::Text, ""),
        Parameter::optional("force", Kind::Flag, ""),
        Parameter::optional("reason", Kind::Text, ""),
        unexplained(PATTERN),
    ],
    hints: Hints::RUNS,
    output: None,
    call: |call, arguments| Box::pin(answer(call, arguments)),
};

/// What is to be done to each id.
#[derive(Debug)]
enum Deed {
    Write(Vec<u8>),
    CloseInput,
    Signal(Signal),
    Pause,
    Resume,
    Stop(StopRequest),
    Clean,
    ClearOutput,
    Notify(Pattern),
}

async fn answer(call: Call<'_>, mut arguments: Arguments) -> Answer {
    let word = action::chosen(ACTIONS, &mut arguments)?;
    let ids = action::ids(&mut arguments)?;
    let deed = deed(word, &mut arguments)?;
    if let (Deed::Write(text), Some(at_most)) = (&deed, until::wait(&arguments)) {
        return converse(call, &ids, text, at_most).await;
    }
    let results = join_all(ids.iter().map(|id| carry_out(call, id, &deed))).await;
    Ok(told(&ids, results))
}

/// How much of a text was written.
struct Written {
    bytes: u64,
    taken: u64,
}

/// Writes and answers what it replies: what it prints until it asks for more or ends.
async fn converse(call: Call<'_>, ids: &[String], text: &[u8], at_most: Duration) -> Answer {
    let [id] = ids else {
        return Err(Failure::value(
            "parameter 'wait_ms' with several 'ids'; allowed: one id, or process wait afterwards",
        )
        .into());
    };
    has_input(call, id)?;
    let before = call.info(id)?.cursor();
    let typed = write(call, id, text).await?;
    let waited = waiting::wait(call, id, &WaitFor::Prompt, Some(at_most)).await?;
    let mut shown = shown::shown(call, &waited, &Selection::from(before)).await?;
    if typed.taken < typed.bytes {
        let Written { bytes, taken } = typed;
        shown = shown.with_note(&format!("it took {taken} of {bytes} bytes"));
    }
    Ok(shown.reply())
}

/// Everything is checked before anything is done.
fn deed(word: &str, arguments: &mut Arguments) -> Result<Deed, Failure> {
    Ok(match word {
        "write" => {
            let mut text = arguments.required_text("text");
            if arguments.flag("enter") && !text.ends_with('\n') {
                text.push('\n');
            }
            Deed::Write(text.into_bytes())
        }
        "close_input" => Deed::CloseInput,
        "signal" => {
            let parsed: Result<Signal, SignalError> = arguments.required_text("signal").parse();
            let wrong = |error| Failure::value(format!("parameter 'signal': {error}"));
            Deed::Signal(parsed.map_err(wrong)?)
        }
        "pause" => Deed::Pause,
        "resume" => Deed::Resume,
        "stop" => Deed::Stop(StopRequest {
            force: arguments.flag("force"),
            grace: None,
            reason: arguments.text("reason"),
        }),
        "clean" => Deed::Clean,
        "clear_output" => Deed::ClearOutput,
        _ => match until::expression(arguments, "pattern")? {
            Some(pattern) => Deed::Notify(pattern),
            None => return Err(Failure::value("action 'notify' needs parameter 'pattern'")),
        },
    })
}

/// Does it to one id; the result's own fields.
async fn carry_out(call: Call<'_>, id: &str, deed: &Deed) -> Result<Value, Failure> {
    let (engine, caller) = (call.engine, call.caller);
    match deed {
        Deed::Write(bytes) => {
            has_input(call, id)?;
            let typed = write(call, id, bytes).await?;
            written(typed.taken, typed.bytes)
        }
        Deed::CloseInput => {
            has_input(call, id)?;
            engine.close_input(caller, id).await?;
            Ok(json!({"result": "input closed"}))
        }
        Deed::Signal(signal) => {
            engine.signal(caller, id, *signal).await?;
            Ok(json!({"result": format!("{signal} sent")}))
        }
        Deed::Pause => {
            engine.pause(caller, id).await?;
            Ok(json!({"result": "paused; its timeouts wait"}))
        }
        Deed::Resume => {
            engine.resume(caller, id).await?;
            Ok(json!({"result": "goes on"}))
        }
        Deed::Stop(request) => stop(call, id, request).await,
        Deed::Clean => {
            let outcomes = engine.clean(caller, &[id.to_owned()]).await?;
            cleaned(outcomes.into_iter().map(|(_, outcome)| outcome).next())
        }
        Deed::ClearOutput => {
            let bytes = engine.clear_output(caller, id).await?;
            Ok(json!({"result": format!("{bytes} bytes of output dropped")}))
        }
        Deed::Notify(pattern) => {
            let after = call.info(id)?.cursor();
            let news = call.desk.news();
            news.watch(call.caller, id, (pattern.clone(), after))?;
            Ok(json!({"result": "you will be told when a line matches"}))
        }
    }
}

/// Refused where nothing can be written, with what to do about it.
fn has_input(call: Call<'_>, id: &str) -> Result<(), Failure> {
    let info = call.info(id)?;
    let closed = match &info.spec.io {
        Io::Pipes { stdin } => *stdin != Stdin::Open,
        Io::Pty { .. } => false,
    };
    if info.state.is_finished() || !closed {
        return Ok(());
    }
    let failure = Failure::new(ErrorCode::ProcessControl, "its input is not open");
    Err(failure.with_hint("start it with exec and input \"open\""))
}

/// Writes to a pipe, or types: at a terminal a line ends with the Enter key.
async fn write(call: Call<'_>, id: &str, text: &[u8]) -> Result<Written, Failure> {
    if call.info(id)?.size().is_none() {
        let bytes = text.len() as u64;
        let taken = call.engine.write(call.caller, id, text.to_vec()).await?;
        return Ok(Written { bytes, taken });
    }
    let typing = Typing {
        pieces: vec![Piece::Text(String::from_utf8_lossy(text).into_owned())],
        lease: None,
    };
    let typed = call.engine.type_in(call.caller, id, typing).await?;
    Ok(Written {
        bytes: typed.bytes,
        taken: typed.taken,
    })
}

/// All of it, or how much; nothing at all is a failure.
fn written(taken: u64, given: u64) -> Result<Value, Failure> {
    if taken >= given {
        return Ok(json!({"result": format!("{given} bytes written")}));
    }
    let left = given - taken;
    Ok(json!({
        "result": format!(
            "{taken} of {given} bytes written: the command does not read; write the last {left} \
             bytes again when it does"
        ),
        "taken": taken,
    }))
}

async fn stop(call: Call<'_>, id: &str, request: &StopRequest) -> Result<Value, Failure> {
    let was_running = !call.info(id)?.state.is_finished();
    let info = call.engine.stop(call.caller, id, request.clone()).await?;
    call.told(&info);
    let ending = info.state.ending.as_ref();
    let how = ending.map_or_else(String::new, |ending| ending.describe());
    let result = if was_running {
        how
    } else {
        format!("it had ended before: {how}")
    };
    let mut told = json!({
        "result": result,
        "status": info.status().process,
        "exit_code": ending.and_then(|ending| ending.code),
        "signal": ending.and_then(|ending| ending.signal).map(|signal| signal.name()),
        "duration": seconds(info.duration()),
    });
    if !info.survivors.is_empty() {
        told["survivors"] = json!(info.survivors);
    }
    Ok(told)
}

fn cleaned(outcome: Option<CleanOutcome>) -> Result<Value, Failure> {
    use ErrorCode::{ProcessClean, ProcessNotFound};
    match outcome {
        Some(CleanOutcome::Cleaned) => Ok(json!({"result": "success"})),
        Some(CleanOutcome::Discarded) => {
            Ok(json!({"result": "success", "note": "changes nobody committed went with it"}))
        }
        Some(CleanOutcome::Running) => Err(Failure::new(
            ProcessClean,
            "it is still running; stop it first",
        )),
        Some(CleanOutcome::Failed(reason)) => Err(Failure::new(ProcessClean, reason)),
        Some(CleanOutcome::NotFound) | None => Err(Failure::new(
            ProcessNotFound,
            "Process not found or access denied",
        )),
    }
}

/// A result per id; an error only when nothing could be done at all.
fn told(ids: &[String], results: Vec<Result<Value, Failure>>) -> Reply {
    let mut failures: Vec<Failure> = Vec::new();
    let mut lines = Vec::with_capacity(ids.len());
    for (id, result) in ids.iter().zip(results) {
        let mut line = json!({"id": id});
        let fields = result.unwrap_or_else(|failure| {
            let told = json!({
                "result": format!("failed: {}", failure.message()),
                "error": failure.code,
            });
            failures.push(about(id, failure));
            told
        });
        if let (Some(line), Value::Object(fields)) = (line.as_object_mut(), fields) {
            line.extend(fields);
        }
        lines.push(line);
    }
    if failures.len() == ids.len() {
        return Reply::from(all(failures));
    }
    Reply::status(&json!({"results": lines}))
}

/// Several failures as one.
fn all(failures: Vec<Failure>) -> Failure {
    let messages: Vec<&str> = failures.iter().map(|it| it.message.as_str()).collect();
    let message = messages.join("; ");
    let first = failures.into_iter().next();
    let code = first
        .as_ref()
        .map_or(ErrorCode::ProcessControl, |it| it.code);
    Failure {
        code,
        message,
        hint: first.and_then(|it| it.hint),
        approval: None,
    }
}
