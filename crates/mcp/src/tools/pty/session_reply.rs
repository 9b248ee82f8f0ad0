//! The response about a session besides its output: its status, what it waits for, the lease, and
//! how to continue.

use ostler_engine::interaction::QuestionKind;
use ostler_engine::prompt::{PromptContext, PromptPlace, detect};
use ostler_engine::{ExecutionInfo, Prompt, WaitEnd, WaitOutcome};
use ostler_model::Phase;
use ostler_model::termination::TerminationCause;
use ostler_render::{REPLY_CHARS, clean};
use ostler_terminal::{ScreenSnapshot, ShellState};
use serde_json::{Map, Value, json};

use super::activity::Activity;
use super::family::ToolFamily;
use super::output_text::{self, OutputSpan, SpanRange};
use super::prompt_text::{clip, prompt_fields, prompt_text, shell_prompt_text};
use super::session::{self, format_seconds};
use super::settle::SettleOutcome;
use crate::reply::ToolReply;
use crate::screen::{self, render_screen};
use crate::tool_call::ToolCall;
use crate::tools::execution::end_text;
use crate::tools::execution::isolation_notes;
use ostler_interface::error::{ApiError, object};

/// Reserved for the text around a screen or output; in a shorter answer, a quarter of it.
const FRAME_CHARS: usize = 3_000;
/// Characters for a screen or output.
const BODY_CHARS: usize = REPLY_CHARS - FRAME_CHARS;
/// The most bytes of one page of output.
const PAGE_BYTES: u64 = BODY_CHARS as u64;
/// A page of fewer bytes is not made smaller, although something of it is omitted.
const MIN_PAGE_BYTES: u64 = 1_024;

/// An answer being built.
#[derive(Debug)]
pub(in crate::tools) struct SessionReply<'a> {
    call: ToolCall<'a>,
    family: ToolFamily,
    waited: WaitOutcome,
    /// The first line after the session's status.
    head: String,
    body: String,
    notes: Vec<String>,
    /// How to continue, the last line.
    next: Option<String>,
    fields: Map<String, Value>,
    /// The range of output it shows.
    shown_range: Option<(u64, u64)>,
    activity: Option<Activity>,
    /// Characters for a screen or output.
    body_chars: usize,
    /// Whether it is about a command that has ended.
    is_command_ended: bool,
}

impl<'a> SessionReply<'a> {
    /// For a session after a wait. Where the wait did not read all output, the state is read again.
    pub(in crate::tools) fn new(call: ToolCall<'a>, mut waited: WaitOutcome) -> Self {
        let is_stale = match waited.end {
            WaitEnd::TimedOut | WaitEnd::Nothing | WaitEnd::Pattern(_) => true,
            WaitEnd::Exit
            | WaitEnd::Ready
            | WaitEnd::NotReady(_)
            | WaitEnd::Prompt(_)
            | WaitEnd::Output
            | WaitEnd::Idle => false,
        };
        if is_stale && let Ok(info) = session::find_session(call, &waited.info.id.short()) {
            waited.info = info;
        }
        let info = &waited.info;
        let ending = info.state.ending.as_ref();
        let fields = json!({
            "session": info.id.short(),
            "status": info.status().session,
            "pid": info.state.pid,
            "exit_code": ending.and_then(|it| it.code),
            "signal": ending.and_then(|it| it.signal).map(|signal| signal.name()),
            "why": end_text::wait_end_name(&waited.end),
        });
        Self {
            fields: object(fields),
            call,
            family: ToolFamily::Pty,
            waited,
            head: String::new(),
            body: String::new(),
            notes: Vec::new(),
            next: None,
            shown_range: None,
            activity: None,
            body_chars: BODY_CHARS,
            is_command_ended: false,
        }
    }

    /// Extends the range shown back to this offset.
    pub(super) fn extend_shown_start(&mut self, offset: u64) {
        if let Some((from, _)) = &mut self.shown_range {
            *from = offset.min(*from);
        }
    }

    /// Extends the range shown forward to this offset.
    pub(super) fn extend_shown_end(&mut self, offset: u64) {
        if let Some((_, to)) = &mut self.shown_range {
            *to = offset.max(*to);
        }
    }

    /// For a session after a wait, with the program's activity where it printed nothing.
    pub(in crate::tools) fn of_outcome(call: ToolCall<'a>, outcome: SettleOutcome) -> Self {
        let mut reply = Self::new(call, outcome.waited);
        reply.activity = outcome.activity;
        reply
    }

    /// The same, in an answer of at most this many characters.
    pub(in crate::tools) const fn in_chars(mut self, chars: usize) -> Self {
        let quarter = chars / 4;
        let frame = if quarter < FRAME_CHARS {
            quarter
        } else {
            FRAME_CHARS
        };
        self.body_chars = chars - frame;
        self
    }

    /// The same, worded for profile `core`.
    pub(in crate::tools) const fn for_core_tools(mut self) -> Self {
        self.family = ToolFamily::Core;
        self
    }

    /// Adds notes about its isolation.
    pub(in crate::tools) fn add_isolation_notes(&mut self) {
        for note in isolation_notes(self.call, self.info()) {
            self.add_note(note);
        }
    }

    /// Sets how to continue.
    pub(super) fn set_next(&mut self, next: Option<String>) {
        self.next = next;
    }

    /// The same for a command that has ended: a prompt that was found before is none of it.
    pub(super) const fn of_ended_command(mut self) -> Self {
        self.is_command_ended = true;
        self
    }

    pub(super) const fn info(&self) -> &ExecutionInfo {
        &self.waited.info
    }

    /// Adds a note.
    pub(in crate::tools) fn add_note(&mut self, note: impl Into<String>) {
        self.notes.push(note.into());
    }

    /// Sets a machine-readable field.
    pub(super) fn set_field(&mut self, name: &str, value: impl Into<Value>) {
        self.fields.insert(name.to_owned(), value.into());
    }

    /// Shows the screen.
    pub(in crate::tools) async fn with_screen(mut self) -> Result<Self, ApiError> {
        let view = self.read_view().await?;
        let position = self.call.unread_from(self.info());
        self.shown_range = self
            .range_on_screen(&view, position.unwrap_or(view.offset))
            .await;
        Ok(self.with_view(&view))
    }

    /// The output from an offset on that a screen shows; none where some of it has been scrolled
    /// off or overwritten.
    async fn range_on_screen(&self, view: &ScreenSnapshot, from: u64) -> Option<(u64, u64)> {
        let to = view.offset;
        if view.alternate || from >= to {
            return Some((from, to));
        }
        let lines = output_text::count_line_ends(self.call, self.info(), from, to).await?;
        (lines < view.rows.len()).then_some((from, to))
    }

    /// The response to a start: with the screen, if there is one, and the missing parts of the
    /// isolation. The id is reported whatever else fails.
    pub(super) async fn start_reply(mut self) -> ToolReply {
        self = match self.read_view().await {
            Ok(view) => {
                self.call.mark_shown(self.info(), 0, 0);
                self.shown_range = self.range_on_screen(&view, 0).await;
                self.with_view(&view)
            }
            Err(failure) => {
                self.add_note(failure.message().into_owned());
                self
            }
        };
        self.add_isolation_notes();
        self.into_reply(None).await
    }

    /// Shows this screen.
    pub(super) fn with_view(mut self, view: &ScreenSnapshot) -> Self {
        let rendered = render_screen(view, self.body_chars);
        self.head = format!(" | {}", screen::describe_view(view));
        self.body = rendered.text();
        self.set_field("screen", screen::fields(view, &rendered));
        self.set_field("next_offset", view.offset);
        self.notes.extend(rendered.truncation);
        self
    }

    /// Shows a range of output; where that draws, or the program uses the alternate screen, the
    /// screen instead.
    pub(in crate::tools) async fn with_changes(mut self, from: u64) -> Result<Self, ApiError> {
        let view = self.read_view().await?;
        self.shown_range = Some((from, view.offset));
        if view.alternate {
            return Ok(self.with_view(&view));
        }
        let span = self.read_span(self.range_since(from)).await?;
        if span.draws_screen {
            return Ok(self.with_view(&view));
        }
        Ok(self.with_span(span, from))
    }

    /// Adds the output from an offset on.
    pub(super) async fn with_text(self, from: u64) -> Result<Self, ApiError> {
        let span = self.read_span(self.range_since(from)).await?;
        Ok(self.with_span(span, from))
    }

    /// Adds a page of the output from an offset on: as much as is shown without an omission, at
    /// most this many bytes; whole lines, where one ends in it.
    pub(super) async fn with_page(self, from: u64, most: Option<u64>) -> Result<Self, ApiError> {
        let all = self.range_since(from);
        let mut bytes = most.unwrap_or(PAGE_BYTES).min(PAGE_BYTES);
        let span = loop {
            let range = if from.saturating_add(bytes) < all.to {
                output_text::page_range(self.call, self.info(), all, bytes).await?
            } else {
                all
            };
            let span = self.read_span(range).await?;
            if span.omitted.is_none() || bytes <= MIN_PAGE_BYTES {
                break span;
            }
            bytes /= 2;
        };
        let next = span.next;
        let mut reply = self.with_span(span, from);
        if from < next && next < all.to {
            reply.add_note(reply.family.how_to_read_on(next));
        }
        Ok(reply)
    }

    /// Shows a range of output; for a program on the alternate screen, that screen.
    pub(super) async fn with_so_far(self, from: u64, to: u64) -> Result<Self, ApiError> {
        let view = self.read_view().await?;
        if view.alternate {
            return Ok(self.with_view(&view));
        }
        self.with_exactly(from, to).await
    }

    /// Shows exactly a range of output.
    pub(super) async fn with_exactly(mut self, from: u64, to: u64) -> Result<Self, ApiError> {
        let range = SpanRange {
            from,
            to,
            can_grow: false,
        };
        let span = self.read_span(range).await?;
        self.set_span(span, from);
        Ok(self)
    }

    fn with_span(mut self, span: OutputSpan, from: u64) -> Self {
        self.head = self.family.output_range(from, span.next);
        if span.text.is_empty() {
            self.add_note(if span.next > from {
                "only control sequences, no text"
            } else {
                "no new output"
            });
        }
        self.set_span(span, from);
        self
    }

    fn set_span(&mut self, span: OutputSpan, from: u64) {
        self.shown_range = Some((from, span.next));
        self.body = span.text;
        self.set_field("offset", from);
        self.set_field("next_offset", span.next);
        if let Some(omitted) = span.omitted {
            self.set_field("omitted", omitted);
            self.add_note(self.family.how_to_read_omitted());
        }
        self.notes.extend(span.notes);
    }

    fn range_since(&self, from: u64) -> SpanRange {
        SpanRange {
            from,
            to: self.info().output_end.max(from),
            can_grow: !self.info().state.is_finished(),
        }
    }

    async fn read_span(&self, range: SpanRange) -> Result<OutputSpan, ApiError> {
        output_text::read_span(self.call, self.info(), range, self.body_chars).await
    }

    async fn read_view(&self) -> Result<ScreenSnapshot, ApiError> {
        let id = self.info().id.short();
        let view = self.call.engine.screen(self.call.caller, &id).await;
        view.map_err(|error| session::session_failure(self.call, &id, error))
    }

    /// The answer. It begins with `first`, the result of a command, or with the session's status.
    pub(in crate::tools) async fn into_reply(mut self, first: Option<String>) -> ToolReply {
        let shell = self.shell_state().await;
        let has_first = first.is_some();
        self.call.mark_notified(&self.waited.info);
        if let Some((from, to)) = self.shown_range {
            self.call.mark_shown(&self.waited.info, from, to);
        }
        let mut lines = vec![first.unwrap_or_else(|| self.render_header())];
        if !self.body.is_empty() {
            lines.push(std::mem::take(&mut self.body));
        }
        let degraded = self.waited.info.state.degradations().cloned();
        let notes = std::mem::take(&mut self.notes);
        let all_notes = notes.into_iter().chain(degraded);
        lines.extend(all_notes.map(|note| format!("[note: {}]", clip(&note))));
        lines.extend(self.met_condition());
        let waiting = self.waiting_line(shell.as_ref());
        let at_prompt = matches!(shell, Some(ShellState::Prompt { .. }));
        if waiting.is_none() {
            lines.extend(self.activity_line());
        }
        lines.extend(waiting.filter(|_| !(has_first && at_prompt)));
        lines.extend(self.holder_line());
        lines.extend(self.next.take().map(|next| format!("[{next}]")));
        ToolReply::text(vec![lines.join("\n")], Value::Object(self.fields))
    }

    /// `[k3v9x0qa running | 80x24, …]`.
    fn render_header(&self) -> String {
        let info = self.info();
        let id = info.id.short();
        let status_text = match &info.state.ending {
            Some(ending) => match (&ending.cause, ending.code) {
                (TerminationCause::Exited, Some(code)) => format!("exited {code}"),
                _ => clip(&ending.describe()),
            },
            None => match (info.state.phase, info.state.paused) {
                (Phase::Stopping, _) => "stopping".to_owned(),
                (_, true) => "paused".to_owned(),
                (_, false) => "running".to_owned(),
            },
        };
        let time = self.family.time_text(info);
        format!("[{id} {status_text}{time}{}]", self.head)
    }

    /// The condition of the wait, and whether it was met.
    fn met_condition(&self) -> Option<String> {
        match &self.waited.end {
            WaitEnd::Pattern(matched) => {
                let line = matched.line.to_string_lossy();
                Some(format!("[pattern matched: {}]", clip(&clean(&line))))
            }
            WaitEnd::TimedOut => Some(self.family.timed_out_text().to_owned()),
            WaitEnd::Exit
            | WaitEnd::Ready
            | WaitEnd::NotReady(_)
            | WaitEnd::Prompt(_)
            | WaitEnd::Output
            | WaitEnd::Idle
            | WaitEnd::Nothing => None,
        }
    }

    /// What a program does that is silent and shows no prompt.
    fn activity_line(&mut self) -> Option<String> {
        let activity = self.activity.filter(|_| !self.info().state.is_finished())?;
        self.set_field("activity", activity.as_str());
        activity.describe(self.family, &self.info().id.short())
    }

    /// The state of its shell, for a running session that has one.
    async fn shell_state(&mut self) -> Option<ShellState> {
        let info = self.info();
        if info.spec.shell.is_none() || info.state.is_finished() {
            return None;
        }
        let id = info.id.short();
        let found = self.call.engine.shell_state(self.call.caller, &id).await;
        let state = found.ok()?;
        self.set_field("shell", json!(state));
        Some(state)
    }

    /// The condition it waits for: a command, more of one, or an answer.
    fn waiting_line(&mut self, shell: Option<&ShellState>) -> Option<String> {
        if self.info().state.is_finished() {
            return None;
        }
        match shell {
            Some(ShellState::Prompt { status, cwd, .. }) => {
                return Some(shell_prompt_text(*status, cwd.as_deref()));
            }
            Some(ShellState::Incomplete { .. }) => {
                return Some(self.family.incomplete_text().to_owned());
            }
            Some(ShellState::Unknown | ShellState::Ended { .. } | ShellState::Running { .. })
            | None => {}
        }
        if self.is_command_ended {
            return None;
        }
        let (line, fields) = self.prompt_line()?;
        self.fields.insert("prompt".to_owned(), fields);
        Some(line)
    }

    /// The program's prompt, as text and JSON.
    fn prompt_line(&self) -> Option<(String, Value)> {
        let info = self.info();
        let id = info.id.short();
        if let WaitEnd::Prompt(prompt) = &self.waited.end {
            return Some((prompt_text(&id, self.family, prompt), prompt_fields(prompt)));
        }
        // Detected by another client's wait, which keeps only the text.
        let text = info.state.prompt.clone()?;
        let detected = detect(&text, PromptContext::default());
        let prompt = Prompt {
            text,
            secret: detected.as_ref().is_some_and(|it| it.secret),
            kind: QuestionKind::InputRequest,
            options: detected.map(|it| it.options).unwrap_or_default(),
            default: None,
            pid: 0,
            evidence: Vec::new(),
            is_question: false,
            // It is only shown.
            place: PromptPlace::at_end(0),
        };
        Some((
            prompt_text(&id, self.family, &prompt),
            prompt_fields(&prompt),
        ))
    }

    /// The holder of the lease, if any.
    fn holder_line(&mut self) -> Option<String> {
        let id = self.info().id.short();
        let holder = self.call.engine.lease_holder(self.call.caller, &id);
        let holder = holder.ok().flatten()?;
        let (name, since) = (clip(&holder.name), format_seconds(holder.since));
        self.set_field("holder", json!({"name": name, "since": since}));
        Some(format!(
            "[{name} types here since {since}; until it is handed back you can only look]"
        ))
    }
}
