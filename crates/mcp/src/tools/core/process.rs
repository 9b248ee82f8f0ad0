//! `process`: list, inspect, read output, wait.

use std::time::Duration;

use ostler_engine::{WaitEnd, WaitFor, WaitOutcome};
use ostler_model::{ErrorCode, Io, StdinSource};
use serde_json::{Map, Value, json};

use super::detail;
use super::terminal;
use crate::reply::{ResourceLink, ToolInterrupt, ToolReply};
use crate::tool_call::ToolCall;
use crate::tools::execution::execution_reply::{self, ExecutionReply, SEPARATOR};
use crate::tools::params::action::{self, ID, IDS, ToolAction, with_id};
use crate::tools::params::output_range::{
    CURSOR, GREP, MAX_CHARS, OutputSelection, RAW, SINCE, STREAM, TAIL,
};
use crate::tools::params::wait_for::{self, IDLE, PATTERN, UNTIL, WAIT_LIMIT_MS};
use crate::tools::registry::{ToolDefinition, ToolHints, ToolResult};
use crate::wait::{self, OnPrompt, WaitOptions};
use crate::wait_many;
use ostler_interface::cursor_argument::{CURSOR_PARAMETER, SINCE_PARAMETER, check_cursor};
use ostler_interface::error::ApiError;
use ostler_interface::params::{Arguments, Parameter, ParameterKind};

/// The default wait of action `wait`.
const WAIT: Duration = Duration::from_secs(30);
/// With fewer characters left, an execution among several is shown without output.
const MIN_CHARS: usize = 1_600;

const ACTIONS: &[ToolAction] = &[
    ToolAction {
        name: "list",
        required: &[],
        optional: &["labels", "status", "cursor"],
    },
    ToolAction {
        name: "output",
        required: &["ids"],
        optional: &[
            "cursor",
            "stream",
            "since",
            "tail",
            "grep",
            "raw",
            "max_chars",
        ],
    },
    ToolAction {
        name: "wait",
        required: &["ids"],
        optional: &[
            "wait_ms",
            "until",
            "pattern",
            "idle_ms",
            "all",
            "cursor",
            "stream",
            "since",
            "tail",
            "grep",
            "raw",
            "max_chars",
        ],
    },
    ToolAction {
        name: "screen",
        required: &["ids"],
        optional: &[],
    },
    ToolAction {
        name: "detail",
        required: &["ids"],
        optional: &[],
    },
];

pub(super) const DEFINITION: ToolDefinition = ToolDefinition {
    name: "process",
    title: "",
    about: "Look at what exec started; changes nothing. list: running ones first, then the newest. \
            output: what ids printed; with cursor the next page. wait: until one of ids (all: \
            each) ends or until holds, then its output. screen: what is on its terminal. detail: \
            times, exit, limits, use.",
    parameters: &[
        Parameter::required(
            "action",
            ParameterKind::Choice(&["list", "output", "wait", "screen", "detail"]),
            "What to show",
        ),
        IDS,
        ID,
        CURSOR,
        GREP,
        TAIL,
        STREAM,
        SINCE,
        UNTIL,
        PATTERN.with_description("Regex that wait waits for"),
        IDLE.unlisted(),
        Parameter::optional(
            "wait_ms",
            ParameterKind::Integer(0, WAIT_LIMIT_MS),
            "For wait; default 30000",
        ),
        Parameter::optional("all", ParameterKind::Flag, "wait: for each of ids"),
        Parameter::optional(
            "labels",
            ParameterKind::List,
            "list: those with all of these",
        ),
        Parameter::optional(
            "status",
            ParameterKind::Choice(&["running", "ended", "failed"]),
            "list: only these",
        ),
        RAW,
        MAX_CHARS,
    ],
    hints: ToolHints::READ_ONLY,
    output: None,
    handler: |call, arguments| Box::pin(run_tool(call, arguments)),
};

async fn run_tool(call: ToolCall<'_>, mut arguments: Arguments) -> ToolResult {
    match action::parse_action(ACTIONS, &mut arguments)? {
        "output" => show_output(call, arguments).await,
        "wait" => wait_for_ids(call, arguments).await,
        "screen" => terminal::show_screen(call, &action::parse_ids(&mut arguments)?).await,
        "detail" => Ok(detail::details(call, &action::parse_ids(&mut arguments)?)?),
        _ => Ok(detail::list(call, &mut arguments)?),
    }
}

async fn show_output(call: ToolCall<'_>, mut arguments: Arguments) -> ToolResult {
    let (ids, selection) = parse_selection(call, &mut arguments)?;
    let mut outcomes = Vec::with_capacity(ids.len());
    for id in &ids {
        let info = call.info(id)?;
        outcomes.push(WaitOutcome {
            cursor: info.cursor(),
            end: WaitEnd::Nothing,
            info,
        });
    }
    Ok(render_outcomes(call, &outcomes, &selection, |_| true).await?)
}

async fn wait_for_ids(call: ToolCall<'_>, mut arguments: Arguments) -> ToolResult {
    let (ids, mut selection) = parse_selection(call, &mut arguments)?;
    // A wait shows the end of the output, and the failure lines before it.
    selection.paged = false;
    let timeout = wait_for::parse_wait_ms(&arguments).unwrap_or(WAIT);
    let all = arguments.flag("all");
    let reason = wait_for::parse_wait_for(&mut arguments, selection.query.from)?;
    for id in &ids {
        wait_for::check_can_be_ready(&call.info(id)?, &reason)?;
    }
    let outcomes = match ids.as_slice() {
        [id] => vec![wait_one(call, id, &reason, timeout).await?],
        _ => wait_many::wait_many(call, &ids, &reason, all, timeout).await?,
    };
    let single = outcomes.len() == 1;
    let shows_output = |it: &WaitOutcome| single || it.end != WaitEnd::TimedOut;
    let reply = render_outcomes(call, &outcomes, &selection, shows_output).await?;
    Ok(match outcomes.as_slice() {
        [outcome] => with_time_limit_failure(reply, outcome),
        _ => reply,
    })
}

/// The wait for the end of a command that its time limit ended is an error, as the start of one is.
fn with_time_limit_failure(reply: ToolReply, outcome: &WaitOutcome) -> ToolReply {
    let is_time_limit = outcome.error_code() == Some(ErrorCode::CommandTimeout);
    let failure = is_time_limit.then(|| execution_reply::ending_failure(&outcome.info));
    match failure.flatten() {
        Some(failure) => reply.with_failure(failure),
        None => reply,
    }
}

/// Waits on one; an execution with open input may report a prompt.
async fn wait_one(
    call: ToolCall<'_>,
    id: &str,
    reason: &WaitFor,
    timeout: Duration,
) -> Result<WaitOutcome, ToolInterrupt> {
    let info = call.info(id)?;
    let open = Io::Pipes {
        stdin: StdinSource::Open,
    };
    let options = WaitOptions {
        timeout: Some(timeout),
        may_be_task: false,
        on_prompt: if info.spec.io == open {
            OnPrompt::Return
        } else {
            OnPrompt::Ignore
        },
    };
    wait::wait(call, id, reason, options).await
}

/// Parses the ids and the selection of output; unknown ids are errors.
fn parse_selection(
    call: ToolCall<'_>,
    arguments: &mut Arguments,
) -> Result<(Vec<String>, OutputSelection), ApiError> {
    let ids = action::parse_ids(arguments)?;
    let source = if arguments.given_names().any(|name| name == "since") {
        SINCE_PARAMETER
    } else {
        CURSOR_PARAMETER
    };
    let selection = OutputSelection::parse(arguments)?;
    if ids.len() > 1 && selection.query.from.is_some() {
        return Err(ApiError::value(
            "a cursor belongs to one process; allowed: one entry in 'ids', or no cursor",
        ));
    }
    for id in &ids {
        let info = call.info(id);
        let info = info.map_err(|error| with_id(id, ApiError::from(error)))?;
        check_cursor(&info, source, selection.query.from)?;
    }
    Ok((ids, selection))
}

/// Every execution in the given order, those that `shows_output` with their output as long as
/// characters are left; together within the selection's characters.
async fn render_outcomes(
    call: ToolCall<'_>,
    outcomes: &[WaitOutcome],
    selection: &OutputSelection,
    shows_output: impl Fn(&WaitOutcome) -> bool,
) -> Result<ToolReply, ApiError> {
    let lines = outcomes
        .iter()
        .map(|it| execution_reply::status_line(call, it));
    let mut parts: Vec<ExecutionReply> = lines.collect();
    let lines: usize = parts.iter().map(ExecutionReply::chars).sum();
    let mut remaining = selection.chars.saturating_sub(lines);
    let mut remaining_count = outcomes.iter().filter(|it| shows_output(it)).count();
    for (it, part) in outcomes.iter().zip(&mut parts) {
        // The status line is part of what replaces it.
        let line = part.chars();
        if !shows_output(it) || remaining + line < MIN_CHARS {
            if let Some(note) = execution_reply::unread_note(call, it) {
                let chars = part.chars();
                part.add_note(&note);
                remaining = (remaining + chars).saturating_sub(part.chars());
            }
            continue;
        }
        let share = OutputSelection {
            chars: (remaining / remaining_count.max(1)).max(MIN_CHARS - line) + line
                - SEPARATOR.len(),
            ..selection.clone()
        };
        *part = execution_reply::execution_reply(call, it, &share).await?;
        remaining = (remaining + line).saturating_sub(part.chars());
        remaining_count -= 1;
    }
    Ok(join_replies(parts))
}

/// One answer; the fields of one execution are at the top level, those of several in a list.
fn join_replies(mut parts: Vec<ExecutionReply>) -> ToolReply {
    if parts.len() == 1 {
        return parts.remove(0).into_reply();
    }
    let texts: Vec<&str> = parts.iter().map(|part| part.text.as_str()).collect();
    let text = texts.join(SEPARATOR);
    let links: Vec<ResourceLink> = parts
        .iter_mut()
        .filter_map(|part| part.link.take())
        .collect();
    let fields: Vec<Map<String, Value>> = parts.into_iter().map(|part| part.fields).collect();
    let mut reply = ToolReply::text(vec![text], json!({"processes": fields}));
    reply.links = links;
    reply
}
