//! Waiting for a prompt (B7): quiet output, and somebody who waits for the execution's input.

use std::sync::Arc;
use std::time::Duration;

use ostler_journal::query::Chunk;
use ostler_journal::{ByteQuery, encoding_named};
use ostler_model::spec::{Io, Stdin};
use ostler_model::{Cursor, Observation};
use ostler_terminal::Screen;
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::run::{Ask, Asked};
use super::wait::finished;
use crate::core::Core;
use crate::entry::{Entry, Watching};
use crate::error::Error;
use crate::info::{Prompt, WaitEnd};
use crate::prompt::{Detected, Piece, Seen, Shown, Tail, clean, detect};

/// Silence after which a prompt may stand, in milliseconds.
const PROMPT_QUIET_MS: u64 = 150;
/// The longest time between two looks at a silent command, in milliseconds; each look without
/// evidence doubles it from [`PROMPT_QUIET_MS`]. Nothing tells when a process begins to read,
/// so this is looked at, and only while somebody waits.
const PROMPT_LOOK_MS: u64 = 2_000;
/// Output before a prompt that is looked at: its menu.
const TAIL_BYTES: u64 = 16 * 1024;

/// Waits until the command waits for an answer, or for its end.
pub(super) async fn prompt(core: &Core, entry: &Arc<Entry>) -> Result<WaitEnd, Error> {
    let mut live = entry.live.subscribe();
    if !has_input(&entry.spec.io) {
        finished(&mut live).await;
        return Ok(WaitEnd::Exit);
    }
    let _watching = Watching::new(entry);
    let mut marks = entry.marks.subscribe();
    let mut pause = Duration::from_millis(PROMPT_QUIET_MS);
    let mut known = (
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
                if let Some(found) = look(core, entry, known.0).await? {
                    return Ok(WaitEnd::Prompt(found));
                }
                pause = (pause * 2).min(Duration::from_millis(PROMPT_LOOK_MS));
                due = Instant::now() + pause;
            }
        }
        let over = marks.borrow().finished;
        if over {
            finished(&mut live).await;
            return Ok(WaitEnd::Exit);
        }
        // Output, input and every other event begin the silence anew.
        let now = (
            marks.borrow_and_update().end,
            live.borrow_and_update().state.events,
        );
        if now != known {
            known = now;
            pause = Duration::from_millis(PROMPT_QUIET_MS);
            due = Instant::now() + pause;
        }
    }
}

/// Whether anything can ever be typed in.
const fn has_input(io: &Io) -> bool {
    match io {
        Io::Pty { .. } | Io::Pipes { stdin: Stdin::Open } => true,
        Io::Pipes {
            stdin: Stdin::Empty | Stdin::Given { .. },
        } => false,
    }
}

/// The prompt that stands now, told once to the journal.
pub(crate) async fn look(
    core: &Core,
    entry: &Arc<Entry>,
    end: u64,
) -> Result<Option<Prompt>, Error> {
    let what = Observation {
        foreground: true,
        ..Observation::default()
    };
    // Between two attempts there is nothing to look at.
    let Ok(evidence) = core.place.observe(entry.id, what).await else {
        return Ok(None);
    };
    let waits = |it: &ostler_model::evidence::Foreground| it.reads.is_some() || it.polls;
    let Some(foreground) = evidence.foreground.filter(waits) else {
        return Ok(None);
    };
    let tail = tail(entry)?;
    let shown = shown(core, entry).await;
    if entry.marks.borrow().end > end {
        // It printed while we looked.
        return Ok(None);
    }
    let seen = Seen {
        before: &tail.before,
        finished: false,
        reading: foreground.reads.is_some(),
        echo: foreground.echo,
        lines: foreground.lines,
        full_screen: false,
    };
    let found = match &shown {
        Some(shown) => read_screen(shown, &tail, seen),
        None => read(&tail, seen),
    };
    let Some((text, found)) = found else {
        return Ok(None);
    };
    let asked = Asked {
        text: text.clone(),
        secret: found.secret,
        end,
    };
    let (answer, told) = oneshot::channel();
    if entry.ask(Ask::Prompt { asked, answer }).await.is_ok() {
        // A driver that is done has nothing to tell: the end comes next.
        let _over = told.await.is_err();
    }
    Ok(Some(Prompt {
        text,
        secret: found.secret,
        kind: found.kind,
        options: found.options,
        default: found.default,
        pid: foreground.pid,
    }))
}

/// The line that asks: the unfinished one, else the last finished one, else nothing where a
/// process reads without a word.
fn read(tail: &Tail, seen: Seen<'_>) -> Option<(String, Detected)> {
    if !tail.text.trim().is_empty() {
        return detect(&tail.text, seen).map(|found| (tail.text.clone(), found));
    }
    let (line, before) = tail.last_line();
    let asked = Seen {
        before,
        finished: true,
        ..seen
    };
    let by_line = detect(line, asked).map(|found| (line.to_owned(), found));
    by_line.or_else(|| detect("", seen).map(|found| (String::new(), found)))
}

/// The same of a terminal, whose screen shows the line as a person sees it. Alone what was
/// printed since the last input can ask.
fn read_screen(shown: &Shown, tail: &Tail, seen: Seen<'_>) -> Option<(String, Detected)> {
    let seen = Seen {
        // An integrated shell waits for several things and says that it takes a command.
        reading: seen.reading || shown.takes_command,
        full_screen: shown.full_screen,
        ..seen
    };
    if shown.full_screen {
        let text = shown.asked_below();
        let seen = Seen { before: "", ..seen };
        return detect(text, seen).map(|found| (text.to_owned(), found));
    }
    if !shown.line.trim().is_empty() && !tail.is_answered() {
        let before = &shown.before;
        let seen = Seen { before, ..seen };
        return detect(&shown.line, seen).map(|found| (shown.line.clone(), found));
    }
    let finished = Tail {
        text: String::new(),
        ..tail.clone()
    };
    read(&finished, seen).map(|(text, found)| (clean(&text), found))
}

/// The screen of a terminal; none without one, or where it cannot be read.
async fn shown(core: &Core, entry: &Arc<Entry>) -> Option<Shown> {
    if !matches!(entry.spec.io, Io::Pty { .. }) {
        return None;
    }
    let look = |screen: &Screen| Shown::of(&screen.view(), screen.shell());
    match core.look_at_screen(entry, look).await {
        Ok(shown) => Some(shown),
        Err(error) => {
            tracing::debug!(id = %entry.id, %error, "a prompt is looked for without its screen");
            None
        }
    }
}

/// The end of the output, decoded as the execution asks.
fn tail(entry: &Entry) -> Result<Tail, Error> {
    let journal = entry.journal()?;
    let from = Cursor {
        offset: journal.end()?.saturating_sub(TAIL_BYTES),
        event: 0,
    };
    let chunks = journal.read(&ByteQuery::from(from))?.chunks;
    let answered = entry.live.borrow().input_at;
    let label = entry.spec.encoding.as_deref();
    let encoding = label.and_then(|label| encoding_named(label).ok());
    Ok(Tail::of(
        pieces(&chunks, answered),
        |bytes| match encoding {
            Some(encoding) => encoding.decode(bytes),
            None => String::from_utf8_lossy(bytes).into_owned(),
        },
    ))
}

/// Chunks, with the last input in its place.
fn pieces(chunks: &[Chunk], answered: Option<u64>) -> Vec<Piece<'_>> {
    let (mut pieces, mut answered) = (Vec::with_capacity(chunks.len() + 2), answered);
    for chunk in chunks {
        let output = |bytes| Piece::Output(chunk.stream, bytes);
        let bytes = chunk.bytes.as_slice();
        let after = chunk.offset + bytes.len() as u64;
        match answered.take_if(|at| *at < after) {
            Some(at) => {
                // Less than a chunk, which is in memory.
                let cut = usize::try_from(at.saturating_sub(chunk.offset)).unwrap_or(0);
                pieces.extend([output(&bytes[..cut]), Piece::Input, output(&bytes[cut..])]);
            }
            None => pieces.push(output(bytes)),
        }
    }
    pieces.extend(answered.map(|_| Piece::Input));
    pieces
}
