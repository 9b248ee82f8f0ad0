//! `process_control`: act on running executions, with a result per id.

use std::time::Duration;

use futures_util::future::join_all;
use ostler_engine::{CleanOutcome, StopRequest, WaitFor};
use ostler_journal::Pattern;
use ostler_model::duration;
use ostler_model::signal::SignalError;
use ostler_model::{ErrorCode, Io, Signal, StdinSource};
use serde_json::{Value, json};

use super::input::InputArguments;
use super::terminal;
use crate::reply::ToolReply;
use crate::tool_call::ToolCall;
use crate::tools::execution::{execution_reply, repl};
use crate::tools::params::action::{self, ID, IDS, ToolAction, with_id};
use crate::tools::params::output_range::OutputSelection;
use crate::tools::params::wait_for::{self, PATTERN, WAIT_LIMIT_MS};
use crate::tools::registry::{ToolDefinition, ToolHints, ToolResult};
use crate::wait;
use ostler_interface::error::ApiError;
use ostler_interface::params::{Arguments, Parameter, ParameterKind};

/// The default wait for the reaction to input.
const REACTION_TIMEOUT: Duration = Duration::from_secs(5);

const ACTIONS: &[ToolAction] = &[
    ToolAction {
        name: "write",
        required: &["ids"],
        optional: &["text", "keys", "enter", "wait_ms"],
    },
    ToolAction {
        name: "close_input",
        required: &["ids"],
        optional: &["wait_ms"],
    },
    ToolAction {
        name: "signal",
        required: &["ids", "signal"],
        optional: &[],
    },
    ToolAction {
        name: "pause",
        required: &["ids"],
        optional: &[],
    },
    ToolAction {
        name: "resume",
        required: &["ids"],
        optional: &[],
    },
    ToolAction {
        name: "stop",
        required: &["ids"],
        optional: &["force", "reason"],
    },
    ToolAction {
        name: "clean",
        required: &["ids"],
        optional: &[],
    },
    ToolAction {
        name: "clear_output",
        required: &["ids"],
        optional: &[],
    },
    ToolAction {
        name: "notify",
        required: &["ids", "pattern"],
        optional: &[],
    },
];

pub(super) const DEFINITION: ToolDefinition = ToolDefinition {
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
            ParameterKind::Choice(&[
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
        Parameter::optional("text", ParameterKind::Text, "What to write"),
        Parameter::optional(
            "keys",
            ParameterKind::List,
            "After text, to a terminal: enter, tab, escape, up, ctrl-c, f1, :",
        ),
        Parameter::optional(
            "enter",
            ParameterKind::Flag,
            "Newline after text; default true, false with keys",
        ),
        Parameter::optional(
            "wait_ms",
            ParameterKind::Integer(0, WAIT_LIMIT_MS),
            "For the reaction; default 5000",
        ),
        Parameter::optional("signal", ParameterKind::Text, "INT, HUP, USR1 …"),
        Parameter::optional("force", ParameterKind::Flag, "stop: at once"),
        PATTERN,
        Parameter::optional("reason", ParameterKind::Text, "stop: for the record"),
    ],
    hints: ToolHints::EXECUTES,
    output: None,
    handler: |call, arguments| Box::pin(run_tool(call, arguments)),
};

/// The action on each id.
#[derive(Debug)]
enum ControlAction {
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

async fn run_tool(call: ToolCall<'_>, mut arguments: Arguments) -> ToolResult {
    let word = action::parse_action(ACTIONS, &mut arguments)?;
    let ids = action::parse_ids(&mut arguments)?;
    let action = parse_control(word, &mut arguments)?;
    if let Some(timeout) = reaction_timeout(&ids, &action, &arguments)? {
        return act_and_wait(call, &ids[0], &action, timeout).await;
    }
    let results = join_all(ids.iter().map(|id| execute(call, id, &action))).await;
    Ok(results_reply(&ids, results))
}

/// How long to wait for the reaction; none where there is none, or none is requested.
fn reaction_timeout(
    ids: &[String],
    action: &ControlAction,
    arguments: &Arguments,
) -> Result<Option<Duration>, ApiError> {
    if !matches!(action, ControlAction::Write(_) | ControlAction::CloseInput) {
        return Ok(None);
    }
    let timeout = wait_for::parse_wait_ms(arguments);
    match (ids, timeout) {
        (_, Some(Duration::ZERO)) | ([_, _, ..], None) => Ok(None),
        ([_, _, ..], Some(_)) => Err(ApiError::value(
            "parameter 'wait_ms' with several 'ids'; allowed: one id, or process wait afterwards",
        )),
        (_, at_most) => Ok(Some(at_most.unwrap_or(REACTION_TIMEOUT))),
    }
}

/// Acts, and answers with the reaction: the output until the command asks for more or ends.
async fn act_and_wait(
    call: ToolCall<'_>,
    id: &str,
    action: &ControlAction,
    timeout: Duration,
) -> ToolResult {
    check_input_open(call, id)?;
    let info = call.info(id)?;
    let before = info.cursor();
    let mut short_write = None;
    if let ControlAction::Write(input) = action {
        if info.size().is_some() {
            return terminal::write_and_wait(call, &info, input, timeout).await;
        }
        let bytes = input.bytes()?;
        let accepted = call.engine.write(call.caller, id, bytes.clone()).await?;
        short_write = (accepted < bytes.len() as u64)
            .then(|| format!("it took {accepted} of {} bytes", bytes.len()));
    } else {
        call.engine.close_input(call.caller, id).await?;
    }
    let waited = wait::wait(call, id, &WaitFor::Prompt, Some(timeout)).await?;
    let mut reply =
        execution_reply::execution_reply(call, &waited, &OutputSelection::after(before)).await?;
    let silence_note =
        repl::silence_note(&waited).filter(|_| matches!(action, ControlAction::Write(_)));
    for note in short_write.into_iter().chain(silence_note) {
        reply = reply.with_note(&note);
    }
    Ok(reply.into_reply())
}

/// Every argument is validated before anything is done.
fn parse_control(word: &str, arguments: &mut Arguments) -> Result<ControlAction, ApiError> {
    Ok(match word {
        "write" => ControlAction::Write(InputArguments::parse(arguments)?),
        "close_input" => ControlAction::CloseInput,
        "signal" => {
            let parsed: Result<Signal, SignalError> = arguments.required_text("signal").parse();
            let wrong = |error| ApiError::value(format!("parameter 'signal': {error}"));
            ControlAction::Signal(parsed.map_err(wrong)?)
        }
        "pause" => ControlAction::Pause,
        "resume" => ControlAction::Resume,
        "stop" => ControlAction::Stop(StopRequest {
            force: arguments.flag("force"),
            grace: None,
            reason: arguments.text("reason"),
        }),
        "clean" => ControlAction::Clean,
        "clear_output" => ControlAction::ClearOutput,
        _ => match wait_for::parse_pattern(arguments, "pattern")? {
            Some(pattern) => ControlAction::Notify(pattern),
            None => return Err(ApiError::value("action 'notify' needs parameter 'pattern'")),
        },
    })
}

/// Acts on one id; returns the result's own fields.
async fn execute(call: ToolCall<'_>, id: &str, action: &ControlAction) -> Result<Value, ApiError> {
    let (engine, caller) = (call.engine, call.caller);
    match action {
        ControlAction::Write(input) => {
            check_input_open(call, id)?;
            let (accepted, bytes) = write_input(call, id, input).await?;
            write_result(accepted, bytes)
        }
        ControlAction::CloseInput => {
            check_input_open(call, id)?;
            engine.close_input(caller, id).await?;
            Ok(json!({"result": "input closed"}))
        }
        ControlAction::Signal(signal) => {
            engine.signal(caller, id, *signal).await?;
            Ok(json!({"result": format!("{signal} sent")}))
        }
        ControlAction::Pause => {
            engine.pause(caller, id).await?;
            Ok(json!({"result": "paused; its timeouts wait"}))
        }
        ControlAction::Resume => {
            engine.resume(caller, id).await?;
            Ok(json!({"result": "goes on"}))
        }
        ControlAction::Stop(request) => stop_process(call, id, request).await,
        ControlAction::Clean => {
            let outcomes = engine.clean(caller, &[id.to_owned()]).await?;
            clean_result(outcomes.into_iter().map(|(_, outcome)| outcome).next())
        }
        ControlAction::ClearOutput => {
            let bytes = engine.clear_output(caller, id).await?;
            Ok(json!({"result": format!("{bytes} bytes of output dropped")}))
        }
        ControlAction::Notify(pattern) => {
            let after = call.info(id)?.cursor();
            let news = call.state.notifications();
            news.watch_pattern(call.caller, id, pattern.clone(), after)?;
            Ok(json!({"result": "you will be told when a line matches"}))
        }
    }
}

/// Refuses input where none can be written, with a hint.
fn check_input_open(call: ToolCall<'_>, id: &str) -> Result<(), ApiError> {
    let info = call.info(id)?;
    let closed = match &info.spec.io {
        Io::Pipes { stdin } => *stdin != StdinSource::Open,
        Io::Pty { .. } => false,
    };
    if info.state.is_finished() || !closed {
        return Ok(());
    }
    let failure = ApiError::new(ErrorCode::ProcessControl, "its input is not open");
    Err(failure.with_hint("start it with exec and input \"open\""))
}

/// Writes to a pipe or a terminal; returns the accepted and the total bytes.
async fn write_input(
    call: ToolCall<'_>,
    id: &str,
    input: &InputArguments,
) -> Result<(u64, u64), ApiError> {
    if call.info(id)?.size().is_some() {
        let typed = terminal::type_input(call, id, input).await?;
        return Ok((typed.accepted, typed.bytes));
    }
    let bytes = input.bytes()?;
    let total = bytes.len() as u64;
    let accepted = call.engine.write(call.caller, id, bytes).await?;
    Ok((accepted, total))
}

/// Complete or partial success; no byte accepted is a failure.
fn write_result(accepted: u64, total: u64) -> Result<Value, ApiError> {
    if accepted >= total {
        return Ok(json!({"result": format!("{total} bytes written")}));
    }
    let remaining = total - accepted;
    Ok(json!({
        "result": format!(
            "{accepted} of {total} bytes written: the command does not read; write the last {remaining} \
             bytes again when it does"
        ),
        "taken": accepted,
    }))
}

async fn stop_process(
    call: ToolCall<'_>,
    id: &str,
    request: &StopRequest,
) -> Result<Value, ApiError> {
    let was_running = !call.info(id)?.state.is_finished();
    let info = call.engine.stop(call.caller, id, request.clone()).await?;
    call.mark_notified(&info);
    let ending = info.state.ending.as_ref();
    let ending_text = ending.map_or_else(String::new, |ending| ending.describe());
    let result = if was_running {
        ending_text
    } else {
        format!("it had ended before: {ending_text}")
    };
    let mut fields = json!({
        "result": result,
        "status": info.status().process,
        "exit_code": ending.and_then(|ending| ending.code),
        "signal": ending.and_then(|ending| ending.signal).map(|signal| signal.name()),
        "duration": duration::as_seconds(info.duration()),
    });
    if !info.survivors.is_empty() {
        fields["survivors"] = json!(info.survivors);
    }
    Ok(fields)
}

fn clean_result(outcome: Option<CleanOutcome>) -> Result<Value, ApiError> {
    use ErrorCode::{ProcessClean, ProcessNotFound};
    match outcome {
        Some(CleanOutcome::Cleaned) => Ok(json!({"result": "success"})),
        Some(CleanOutcome::Discarded) => {
            Ok(json!({"result": "success", "note": "changes nobody committed went with it"}))
        }
        Some(CleanOutcome::Running) => Err(ApiError::new(
            ProcessClean,
            "it is still running; stop it first",
        )),
        Some(CleanOutcome::Failed(reason)) => Err(ApiError::new(ProcessClean, reason)),
        Some(CleanOutcome::NotFound) | None => Err(ApiError::new(
            ProcessNotFound,
            "Process not found or access denied",
        )),
    }
}

/// A result per id; an error only when every id failed.
fn results_reply(ids: &[String], results: Vec<Result<Value, ApiError>>) -> ToolReply {
    let mut failures: Vec<ApiError> = Vec::new();
    let mut lines = Vec::with_capacity(ids.len());
    for (id, result) in ids.iter().zip(results) {
        let mut line = json!({"id": id});
        let fields = result.unwrap_or_else(|failure| {
            let fields = json!({
                "result": format!("failed: {}", failure.message()),
                "error": failure.code,
            });
            failures.push(with_id(id, failure));
            fields
        });
        if let (Some(line), Value::Object(fields)) = (line.as_object_mut(), fields) {
            line.extend(fields);
        }
        lines.push(line);
    }
    if failures.len() == ids.len() {
        return ToolReply::from(merge_failures(failures));
    }
    ToolReply::status(&json!({"results": lines}))
}

/// Merges several failures.
fn merge_failures(failures: Vec<ApiError>) -> ApiError {
    let messages: Vec<&str> = failures.iter().map(|it| it.message.as_str()).collect();
    let message = messages.join("; ");
    let first = failures.into_iter().next();
    let code = first
        .as_ref()
        .map_or(ErrorCode::ProcessControl, |it| it.code);
    let retryable = first.as_ref().is_some_and(|it| it.retryable);
    ApiError {
        code,
        message,
        hint: first.and_then(|it| it.hint),
        approval: None,
        spawn_failed: false,
        retryable,
    }
}
