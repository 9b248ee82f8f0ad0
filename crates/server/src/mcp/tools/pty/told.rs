//! What an answer says of a session besides its output: how it stands, what it waits for, who
//! types, and how to go on.

use ostler_engine::interaction::Kind;
use ostler_engine::prompt::{Seen, detect};
use ostler_engine::{Info, Prompt, WaitEnd, Waited};
use ostler_model::Phase;
use ostler_model::ending::Cause;
use ostler_terminal::{ShellState, View};
use serde_json::{Map, Value, json};

use super::activity::Activity;
use super::family::Family;
use super::session::{self, to_the_second};
use super::settle::Outcome;
use super::span::{self, Range, Span};
use crate::error::{Failure, object};
use crate::mcp::context::Call;
use crate::mcp::reply::Reply;
use crate::mcp::screen::{self, draw};
use crate::mcp::tools::command::status::seconds;
use crate::mcp::tools::{ends, walls};
use crate::render::{REPLY_CHARS, clamped, clean};

/// Kept free for what stands around a screen or output.
const FRAME_CHARS: usize = 3_000;
/// Room for a screen or output.
const BODY_CHARS: usize = REPLY_CHARS - FRAME_CHARS;
/// The most characters of a prompt, a directory, a name or a note.
const CLAUSE_CHARS: usize = 300;

/// An answer in the making.
#[derive(Debug)]
pub(in crate::mcp::tools) struct Telling<'a> {
    call: Call<'a>,
    family: Family,
    waited: Waited,
    /// What stands in the first line behind how the session stands.
    head: String,
    body: String,
    notes: Vec<String>,
    /// How to go on, at the very end.
    next: Option<String>,
    fields: Map<String, Value>,
    /// The stretch of output it shows.
    shown: Option<(u64, u64)>,
    activity: Option<Activity>,
}

impl<'a> Telling<'a> {
    /// Of a session after a wait. Where that did not look at output to its end, the session is
    /// looked at afresh.
    pub(in crate::mcp::tools) fn new(call: Call<'a>, mut waited: Waited) -> Self {
        let is_stale = match waited.why {
            WaitEnd::AtMost | WaitEnd::Nothing | WaitEnd::Pattern(_) => true,
            WaitEnd::Exit
            | WaitEnd::Ready
            | WaitEnd::NotReady(_)
            | WaitEnd::Prompt(_)
            | WaitEnd::Output
            | WaitEnd::Idle => false,
        };
        if is_stale && let Ok(info) = session::find(call, &waited.info.id.short()) {
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
            "why": ends::why(&waited.why),
        });
        Self {
            fields: object(fields),
            call,
            family: Family::Pty,
            waited,
            head: String::new(),
            body: String::new(),
            notes: Vec::new(),
            next: None,
            shown: None,
            activity: None,
        }
    }

    /// What lies between this offset and what it shows is accounted for.
    pub(super) fn shown_from(&mut self, offset: u64) {
        if let Some((from, _)) = &mut self.shown {
            *from = offset.min(*from);
        }
    }

    /// What lies between what it shows and this offset is accounted for.
    pub(super) fn shown_to(&mut self, offset: u64) {
        if let Some((_, to)) = &mut self.shown {
            *to = offset.max(*to);
        }
    }

    /// Of a session after a wait, with what its program does where it printed nothing.
    pub(in crate::mcp::tools) fn of(call: Call<'a>, outcome: Outcome) -> Self {
        let mut telling = Self::new(call, outcome.waited);
        telling.activity = outcome.activity;
        telling
    }

    /// The same in the words of profile `core`.
    pub(in crate::mcp::tools) const fn in_core(mut self) -> Self {
        self.family = Family::Core;
        self
    }

    /// What is to be known of its walls.
    pub(in crate::mcp::tools) fn walls(&mut self) {
        for told in walls::notes(self.call, self.info()) {
            self.note(told);
        }
    }

    /// How to go on.
    pub(super) fn next(&mut self, next: Option<String>) {
        self.next = next;
    }

    pub(super) const fn info(&self) -> &Info {
        &self.waited.info
    }

    /// One more thing to be known.
    pub(in crate::mcp::tools) fn note(&mut self, note: impl Into<String>) {
        self.notes.push(note.into());
    }

    /// One more thing for programs.
    pub(super) fn field(&mut self, name: &str, value: impl Into<Value>) {
        self.fields.insert(name.to_owned(), value.into());
    }

    /// Shows the screen.
    pub(in crate::mcp::tools) async fn with_screen(mut self) -> Result<Self, Failure> {
        let view = self.view().await?;
        let position = self.call.unread(self.info());
        self.shown = self.on_screen(&view, position.unwrap_or(view.offset)).await;
        Ok(self.with_view(&view))
    }

    /// The output from an offset on that a screen shows; none where some of it has left the
    /// screen again.
    async fn on_screen(&self, view: &View, from: u64) -> Option<(u64, u64)> {
        let stretch = (from, view.offset);
        if view.alternate || from >= view.offset {
            return Some(stretch);
        }
        let lines = span::line_ends(self.call, self.info(), stretch).await?;
        (lines < view.rows.len()).then_some(stretch)
    }

    /// The answer of a start: with the screen, where there is one, and what of the isolation
    /// is missing. Whatever else fails, the id is told.
    pub(super) async fn started(mut self) -> Reply {
        self = match self.view().await {
            Ok(view) => {
                self.call.showed(self.info(), (0, 0));
                self.shown = self.on_screen(&view, 0).await;
                self.with_view(&view)
            }
            Err(failure) => {
                self.note(failure.message().into_owned());
                self
            }
        };
        self.walls();
        self.reply(None).await
    }

    /// Shows this screen.
    pub(super) fn with_view(mut self, view: &View) -> Self {
        let drawn = draw(view, BODY_CHARS);
        self.head = format!(" | {}", screen::facts(view));
        self.body = drawn.text();
        self.field("screen", screen::fields(view, &drawn));
        self.field("next_offset", view.offset);
        self.notes.extend(drawn.cut);
        self
    }

    /// Shows a stretch of output; where that draws, or the program has the other screen, the
    /// screen instead.
    pub(in crate::mcp::tools) async fn with_changes(mut self, from: u64) -> Result<Self, Failure> {
        let view = self.view().await?;
        self.shown = Some((from, view.offset));
        if view.alternate {
            return Ok(self.with_view(&view));
        }
        let span = self.span(self.since(from)).await?;
        if span.paints {
            return Ok(self.with_view(&view));
        }
        Ok(self.with_span(span, from))
    }

    /// Shows what was printed from an offset on, at most so many bytes.
    pub(super) async fn with_text(self, from: u64, most: Option<u64>) -> Result<Self, Failure> {
        let mut range = self.since(from);
        if let Some(most) = most.filter(|most| from.saturating_add(*most) < range.to) {
            range.to = from + most;
            range.grows = true;
        }
        let span = self.span(range).await?;
        Ok(self.with_span(span, from))
    }

    /// Shows a stretch of output, of a program with the other screen that screen.
    pub(super) async fn with_so_far(self, from: u64, to: u64) -> Result<Self, Failure> {
        let view = self.view().await?;
        if view.alternate {
            return Ok(self.with_view(&view));
        }
        self.with_exactly(from, to).await
    }

    /// Shows exactly a stretch of output.
    pub(super) async fn with_exactly(mut self, from: u64, to: u64) -> Result<Self, Failure> {
        let range = Range {
            from,
            to,
            grows: false,
        };
        let span = self.span(range).await?;
        self.take(span, from);
        Ok(self)
    }

    fn with_span(mut self, span: Span, from: u64) -> Self {
        self.head = self.family.output(from, span.next);
        if span.text.is_empty() {
            self.note("no new output");
        }
        self.take(span, from);
        self
    }

    fn take(&mut self, span: Span, from: u64) {
        self.shown = Some((from, span.next));
        self.body = span.text;
        self.field("offset", from);
        self.field("next_offset", span.next);
        if let Some(omitted) = span.omitted {
            self.field("omitted", omitted);
            self.note(self.family.left_out());
        }
        self.notes.extend(span.notes);
    }

    fn since(&self, from: u64) -> Range {
        Range {
            from,
            to: self.info().output_end.max(from),
            grows: !self.info().state.is_finished(),
        }
    }

    async fn span(&self, range: Range) -> Result<Span, Failure> {
        span::read(self.call, self.info(), range, BODY_CHARS).await
    }

    async fn view(&self) -> Result<View, Failure> {
        let id = self.info().id.short();
        let view = self.call.engine.screen(self.call.caller, &id).await;
        view.map_err(|error| session::failure(self.call, &id, error))
    }

    /// The answer. It begins with `first`, where what is to be told is how a command came
    /// out, else with how the session stands.
    pub(in crate::mcp::tools) async fn reply(mut self, first: Option<String>) -> Reply {
        let shell = self.shell().await;
        let is_first_told = first.is_some();
        self.call.told(&self.waited.info);
        if let Some(stretch) = self.shown {
            self.call.showed(&self.waited.info, stretch);
        }
        let mut lines = vec![first.unwrap_or_else(|| self.header())];
        if !self.body.is_empty() {
            lines.push(std::mem::take(&mut self.body));
        }
        let degraded = self.waited.info.state.degraded.clone();
        let notes = std::mem::take(&mut self.notes);
        let told = notes.into_iter().chain(degraded);
        lines.extend(told.map(|note| format!("[note: {}]", clip(&note))));
        lines.extend(self.met());
        let waiting = self.waiting(shell.as_ref());
        let at_prompt = matches!(shell, Some(ShellState::Prompt { .. }));
        if waiting.is_none() {
            lines.extend(self.silence());
        }
        lines.extend(waiting.filter(|_| !(is_first_told && at_prompt)));
        lines.extend(self.holder());
        lines.extend(self.next.take().map(|next| format!("[{next}]")));
        Reply::text(vec![lines.join("\n")], Value::Object(self.fields))
    }

    /// `[k3v9x0qa running | 80x24, …]`.
    fn header(&self) -> String {
        let info = self.info();
        let id = info.id.short();
        let stands = match &info.state.ending {
            Some(ending) => match (&ending.cause, ending.code) {
                (Cause::Exited, Some(code)) => format!("exited {code}"),
                _ => clip(&ending.describe()),
            },
            None => match (info.state.phase, info.state.paused) {
                (Phase::Stopping, _) => "stopping".to_owned(),
                (_, true) => "paused".to_owned(),
                (_, false) => "running".to_owned(),
            },
        };
        format!("[{id} {stands}{}]", self.head)
    }

    /// What was waited for and came to pass, or did not.
    fn met(&self) -> Option<String> {
        match &self.waited.why {
            WaitEnd::Pattern(found) => {
                let line = found.line.to_string_lossy();
                Some(format!("[pattern matched: {}]", clip(&clean(&line))))
            }
            WaitEnd::AtMost => Some(self.family.over().to_owned()),
            WaitEnd::Exit
            | WaitEnd::Ready
            | WaitEnd::NotReady(_)
            | WaitEnd::Prompt(_)
            | WaitEnd::Output
            | WaitEnd::Idle
            | WaitEnd::Nothing => None,
        }
    }

    /// What a program does that prints nothing and asks for nothing.
    fn silence(&mut self) -> Option<String> {
        let activity = self.activity.filter(|_| !self.info().state.is_finished())?;
        self.field("activity", activity.as_str());
        activity.describe(self.family, &self.info().id.short())
    }

    /// Where its shell stands, of a session that has one and lives.
    async fn shell(&mut self) -> Option<ShellState> {
        let info = self.info();
        if info.spec.shell.is_none() || info.state.is_finished() {
            return None;
        }
        let id = info.id.short();
        let found = self.call.engine.shell_state(self.call.caller, &id).await;
        let state = found.ok()?;
        self.field("shell", json!(state));
        Some(state)
    }

    /// What it waits for (B7): a command, more of one, or an answer.
    fn waiting(&mut self, shell: Option<&ShellState>) -> Option<String> {
        if self.info().state.is_finished() {
            return None;
        }
        match shell {
            Some(ShellState::Prompt { status, cwd, .. }) => {
                return Some(at_prompt(*status, cwd.as_deref()));
            }
            Some(ShellState::Incomplete { .. }) => {
                return Some(self.family.incomplete().to_owned());
            }
            Some(ShellState::Unknown | ShellState::Ended { .. } | ShellState::Running { .. })
            | None => {}
        }
        let (told, fields) = self.question()?;
        self.fields.insert("prompt".to_owned(), fields);
        Some(told)
    }

    /// The program's question, in words and for programs.
    fn question(&self) -> Option<(String, Value)> {
        let info = self.info();
        let id = info.id.short();
        if let WaitEnd::Prompt(prompt) = &self.waited.why {
            return Some((asks(&id, self.family, prompt), fields(prompt)));
        }
        // Seen by somebody else's wait; of what it asks only the text is kept.
        let text = info.state.prompt.clone()?;
        let found = detect(&text, Seen::default());
        let prompt = Prompt {
            text,
            secret: found.as_ref().is_some_and(|it| it.secret),
            kind: Kind::InputRequest,
            options: found.map(|it| it.options).unwrap_or_default(),
            default: None,
            pid: 0,
        };
        Some((asks(&id, self.family, &prompt), fields(&prompt)))
    }

    /// Who types in it, where somebody does.
    fn holder(&mut self) -> Option<String> {
        let id = self.info().id.short();
        let holder = self.call.engine.lease_holder(self.call.caller, &id);
        let holder = holder.ok().flatten()?;
        let (name, since) = (clip(&holder.name), to_the_second(holder.since));
        self.field("holder", json!({"name": name, "since": since}));
        Some(format!(
            "[{name} types here since {since}; until it is handed back you can only look]"
        ))
    }
}

/// A shell that waits for a command.
pub(super) fn at_prompt(status: Option<i32>, cwd: Option<&str>) -> String {
    let mut told = "[the shell waits for a command".to_owned();
    if let Some(status) = status {
        told.push_str(&format!("; the last one exited {status}"));
    }
    if let Some(cwd) = cwd {
        told.push_str(&format!("; cwd {}", clip(cwd)));
    }
    told.push(']');
    told
}

/// A question, and how to answer it. A secret is a person's to type: what an agent types is in
/// its context for good.
pub(super) fn asks(id: &str, family: Family, prompt: &Prompt) -> String {
    let text = clean(&prompt.text);
    let text = clip(text.trim());
    if prompt.secret {
        return format!(
            "[it asks for a secret{}; never make one up: a person can type it, unseen by you, \
             with: ostler attach {id}]",
            named(&text)
        );
    }
    let mut told = format!("[it waits for input{}", named(&text));
    if !prompt.options.is_empty() {
        told.push_str(&format!("; options: {}", clip(&prompt.options.join(", "))));
    }
    if let Some(default) = &prompt.default {
        told.push_str(&format!("; default: {}", clip(default)));
    }
    format!("{told}; {}]", family.answer(id))
}

fn named(text: &str) -> String {
    if text.is_empty() {
        String::new()
    } else {
        format!(": {text}")
    }
}

/// A question, for programs.
pub(super) fn fields(prompt: &Prompt) -> Value {
    json!({
        "text": clip(clean(&prompt.text).trim()),
        "secret": prompt.secret,
        "options": prompt.options,
        "default": prompt.default,
    })
}

/// Seconds for people: `0.2 s`.
pub(super) fn took(duration: std::time::Duration) -> String {
    format!("{} s", seconds(duration))
}

/// Cut where a program or a caller made it huge.
pub(super) fn clip(text: &str) -> String {
    clamped(text, CLAUSE_CHARS)
}
