//! One execution as text: its status, its output, how to continue.

use ostler_api::RunStatisticsBody;
use ostler_engine::{ExecutionInfo, Prompt, WaitEnd, WaitOutcome};
use ostler_journal::LineQuery;
use ostler_model::duration;
use ostler_model::termination::{Termination, TerminationCause};
use ostler_model::{Cursor, ErrorCode, Phase};
use ostler_render::{ExcerptBudget, FAILURE_CHARS, clean, truncated};
use serde_json::{Map, Value, json};

use super::fields::isolation_body;
use super::isolation_notes::{isolation_notes, overlay_summary};
use super::next_calls::next_calls;
use super::{end_text, raw, repl};
use crate::elicit::{self, PendingPrompt};
use crate::output::{OutputBlocks, read_selected, read_whole_page};
use crate::reply::{ResourceLink, ToolReply};
use crate::resources::log_link;
use crate::tool_call::ToolCall;
use crate::tools::params::output_range::OutputSelection;
use ostler_interface::convert::run_statistics_body;
use ostler_interface::error::{ApiError, object};

/// Separator of the executions in one answer.
pub(in crate::tools) const SEPARATOR: &str = "\n\n";
/// The most characters of a termination, a note or a matched line.
const CLAUSE_CHARS: usize = 300;
/// The least characters of output, regardless of the text around it.
const MIN_OUTPUT_CHARS: usize = 400;
/// Reserved for notes that only reading the output yields.
const NOTES_CHARS: usize = 150;
/// Output in a single block: a reply is one text.
const BLOCK_LINES: usize = usize::MAX;
/// A cursor of maximal length.
const LONGEST_CURSOR: Cursor = Cursor {
    offset: u64::MAX,
    event: u64::MAX,
};

/// An execution as text and fields.
#[derive(Debug)]
pub(in crate::tools) struct ExecutionReply {
    pub(in crate::tools) text: String,
    /// The machine-readable fields, with what the text omits.
    pub(in crate::tools) fields: Map<String, Value>,
    /// A link to the complete output when this is an excerpt.
    pub(in crate::tools) link: Option<ResourceLink>,
}

impl ExecutionReply {
    /// Its share of an answer about several executions, in characters.
    pub(in crate::tools) fn chars(&self) -> usize {
        self.text.chars().count() + SEPARATOR.len()
    }

    /// Adds a note.
    pub(in crate::tools) fn with_note(mut self, note: &str) -> Self {
        self.add_note(note);
        self
    }

    /// Adds a note.
    pub(in crate::tools) fn add_note(&mut self, note: &str) {
        self.text.push_str(&format!("\n[note: {}]", clip(note)));
    }

    /// The answer of a tool that shows one execution.
    pub(in crate::tools) fn into_reply(self) -> ToolReply {
        let mut reply = ToolReply::text(vec![self.text], Value::Object(self.fields));
        reply.links.extend(self.link);
        reply
    }
}

/// The requested part of its output.
#[derive(Debug, Default)]
struct ReplyBody {
    text: String,
    next: Cursor,
    notes: Vec<String>,
    fields: Map<String, Value>,
    cut: bool,
}

/// Describes one execution in at most the selection's characters.
pub(in crate::tools) async fn execution_reply(
    call: ToolCall<'_>,
    waited: &WaitOutcome,
    selection: &OutputSelection,
) -> Result<ExecutionReply, ApiError> {
    call.mark_notified(&waited.info);
    let pending = elicit::pending_prompt(call, waited);
    let mut notes = isolation_notes(call, &waited.info);
    notes.extend(repl::terminal_hint(call, waited).await);
    let usual = usual_end(call, &waited.info).await;
    notes.extend(usual.map(|usual| format!("the command usually takes {}", usual.describe())));
    let changes = overlay_summary(call, &waited.info).await;
    let tail = |of_output: &[String]| {
        let all = [of_output, &notes].concat();
        render_footer(call, waited, pending.as_ref(), &all)
    };
    let changes = changes.unwrap_or_default();
    let frame = render_header(waited, LONGEST_CURSOR) + &tail(&[]) + &changes;
    let frame = frame.chars().count() + NOTES_CHARS;
    let remaining = selection.chars.saturating_sub(frame).max(MIN_OUTPUT_CHARS);
    let body = if selection.raw {
        read_raw_body(call, &waited.info, selection, remaining).await?
    } else {
        read_body(call, &waited.info, selection, remaining).await?
    };
    if selection.shows_everything() {
        let from = selection.query.from.map_or(0, |cursor| cursor.offset);
        call.mark_shown(&waited.info, from, body.next.offset);
    }
    let mut fields = outcome_fields(waited);
    fields.insert("cursor".to_owned(), json!(body.next));
    fields.extend(usual.map(|usual| ("usual".to_owned(), json!(usual))));
    fields.extend(body.fields);
    let mut text = render_header(waited, body.next);
    for part in [body.text, changes, tail(&body.notes)] {
        if !part.is_empty() {
            text.push('\n');
            text.push_str(&part);
        }
    }
    let link = body.cut.then(|| log_link(&waited.info));
    Ok(ExecutionReply { text, fields, link })
}

/// How the command usually ends, while it runs. A service ends when it is told to.
async fn usual_end(call: ToolCall<'_>, info: &ExecutionInfo) -> Option<RunStatisticsBody> {
    if info.state.is_finished() || info.spec.lifetime.plan().is_some() {
        return None;
    }
    let statistics = call.state.history()?.statistics_of(vec![info.id]).await;
    statistics.get(&info.id).map(run_statistics_body)
}

/// The status in one line, without output: its cursor is before what this client was not shown.
pub(in crate::tools) fn status_line(call: ToolCall<'_>, waited: &WaitOutcome) -> ExecutionReply {
    call.mark_notified(&waited.info);
    let unread = unread_cursor(call, waited);
    let mut fields = outcome_fields(waited);
    fields.insert("cursor".to_owned(), json!(unread));
    ExecutionReply {
        text: render_header(waited, unread),
        fields,
        link: None,
    }
}

/// What a status line says about the output it omits, if there is some.
pub(in crate::tools) fn unread_note(call: ToolCall<'_>, waited: &WaitOutcome) -> Option<String> {
    let unread = unread_cursor(call, waited);
    let bytes = waited.info.output_end.saturating_sub(unread.offset);
    let note = format!("{bytes} bytes of output are not shown: action output, cursor \"{unread}\"");
    (bytes > 0).then_some(note)
}

/// Where the output begins that this client was not shown.
fn unread_cursor(call: ToolCall<'_>, waited: &WaitOutcome) -> Cursor {
    Cursor {
        offset: call.unread_from(&waited.info).unwrap_or(0),
        event: waited.cursor.event,
    }
}

/// Terminations that are errors: a timeout, or an unknown end.
pub(in crate::tools) fn ending_failure(info: &ExecutionInfo) -> Option<ApiError> {
    let ending = info.state.ending.as_ref()?;
    match &ending.cause {
        TerminationCause::TimedOut { clock } => Some(end_text::timeout_failure(
            info,
            *clock,
            "give a longer timeout, or none: wait_ms alone bounds how long a call waits",
        )),
        TerminationCause::SpawnFailed { .. } | TerminationCause::Lost { .. } => Some(
            ApiError::new(ErrorCode::CommandExecution, ending.describe()),
        ),
        TerminationCause::Exited
        | TerminationCause::Signaled
        | TerminationCause::Stopped { .. }
        | TerminationCause::OutOfMemory => None,
    }
}

async fn read_body(
    call: ToolCall<'_>,
    info: &ExecutionInfo,
    selection: &OutputSelection,
    chars: usize,
) -> Result<ReplyBody, ApiError> {
    let mut budget = ExcerptBudget::new(chars, BLOCK_LINES);
    if is_success(info) {
        budget.quiet_chars = selection.quiet_chars.min(chars);
        // A call that selects a size or a part gets the full size.
        if selection.quiet_chars < selection.chars {
            budget.failure_chars = FAILURE_CHARS.min(chars);
        }
    }
    let query = selection.query.clone();
    let mut output = if selection.paged {
        read_whole_page(call, info, query, budget).await?
    } else {
        read_selected(call, info, query, budget).await?
    };
    let mut body = ReplyBody {
        text: output.take_blocks().join("\n"),
        next: output.next,
        notes: output.notes.clone(),
        fields: Map::new(),
        cut: output.is_cut(),
    };
    output.add_fields(&mut body.fields);
    body.notes.extend(remaining_note(call, &output));
    body.notes.extend(output.cut_line_note(call, info));
    if body.text.is_empty() {
        body.notes
            .extend(empty_note(&selection.query).map(str::to_owned));
    }
    Ok(body)
}

/// Whether it ended successfully.
fn is_success(info: &ExecutionInfo) -> bool {
    let ending = info.state.ending.as_ref();
    ending.is_some_and(|it| it.cause == TerminationCause::Exited && it.code == Some(0))
}

/// What follows a page.
fn remaining_note(call: ToolCall<'_>, output: &OutputBlocks) -> Option<String> {
    let lines = match output.lines_left {
        0 => return None,
        1 => "1 more line".to_owned(),
        left => format!("{left} more lines"),
    };
    let action = if call.client_context.tools.offers("process") {
        "output"
    } else {
        "logs"
    };
    Some(format!(
        "{lines}; the next page: action {action} with cursor \"{}\"",
        output.next
    ))
}

/// Why there is nothing to show, where that is not obvious.
const fn empty_note(query: &LineQuery) -> Option<&'static str> {
    match (&query.grep, &query.from) {
        (Some(_), _) => Some("no line matches"),
        (None, Some(_)) => Some("no new output"),
        (None, None) => None,
    }
}

async fn read_raw_body(
    call: ToolCall<'_>,
    info: &ExecutionInfo,
    selection: &OutputSelection,
    chars: usize,
) -> Result<ReplyBody, ApiError> {
    let journal = call.engine.journal(call.caller, &info.id.short())?;
    let from = selection.query.from.unwrap_or(Cursor::START);
    let streams = selection.query.streams;
    let chunk = raw::read_chunk(&journal, info, from, streams, chars).await?;
    let mut notes = Vec::new();
    if chunk.gone_bytes > 0 {
        notes.push(format!("{} bytes before this are gone", chunk.gone_bytes));
    }
    if chunk.more {
        notes.push(format!("more is there from cursor \"{}\"", chunk.next));
    }
    Ok(ReplyBody {
        text: chunk.text,
        next: chunk.next,
        notes,
        fields: object(json!({"more": chunk.more})),
        cut: false,
    })
}

/// `[k3v9x0qa running 10.0s | cursor 812.4]`, `[k3v9x0qa exit 0, 0.2s]`.
fn render_header(waited: &WaitOutcome, next: Cursor) -> String {
    let info = &waited.info;
    let (id, time) = (info.id.short(), format_time(info));
    match &info.state.ending {
        Some(ending) => format!("[{id} {}, {time}]", clip(&ending_text(ending))),
        None => format!("[{id} {} {time} | cursor {next}]", status_text(waited)),
    }
}

fn ending_text(ending: &Termination) -> String {
    match (&ending.cause, ending.code) {
        (TerminationCause::Exited, Some(code)) => format!("exit {code}"),
        _ => ending.describe(),
    }
}

fn status_text(waited: &WaitOutcome) -> &'static str {
    let info = &waited.info;
    let state = &info.state;
    let is_prompting = matches!(waited.end, WaitEnd::Prompt(_)) || state.prompt.is_some();
    match state.phase {
        Phase::Stopping => "stopping",
        Phase::Starting | Phase::Running | Phase::Finished => match (state.paused, is_prompting) {
            (true, _) => "paused",
            (false, true) => "waiting for input",
            (false, false) if info.spec.lifetime.plan().is_some() => info.status().service,
            (false, false) => "running",
        },
    }
}

/// `10.0s`; milliseconds for short times.
pub(in crate::tools) fn format_time(info: &ExecutionInfo) -> String {
    let seconds = info.duration().as_secs_f64();
    if seconds < 0.1 {
        format!("{seconds:.3}s")
    } else {
        format!("{seconds:.1}s")
    }
}

/// Why the wait ended, notes, and how to continue.
fn render_footer(
    call: ToolCall<'_>,
    waited: &WaitOutcome,
    pending: Option<&PendingPrompt>,
    notes: &[String],
) -> String {
    let info = &waited.info;
    let mut lines: Vec<String> = met_condition(&waited.end).into_iter().collect();
    lines.extend(pending.map(|approval| format!("[{}]", approval.text.replace('\n', "; "))));
    let degraded = info.state.degradations().cloned();
    let all_notes = notes.iter().cloned().chain(degraded);
    let all_notes = all_notes.chain(leftovers_note(info));
    lines.extend(all_notes.map(|note| format!("[note: {}]", clip(&note))));
    if !info.state.is_finished() {
        let is_refused = pending.is_some_and(|approval| approval.is_refused);
        let is_pending = pending.is_some_and(|approval| !approval.is_refused);
        let is_secret = matches!(&waited.end, WaitEnd::Prompt(prompt) if prompt.secret);
        if !is_pending || is_secret {
            lines.push(next_calls(call, waited, is_refused));
        }
    }
    lines.join("\n")
}

/// The condition that was met.
fn met_condition(why: &WaitEnd) -> Option<String> {
    match why {
        WaitEnd::Pattern(matched) => {
            let line = matched.line.to_string_lossy();
            Some(format!("[pattern matched: {}]", clip(&line)))
        }
        WaitEnd::Idle => Some("[no output for as long as asked]".to_owned()),
        WaitEnd::Ready => Some("[ready]".to_owned()),
        WaitEnd::NotReady(evidence) => Some(format!("[not ready: {}]", clip(evidence))),
        WaitEnd::Prompt(_)
        | WaitEnd::Exit
        | WaitEnd::Output
        | WaitEnd::TimedOut
        | WaitEnd::Nothing => None,
    }
}

/// Processes that the leader left.
fn leftovers_note(info: &ExecutionInfo) -> Option<String> {
    let count = info.state.leftovers;
    (count > 0).then(|| {
        let processes = if count == 1 { "process" } else { "processes" };
        format!(
            "{count} {processes} it left in the background were ended; start what is to stay \
             with an exec of its own"
        )
    })
}

pub(in crate::tools) fn outcome_fields(waited: &WaitOutcome) -> Map<String, Value> {
    let info = &waited.info;
    let ending = info.state.ending.as_ref();
    let mut fields = object(json!({
        "id": info.id.short(),
        "status": info.status().process,
        "exit_code": ending.and_then(|ending| ending.code),
        "signal": ending.and_then(|ending| ending.signal).map(|signal| signal.name()),
        "execution_time": duration::as_seconds(info.duration()),
        "yielded": ending.is_none(),
        "why": end_text::wait_end_name(&waited.end),
        "cursor": waited.cursor,
        "isolation": isolation_body(&info.spec),
    }));
    if let WaitEnd::Prompt(prompt) = &waited.end {
        fields.insert("prompt".to_owned(), prompt_fields(prompt));
    }
    fields
}

/// Its prompt as JSON.
fn prompt_fields(prompt: &Prompt) -> Value {
    json!({
        "text": clip(&clean(&prompt.text)),
        "secret": prompt.secret,
        "options": prompt.options,
        "default": prompt.default,
    })
}

fn clip(text: &str) -> String {
    truncated(text, CLAUSE_CHARS)
}
