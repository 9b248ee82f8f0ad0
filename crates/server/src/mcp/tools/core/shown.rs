//! One execution as text: how it stands, what it printed, how to go on.

use ostler_engine::{Info, Prompt, WaitEnd, Waited};
use ostler_journal::LineQuery;
use ostler_model::ending::{Cause, Ending};
use ostler_model::{Cursor, ErrorCode, Phase};
use serde_json::{Map, Value, json};

use super::process::SEPARATOR;
use super::select::Selection;
use super::{raw, repl};
use crate::error::{Failure, object};
use crate::mcp::context::Call;
use crate::mcp::elicit::{self, Pending};
use crate::mcp::output::{Printed, paged, selected};
use crate::mcp::reply::{Link, Reply};
use crate::mcp::resources::log_link;
use crate::mcp::tools::command::status::{isolation, seconds};
use crate::mcp::tools::{ends, service, walls};
use crate::render::{Budget, FAULT_CHARS, clamped, clean};

/// The most characters of an ending, a note or a matched line.
const CLAUSE_CHARS: usize = 300;
/// The least characters of output, whatever stands around it.
const MIN_OUTPUT_CHARS: usize = 400;
/// Kept free for notes that only the reading brings.
const NOTES_CHARS: usize = 150;
/// Output without an end of block: a reply is one text.
const BLOCK_LINES: usize = usize::MAX;
/// A position as long as any.
const LONGEST: Cursor = Cursor {
    offset: u64::MAX,
    event: u64::MAX,
};

/// An execution, told.
#[derive(Debug)]
pub(in crate::mcp::tools) struct Shown {
    pub(in crate::mcp::tools) text: String,
    /// The same for programs, and what the text leaves out.
    pub(in crate::mcp::tools) fields: Map<String, Value>,
    /// Where all of it is, when this is not.
    pub(in crate::mcp::tools) link: Option<Link>,
}

impl Shown {
    /// What it costs among others.
    pub(in crate::mcp::tools) fn chars(&self) -> usize {
        self.text.chars().count() + SEPARATOR.len()
    }

    /// The same with one more thing to be known.
    pub(in crate::mcp::tools) fn with_note(mut self, note: &str) -> Self {
        self.text.push_str(&format!("\n[note: {}]", clip(note)));
        self
    }

    /// The answer of a tool that shows one execution.
    pub(in crate::mcp::tools) fn reply(self) -> Reply {
        let mut reply = Reply::text(vec![self.text], Value::Object(self.fields));
        reply.links.extend(self.link);
        reply
    }
}

/// What it printed, as far as it was asked for.
#[derive(Debug, Default)]
struct Body {
    text: String,
    next: Cursor,
    notes: Vec<String>,
    fields: Map<String, Value>,
    cut: bool,
}

/// Tells of one execution in at most the selection's characters.
pub(in crate::mcp::tools) async fn shown(
    call: Call<'_>,
    waited: &Waited,
    selection: &Selection,
) -> Result<Shown, Failure> {
    call.told(&waited.info);
    let asked = elicit::pending(call, waited);
    let mut notes = walls::notes(call, &waited.info);
    notes.extend(repl::hint(call, waited).await);
    let changes = walls::changes(call, &waited.info).await;
    let tail = |of_output: &[String]| {
        let all = [of_output, &notes].concat();
        footer(waited, (asked.as_ref(), &all))
    };
    let changes = changes.unwrap_or_default();
    let frame = header(waited, LONGEST) + &tail(&[]) + &changes;
    let frame = frame.chars().count() + NOTES_CHARS;
    let room = selection.chars.saturating_sub(frame).max(MIN_OUTPUT_CHARS);
    let body = if selection.raw {
        printed_raw(call, &waited.info, selection, room).await?
    } else {
        printed(call, &waited.info, selection, room).await?
    };
    let mut fields = fields(waited);
    fields.insert("cursor".to_owned(), json!(body.next));
    fields.extend(body.fields);
    let mut text = header(waited, body.next);
    for part in [body.text, changes, tail(&body.notes)] {
        if !part.is_empty() {
            text.push('\n');
            text.push_str(&part);
        }
    }
    let link = body.cut.then(|| log_link(&waited.info));
    Ok(Shown { text, fields, link })
}

/// How it stands, in one line, without its output.
pub(in crate::mcp::tools) fn line(call: Call<'_>, waited: &Waited) -> Shown {
    call.told(&waited.info);
    Shown {
        text: header(waited, waited.cursor),
        fields: fields(waited),
        link: None,
    }
}

/// Ends that are no answer: its time ran out, or nobody can say how it ended.
pub(in crate::mcp::tools) fn failure(info: &Info) -> Option<Failure> {
    let ending = info.state.ending.as_ref()?;
    match &ending.cause {
        Cause::TimedOut { .. } => {
            let message = format!(
                "the command ran out of time after {} and was killed with its process tree; its \
                 output so far follows",
                time(info)
            );
            let failure = Failure::new(ErrorCode::CommandTimeout, message);
            Some(failure.with_hint(
                "give a longer timeout, or none: wait_ms alone bounds how long a call waits",
            ))
        }
        Cause::SpawnFailed { .. } | Cause::Lost { .. } => {
            Some(Failure::new(ErrorCode::CommandExecution, ending.describe()))
        }
        Cause::Exited | Cause::Signaled | Cause::Stopped { .. } | Cause::OutOfMemory => None,
    }
}

async fn printed(
    call: Call<'_>,
    info: &Info,
    selection: &Selection,
    chars: usize,
) -> Result<Body, Failure> {
    let mut budget = Budget::new(chars, BLOCK_LINES);
    if succeeded(info) {
        budget.quiet_chars = selection.quiet_chars.min(chars);
        // Whoever asks for a size or a part gets all of it.
        if selection.quiet_chars < selection.chars {
            budget.fault_chars = FAULT_CHARS.min(chars);
        }
    }
    let query = selection.query.clone();
    let mut printed = if selection.paged {
        paged(call, info, query, budget).await?
    } else {
        selected(call, info, query, budget).await?
    };
    let mut body = Body {
        text: printed.blocks().join("\n"),
        next: printed.next,
        notes: printed.notes.clone(),
        fields: Map::new(),
        cut: printed.is_cut(),
    };
    printed.fields(&mut body.fields);
    body.notes.extend(left_behind(&printed));
    if body.text.is_empty() {
        body.notes
            .extend(nothing(&selection.query).map(str::to_owned));
    }
    Ok(body)
}

/// Whether it ended, and well.
fn succeeded(info: &Info) -> bool {
    let ending = info.state.ending.as_ref();
    ending.is_some_and(|it| it.cause == Cause::Exited && it.code == Some(0))
}

/// What comes behind a page.
fn left_behind(printed: &Printed) -> Option<String> {
    let lines = match printed.left {
        0 => return None,
        1 => "1 more line".to_owned(),
        left => format!("{left} more lines"),
    };
    Some(format!(
        "{lines}; the next page: action output with cursor \"{}\"",
        printed.next
    ))
}

/// Why there is nothing to show, where that is not plain.
const fn nothing(query: &LineQuery) -> Option<&'static str> {
    match (&query.grep, &query.from) {
        (Some(_), _) => Some("no line matches"),
        (None, Some(_)) => Some("no new output"),
        (None, None) => None,
    }
}

async fn printed_raw(
    call: Call<'_>,
    info: &Info,
    selection: &Selection,
    chars: usize,
) -> Result<Body, Failure> {
    let journal = call.engine.journal(call.caller, &info.id.short())?;
    let from = selection.query.from.unwrap_or(Cursor::START);
    let part = (from, selection.query.streams);
    let piece = raw::piece(&journal, info, part, chars).await?;
    let mut notes = Vec::new();
    if piece.gone > 0 {
        notes.push(format!("{} bytes before this are gone", piece.gone));
    }
    if piece.more {
        notes.push(format!("more is there from cursor \"{}\"", piece.next));
    }
    Ok(Body {
        text: piece.text,
        next: piece.next,
        notes,
        fields: object(json!({"more": piece.more})),
        cut: false,
    })
}

/// `[k3v9x0qa running 10.0s | cursor 812.4]`, `[k3v9x0qa exit 0, 0.2s]`.
fn header(waited: &Waited, next: Cursor) -> String {
    let info = &waited.info;
    let (id, time) = (info.id.short(), time(info));
    match &info.state.ending {
        Some(ending) => format!("[{id} {}, {time}]", clip(&ended(ending))),
        None => format!("[{id} {} {time} | cursor {next}]", doing(waited)),
    }
}

fn ended(ending: &Ending) -> String {
    match (&ending.cause, ending.code) {
        (Cause::Exited, Some(code)) => format!("exit {code}"),
        _ => ending.describe(),
    }
}

fn doing(waited: &Waited) -> &'static str {
    let info = &waited.info;
    let state = &info.state;
    let asks = matches!(waited.why, WaitEnd::Prompt(_)) || state.prompt.is_some();
    match state.phase {
        Phase::Stopping => "stopping",
        Phase::Starting | Phase::Running | Phase::Finished => match (state.paused, asks) {
            (true, _) => "paused",
            (false, true) => "waiting for input",
            (false, false) if info.spec.lifetime.plan().is_some() => info.status().service,
            (false, false) => "running",
        },
    }
}

/// `10.0s`; thousandths where tenths would be nothing.
fn time(info: &Info) -> String {
    let seconds = info.duration().as_secs_f64();
    if seconds < 0.1 {
        format!("{seconds:.3}s")
    } else {
        format!("{seconds:.1}s")
    }
}

/// Why the answer came, what else is to be known, and how to go on.
fn footer(waited: &Waited, (asked, notes): (Option<&Pending>, &[String])) -> String {
    let info = &waited.info;
    let mut lines: Vec<String> = met(&waited.why).into_iter().collect();
    lines.extend(asked.map(|asked| format!("[{}]", asked.text.replace('\n', "; "))));
    let degraded = info.state.degraded.iter().cloned();
    let told = notes.iter().cloned().chain(degraded);
    let told = told.chain(left(info));
    lines.extend(told.map(|note| format!("[note: {}]", clip(&note))));
    if !info.state.is_finished() {
        let is_refused = asked.is_some_and(|asked| asked.is_refused);
        let is_asked = asked.is_some_and(|asked| !asked.is_refused);
        let is_secret = matches!(&waited.why, WaitEnd::Prompt(prompt) if prompt.secret);
        if !is_asked || is_secret {
            lines.push(go_on(waited, is_refused));
        }
    }
    lines.join("\n")
}

/// The calls that follow from here; how to answer a prompt is told with it. A prompt that a
/// person refused to answer is not for the agent to answer.
fn go_on(waited: &Waited, is_refused: bool) -> String {
    let stop = if waited.info.spec.lifetime.plan().is_some() {
        let name = service::name(&waited.info);
        format!("end it: service stop, name \"{name}\"")
    } else {
        "end it: process_control stop".to_owned()
    };
    match &waited.why {
        WaitEnd::Prompt(prompt) if prompt.secret || is_refused => format!("[{stop}]"),
        WaitEnd::Prompt(_)
        | WaitEnd::Exit
        | WaitEnd::Pattern(_)
        | WaitEnd::Ready
        | WaitEnd::NotReady(_)
        | WaitEnd::Output
        | WaitEnd::Idle
        | WaitEnd::AtMost
        | WaitEnd::Nothing => format!("[go on: process wait; {stop}]"),
    }
}

/// What was waited for and came to pass.
fn met(why: &WaitEnd) -> Option<String> {
    match why {
        WaitEnd::Pattern(found) => {
            let line = found.line.to_string_lossy();
            Some(format!("[pattern matched: {}]", clip(&line)))
        }
        WaitEnd::Idle => Some("[no output for as long as asked]".to_owned()),
        WaitEnd::Ready => Some("[ready]".to_owned()),
        WaitEnd::NotReady(seen) => Some(format!("[not ready: {}]", clip(seen))),
        WaitEnd::Prompt(_)
        | WaitEnd::Exit
        | WaitEnd::Output
        | WaitEnd::AtMost
        | WaitEnd::Nothing => None,
    }
}

/// Processes its leader left behind.
fn left(info: &Info) -> Option<String> {
    let count = info.state.leftovers;
    (count > 0).then(|| {
        let processes = if count == 1 { "process" } else { "processes" };
        format!(
            "{count} {processes} it left in the background were ended; start what is to stay \
             with an exec of its own"
        )
    })
}

pub(super) fn fields(waited: &Waited) -> Map<String, Value> {
    let info = &waited.info;
    let ending = info.state.ending.as_ref();
    let mut fields = object(json!({
        "id": info.id.short(),
        "status": info.status().process,
        "exit_code": ending.and_then(|ending| ending.code),
        "signal": ending.and_then(|ending| ending.signal).map(|signal| signal.name()),
        "execution_time": seconds(info.duration()),
        "yielded": ending.is_none(),
        "why": ends::why(&waited.why),
        "cursor": waited.cursor,
        "isolation": isolation(&info.spec.policy),
    }));
    if let WaitEnd::Prompt(prompt) = &waited.why {
        fields.insert("prompt".to_owned(), question(prompt));
    }
    fields
}

/// What it asks for, for programs.
fn question(prompt: &Prompt) -> Value {
    json!({
        "text": clip(&clean(&prompt.text)),
        "secret": prompt.secret,
        "options": prompt.options,
        "default": prompt.default,
    })
}

fn clip(text: &str) -> String {
    clamped(text, CLAUSE_CHARS)
}
