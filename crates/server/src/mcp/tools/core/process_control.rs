//! `process_control`: act on what runs, with a result per id.

use std::time::Duration;

use futures_util::future::join_all;
use ostler_engine::{CleanOutcome, StopRequest, WaitFor};
use ostler_journal::Pattern;
use ostler_model::signal::SignalError;
use ostler_model::{ErrorCode, Io, Signal, Stdin};
use serde_json::{Value, json};

use super::action::{self, Action, ID, IDS, about};
use super::input::InputArguments;
use super::repl;
use super::select::Selection;
use super::shown;
use super::terminal;
use super::until::{self, PATTERN, WAIT_LIMIT_MS};
use crate::error::Failure;
use crate::mcp::context::Call;
use crate::mcp::reply::Reply;
use crate::mcp::tools::command::status::seconds;
use crate::mcp::tools::registry::{Answer, Definition, Hints};
use crate::mcp::waiting;
use crate::params::{Arguments, Kind, Parameter};

/// How long the reaction to what was written is waited for, unless a call says otherwise.
const REACTION: Duration = Duration::from_secs(5);

const ACTIONS: &[Action] = &[
    Action {
        word: "write",
        needs: &["ids"],
        takes: &["text", "keys", "enter", "wait_ms"],
    },
    Action {
        word: "close_input",
        needs: &["ids"],
        takes: &["wait_ms"],
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
    about: "Act on running commands. write: send text or keys, wait for the reaction, answer it. \
            close_input: end of file, then as write. stop: end it and all it started (TERM, KILL \
            after 5 s; force: KILL). signal: only send one. pause, resume. notify: a later answer \
            tells when a line matched pattern. clean: forget ended ones and their output; \
            clear_output: only that.",
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
            "What to do",
        ),
        Parameter {
            required: true,
            ..IDS
        },
        ID,
        Parameter::optional("text", Kind::Text, "What to write"),
        Parameter::optional(
            "keys",
            Kind::List,
            "After text, to a terminal: enter, tab, escape, up, ctrl-c, f1, :",
        ),
        Parameter::optional(
            "enter",
            Kind::Flag,
            "Newline after text; default true, false with keys",
        ),
        Parameter::optional(
            "wait_ms",
            Kind::Integer(0, WAIT_LIMIT_MS),
            "For the reaction; default 5000",
        ),
        Parameter::optional("signal", Kind::Text, "INT, HUP, USR1 …"),
        Parameter::optional("force", Kind::Flag, "stop: at once"),
        PATTERN,
        Parameter::optional("reason", Kind::Text, "stop: for the record"),
    ],
    hints: Hints::RUNS,
    output: None,
    call: |call, arguments| Box::pin(answer(call, arguments)),
};

/// What is to be done to each id.
#[derive(Debug)]
enum Deed {
    Write(InputArguments),
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
    if let Some(at_most) = reaction(&ids, &deed, &arguments)? {
        return converse(call, &ids[0], &deed, at_most).await;
    }
    let results = join_all(ids.iter().map(|id| carry_out(call, id, &deed))).await;
    Ok(told(&ids, results))
}

/// How long the reaction to a deed is waited for; none where it has none, or nobody asks.
fn reaction(
    ids: &[String],
    deed: &Deed,
    arguments: &Arguments,
) -> Result<Option<Duration>, Failure> {
    if !matches!(deed, Deed::Write(_) | Deed::CloseInput) {
        return Ok(None);
    }
    let at_most = until::wait(arguments);
    match (ids, at_most) {
        (_, Some(Duration::ZERO)) | ([_, _, ..], None) => Ok(None),
        ([_, _, ..], Some(_)) => Err(Failure::value(
            "parameter 'wait_ms' with several 'ids'; allowed: one id, or process wait afterwards",
        )),
        (_, at_most) => Ok(Some(at_most.unwrap_or(REACTION))),
    }
}

/// Does it and answers what that brings about: what it prints until it asks for more or ends.
async fn converse(call: Call<'_>, id: &str, deed: &Deed, at_most: Duration) -> Answer {
    has_input(call, id)?;
    let info = call.info(id)?;
    let before = info.cursor();
    let mut short = None;
    if let Deed::Write(input) = deed {
        if info.size().is_some() {
            return terminal::write(call, &info, input, at_most).await;
        }
        let bytes = input.bytes()?;
        let taken = call.engine.write(call.caller, id, bytes.clone()).await?;
        short = (taken < bytes.len() as u64)
            .then(|| format!("it took {taken} of {} bytes", bytes.len()));
    } else {
        call.engine.close_input(call.caller, id).await?;
    }
    let waited = waiting::wait(call, id, &WaitFor::Prompt, Some(at_most)).await?;
    let mut shown = shown::shown(call, &waited, &Selection::from(before)).await?;
    let mute = repl::mute(&waited).filter(|_| matches!(deed, Deed::Write(_)));
    for note in short.into_iter().chain(mute) {
        shown = shown.with_note(&note);
    }
    Ok(shown.reply())
}

/// Everything is checked before anything is done.
fn deed(word: &str, arguments: &mut Arguments) -> Result<Deed, Failure> {
    Ok(match word {
        "write" => Deed::Write(InputArguments::read(arguments)?),
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
        Deed::Write(input) => {
            has_input(call, id)?;
            let (taken, bytes) = write(call, id, input).await?;
            written(taken, bytes)
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

/// Writes to a pipe, or types; how many bytes were taken, and of how many.
async fn write(call: Call<'_>, id: &str, input: &InputArguments) -> Result<(u64, u64), Failure> {
    if call.info(id)?.size().is_some() {
        let typed = terminal::typed(call, id, input).await?;
        return Ok((typed.taken, typed.bytes));
    }
    let bytes = input.bytes()?;
    let given = bytes.len() as u64;
    let taken = call.engine.write(call.caller, id, bytes).await?;
    Ok((taken, given))
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
