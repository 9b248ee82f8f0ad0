//! Waiting for a prompt: quiet output, and a process that waits for the execution's input.

use std::sync::Arc;
use std::time::Duration;

use ostler_journal::query::Chunk;
use ostler_journal::{ByteQuery, Encoding, encoding_for_label};
use ostler_model::snapshot::ForegroundProcess;
use ostler_model::spec::{Io, StdinSource};
use ostler_model::{Cursor, PromptEvidence, SnapshotRequest, Timestamp, duration};
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::wait_for::wait_finished;
use crate::engine_inner::EngineInner;
use crate::error::Error;
use crate::execution::{DriverCommand, ExecutionHandle, OutputWatchGuard, PromptRecord};
use crate::hooks::ScreenRetention;
use crate::info::{Prompt, WaitEnd};
use crate::prompt::{
    DetectedPrompt, PromptBasis, PromptContext, PromptPlace, PromptTail, PromptTailEvent,
    ScreenPrompt, detect, key_menu, visible_line,
};

/// Silence before a command is checked for a prompt, in milliseconds.
const PROMPT_QUIET_MS: u64 = 150;
/// The longest time between two checks of a silent command, in milliseconds; each check without
/// evidence doubles it from [`PROMPT_QUIET_MS`]. The kernel does not notify when a process begins
/// to read, so this is polled, and only while a caller waits.
const PROMPT_CHECK_MAX_MS: u64 = 2_000;
/// The end of the output that is decoded for detection, in bytes; it holds a menu above the prompt.
const TAIL_BYTES: u64 = 16 * 1024;

/// Waits for a prompt, or for the end of the execution.
pub(super) async fn wait_for_prompt(
    core: &EngineInner,
    entry: &Arc<ExecutionHandle>,
) -> Result<WaitEnd, Error> {
    let mut live = entry.live.subscribe();
    if !has_input(&entry.spec.io) {
        wait_finished(&mut live).await;
        return Ok(WaitEnd::Exit);
    }
    let _watching = OutputWatchGuard::new(entry);
    let mut marks = entry.journal_end.subscribe();
    let mut pause = Duration::from_millis(PROMPT_QUIET_MS);
    let mut last_activity = (
        marks.borrow_and_update().end,
        live.borrow_and_update().state.events,
    );
    let mut due = Instant::now() + pause;
    loop {
        tokio::select! {
            biased;
            Ok(()) = marks.changed() => {}
            Ok(()) = live.changed() => {}
            () = tokio::time::sleep_until(due) => {
                if let Some(found) = find_prompt(core, entry, last_activity.0).await? {
                    return Ok(WaitEnd::Prompt(found));
                }
                pause = (pause * 2).min(Duration::from_millis(PROMPT_CHECK_MAX_MS));
                due = Instant::now() + pause;
            }
        }
        let over = marks.borrow().finished;
        if over {
            wait_finished(&mut live).await;
            return Ok(WaitEnd::Exit);
        }
        // Output, input and every other event restart the silence.
        let now = (
            marks.borrow_and_update().end,
            live.borrow_and_update().state.events,
        );
        if now != last_activity {
            last_activity = now;
            pause = Duration::from_millis(PROMPT_QUIET_MS);
            due = Instant::now() + pause;
        }
    }
}

/// Whether the execution accepts input at all.
pub(crate) const fn has_input(io: &Io) -> bool {
    match io {
        Io::Pty { .. }
        | Io::Pipes {
            stdin: StdinSource::Open,
        } => true,
        Io::Pipes {
            stdin: StdinSource::Empty | StdinSource::Given { .. },
        } => false,
    }
}

/// The current prompt, recorded once in the journal's events; for a caller to whom the driver
/// reports output, of which it knows everything up to `end`.
pub(crate) async fn find_prompt(
    core: &EngineInner,
    entry: &Arc<ExecutionHandle>,
    end: u64,
) -> Result<Option<Prompt>, Error> {
    let is_quiet = |_: &OutputTail| entry.journal_end.borrow().end <= end;
    let found = detect_where(core, entry, ScreenRetention::Keep, is_quiet).await?;
    if let Some(prompt) = &found {
        record(core, entry, prompt, end).await;
    }
    Ok(found)
}

/// As [`find_prompt`], for a caller to whom nobody reports output: `end` is that of the files, and
/// the last output must be older than the silence that a wait begins with. Only questions are
/// recorded: nobody waits for the prompt of a shell.
pub(crate) async fn find_quiet_prompt(
    core: &EngineInner,
    entry: &Arc<ExecutionHandle>,
    end: u64,
) -> Result<Option<Prompt>, Error> {
    let quiet = Duration::from_millis(PROMPT_QUIET_MS);
    let is_quiet = |tail: &OutputTail| {
        let now = Timestamp::now();
        let is_old = |at: Timestamp| duration::between(at, now) >= quiet;
        tail.end <= end && tail.last_at.is_none_or(is_old)
    };
    let retention = ScreenRetention::KeepWithinLimit;
    let found = detect_where(core, entry, retention, is_quiet).await?;
    if let Some(prompt) = found.as_ref().filter(|it| it.is_question) {
        record(core, entry, prompt, end).await;
    }
    Ok(found)
}

/// Whether a command still waits at a prompt that was found before. Where it does not, it is looked at a
/// second time: a program that polls its input may have been between two polls.
pub(crate) async fn waits_at_prompt(
    core: &EngineInner,
    entry: &Arc<ExecutionHandle>,
    is_same: impl Fn(&Prompt) -> bool,
) -> bool {
    let found = async || {
        let retention = ScreenRetention::KeepWithinLimit;
        detect_where(core, entry, retention, |_| true).await
    };
    // A command that is paused reads nothing, and goes on where it was.
    if entry.live.borrow().state.paused {
        return true;
    }
    match found().await {
        // What cannot be read now is no sign that it has gone on.
        Err(_) => true,
        Ok(Some(prompt)) => is_same(&prompt),
        Ok(None) => {
            let again = Instant::now() + Duration::from_millis(PROMPT_QUIET_MS);
            tokio::time::sleep_until(again).await;
            found()
                .await
                .is_ok_and(|prompt| prompt.is_some_and(|it| is_same(&it)))
        }
    }
}

/// Whether a command has printed nothing since a prompt was found at this place; true where its output
/// cannot be read now.
pub(crate) fn is_output_end(entry: &ExecutionHandle, place: PromptPlace) -> bool {
    let end = entry.journal().and_then(|journal| Ok(journal.end()?));
    end.map_or(true, |end| place.is_at_end(end))
}

/// Records a prompt in the events, and tells those who ask people.
async fn record(core: &EngineInner, entry: &Arc<ExecutionHandle>, found: &Prompt, end: u64) {
    let prompt = PromptRecord {
        text: found.text.clone(),
        secret: found.secret,
        end,
    };
    let (reply, recorded) = oneshot::channel();
    if entry
        .send_command(DriverCommand::PromptDetected { prompt, reply })
        .await
        .is_ok()
    {
        // Where the driver has ended, the end of the execution is the next event.
        let _over = recorded.await.is_err();
    }
    core.notify(|observer| observer.prompt_found(entry, found));
}

async fn detect_where(
    core: &EngineInner,
    entry: &Arc<ExecutionHandle>,
    retention: ScreenRetention,
    is_quiet: impl Fn(&OutputTail) -> bool,
) -> Result<Option<Prompt>, Error> {
    let request = SnapshotRequest {
        foreground: true,
        ..SnapshotRequest::default()
    };
    // Between two attempts there is no process.
    let Ok(snapshot) = core.backend.snapshot(entry.id, request).await else {
        return Ok(None);
    };
    let is_waiting = |it: &ForegroundProcess| it.reads.is_some() || it.polls;
    let Some(foreground) = snapshot.foreground.filter(is_waiting) else {
        return Ok(None);
    };
    let output = output_tail(entry)?;
    if !is_quiet(&output) {
        return Ok(None);
    }
    let screen = screen_state(core, entry, retention).await;
    if !is_quiet(&output) {
        // It printed during the check.
        return Ok(None);
    }
    let tail = &output.text;
    let input = PromptContext {
        before: &tail.before,
        finished: false,
        reading: foreground.reads.is_some(),
        echo: foreground.echo,
        lines: foreground.lines,
        full_screen: false,
    };
    let detected = match &screen {
        Some(shown) => detect_on_screen(shown, tail, input),
        None => detect_in_tail(tail, input),
    };
    let Some((text, found)) = detected else {
        return Ok(None);
    };
    let takes_commands = |it: &ScreenPrompt| it.at_shell_prompt || it.full_screen;
    let at_shell_prompt = screen.as_ref().is_some_and(takes_commands);
    let place = match screen {
        Some(_) => output.place_on_terminal(&text),
        None => PromptPlace::at_end(output.end),
    };
    Ok(Some(Prompt {
        place,
        evidence: evidence(&entry.spec.io, foreground, found.basis),
        is_question: !at_shell_prompt && is_question(&text, foreground, found.basis),
        text,
        secret: found.secret,
        kind: found.kind,
        options: found.options,
        default: found.default,
        pid: foreground.pid,
    }))
}

/// What shows the prompt, the kernel's part first.
fn evidence(io: &Io, foreground: ForegroundProcess, basis: PromptBasis) -> Vec<PromptEvidence> {
    let waits = match (io, foreground.reads) {
        (Io::Pty { .. }, Some(_)) => PromptEvidence::ReadsTerminal,
        (Io::Pipes { .. }, Some(_)) => PromptEvidence::ReadsPipe,
        (Io::Pty { .. } | Io::Pipes { .. }, None) => PromptEvidence::PollsInput,
    };
    let shown = match basis {
        PromptBasis::EchoOff => Some(PromptEvidence::EchoOff),
        PromptBasis::Words | PromptBasis::CommandPrompt => Some(PromptEvidence::PromptWords),
        PromptBasis::FullScreen | PromptBasis::Reading => None,
    };
    std::iter::once(waits).chain(shown).collect()
}

/// Whether one answer is asked for. A process that reads a pipe without a text to answer to may be
/// a filter or a server; one that reads whole lines of a terminal waits for a person.
fn is_question(text: &str, foreground: ForegroundProcess, basis: PromptBasis) -> bool {
    match basis {
        PromptBasis::EchoOff | PromptBasis::Words => true,
        PromptBasis::CommandPrompt | PromptBasis::FullScreen => false,
        PromptBasis::Reading => !text.trim().is_empty() || foreground.lines == Some(true),
    }
}

/// Detects a prompt in the unfinished line, else in the last finished line; the text is empty where
/// a process reads without a prompt.
fn detect_in_tail(tail: &PromptTail, input: PromptContext<'_>) -> Option<(String, DetectedPrompt)> {
    if !tail.text.trim().is_empty() {
        return detect(&tail.text, input).map(|found| (tail.text.clone(), found));
    }
    let (line, before) = tail.last_line();
    let line_input = PromptContext {
        before,
        finished: true,
        ..input
    };
    let by_line = detect(line, line_input).map(|found| (line.to_owned(), found));
    by_line.or_else(|| detect("", input).map(|found| (String::new(), found)))
}

/// As [`detect_in_tail`] for a terminal, on the rendered screen. Only text that was printed since
/// the last input can be a prompt.
fn detect_on_screen(
    screen: &ScreenPrompt,
    tail: &PromptTail,
    input: PromptContext<'_>,
) -> Option<(String, DetectedPrompt)> {
    let input = PromptContext {
        // An integrated shell polls several descriptors; its markers report that it accepts a
        // command.
        reading: input.reading || screen.at_shell_prompt,
        full_screen: screen.full_screen,
        ..input
    };
    if screen.full_screen {
        let text = screen.bottom_line();
        let input = PromptContext {
            before: "",
            ..input
        };
        return detect(text, input).map(|found| (text.to_owned(), found));
    }
    let menu = screen.key_menu_question();
    if let Some(question) = menu.filter(|_| input.lines == Some(false) && !tail.is_answered()) {
        return Some((question.to_owned(), key_menu()));
    }
    if !screen.line.trim().is_empty() && !tail.is_answered() {
        let before = &screen.before;
        let input = PromptContext { before, ..input };
        return detect(&screen.line, input).map(|found| (screen.line.clone(), found));
    }
    let finished = PromptTail {
        text: String::new(),
        ..tail.clone()
    };
    detect_in_tail(&finished, input).map(|(text, found)| (visible_line(&text), found))
}

/// The screen of a terminal; none without a terminal, or where the screen cannot be read.
async fn screen_state(
    core: &EngineInner,
    entry: &Arc<ExecutionHandle>,
    retention: ScreenRetention,
) -> Option<ScreenPrompt> {
    if !matches!(entry.spec.io, Io::Pty { .. }) {
        return None;
    }
    core.screens.prompt_screen(entry, retention).await
}

/// The end of the output.
struct OutputTail {
    /// Its text, decoded with the execution's encoding.
    text: PromptTail,
    /// The same as it was printed, all streams in one.
    bytes: Vec<u8>,
    encoding: Encoding,
    /// The offset of its end.
    end: u64,
    /// When the last of it arrived.
    last_at: Option<Timestamp>,
}

impl OutputTail {
    /// The place of a prompt with this text at the end of a terminal's output.
    fn place_on_terminal(&self, text: &str) -> PromptPlace {
        let decode = |bytes: &[u8]| self.encoding.decode(bytes);
        PromptPlace::on_terminal(&self.bytes, self.end, text, decode)
    }
}

fn output_tail(entry: &ExecutionHandle) -> Result<OutputTail, Error> {
    let journal = entry.journal()?;
    let end = journal.end()?;
    let from = Cursor {
        offset: end.saturating_sub(TAIL_BYTES),
        event: 0,
    };
    let chunks = journal.read(&ByteQuery::starting_at(from))?.chunks;
    let last_input = entry.live.borrow().last_input_offset;
    let label = entry.spec.encoding.as_deref();
    let encoding = label.and_then(|label| encoding_for_label(label).ok());
    let encoding = encoding.unwrap_or(Encoding::UTF_8);
    let pieces = tail_pieces(&chunks, last_input);
    let text = PromptTail::from_events(pieces, |bytes| encoding.decode(bytes));
    let last = chunks.last();
    Ok(OutputTail {
        text,
        bytes: chunks.iter().flat_map(|it| &it.bytes).copied().collect(),
        encoding,
        end: last.map_or(end, |it| end.max(it.offset + it.bytes.len() as u64)),
        last_at: last.map(|it| it.at),
    })
}

/// The chunks as events, with the last input between them.
fn tail_pieces(chunks: &[Chunk], last_input: Option<u64>) -> Vec<PromptTailEvent<'_>> {
    let (mut pieces, mut answered) = (Vec::with_capacity(chunks.len() + 2), last_input);
    for chunk in chunks {
        let output = |bytes| PromptTailEvent::Output(chunk.stream, bytes);
        let bytes = chunk.bytes.as_slice();
        let after = chunk.offset + bytes.len() as u64;
        match answered.take_if(|at| *at < after) {
            Some(at) => {
                // Smaller than a chunk, which is in memory.
                let cut = usize::try_from(at.saturating_sub(chunk.offset)).unwrap_or(0);
                pieces.extend([
                    output(&bytes[..cut]),
                    PromptTailEvent::Input,
                    output(&bytes[cut..]),
                ]);
            }
            None => pieces.push(output(bytes)),
        }
    }
    pieces.extend(answered.map(|_| PromptTailEvent::Input));
    pieces
}
