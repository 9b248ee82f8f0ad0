//! Waiting: for the end, for a line, for quiet, for a prompt. Everything here reads what the
//! driver publishes; nothing polls, but for [`prompt`]'s looks.

use std::sync::Arc;
use std::time::Duration;

use ostler_journal::Mark;
use ostler_model::{Cursor, Io, Phase, Stage, State};
use tokio::sync::watch;
use tokio::time::Instant;

use super::pattern::{self, From};
use super::prompt;
use crate::admission::arguments::ArgumentError;
use crate::core::Core;
use crate::entry::{Entry, Live, Watching};
use crate::error::Error;
use crate::info::{WaitEnd, Waited};
use crate::request::WaitFor;

/// How long one that will not be ready is given to end, before it is told as living, in
/// milliseconds.
const LAST_MOMENT_MS: u64 = 500;

/// Silence after which what was printed together counts as complete, in milliseconds.
const OUTPUT_QUIET_MS: u64 = 5;
/// How long that is waited for at most after the first output, in milliseconds.
const OUTPUT_SETTLE_MS: u64 = 50;

/// Waits as asked, at most so long.
pub(crate) async fn wait(
    core: &Core,
    entry: &Arc<Entry>,
    until: &WaitFor,
    at_most: Option<Duration>,
) -> Result<Waited, Error> {
    if matches!(entry.spec.io, Io::Pty { .. }) {
        core.readers.keep_open(entry);
    }
    let why = {
        let found = look(core, entry, until);
        match at_most {
            // `timeout` looks at the future first: what is already so is told even with 0.
            Some(at_most) => match tokio::time::timeout(at_most, found).await {
                Ok(found) => found?,
                Err(_) => too_late(entry, until),
            },
            None => found.await?,
        }
    };
    let info = entry.info();
    let cursor = match &why {
        WaitEnd::Pattern(found) => Cursor {
            offset: found.offset,
            event: info.state.events,
        },
        WaitEnd::Exit
        | WaitEnd::Ready
        | WaitEnd::NotReady(_)
        | WaitEnd::Output
        | WaitEnd::Idle
        | WaitEnd::Prompt(_)
        | WaitEnd::AtMost
        | WaitEnd::Nothing => info.cursor(),
    };
    Ok(Waited { info, why, cursor })
}

/// The time is over. Output that came is told, whether or not more of it was under way.
fn too_late(entry: &Entry, until: &WaitFor) -> WaitEnd {
    match until {
        WaitFor::OutputAfter(from) if entry.marks.borrow().end > from.offset => WaitEnd::Output,
        WaitFor::OutputAfter(_)
        | WaitFor::Nothing
        | WaitFor::Exit
        | WaitFor::Pattern(_)
        | WaitFor::PatternAfter(..)
        | WaitFor::PatternAfterInput(..)
        | WaitFor::Idle(_)
        | WaitFor::Prompt
        | WaitFor::Ready => WaitEnd::AtMost,
    }
}

async fn look(core: &Core, entry: &Arc<Entry>, until: &WaitFor) -> Result<WaitEnd, Error> {
    match until {
        WaitFor::Nothing => Ok(WaitEnd::Nothing),
        WaitFor::Exit => {
            finished(&mut entry.live.subscribe()).await;
            Ok(WaitEnd::Exit)
        }
        WaitFor::Pattern(pattern) => pattern::wait(core, entry, pattern, From::Start).await,
        WaitFor::PatternAfter(pattern, from) => {
            pattern::wait(core, entry, pattern, From::Offset(from.offset)).await
        }
        WaitFor::PatternAfterInput(pattern, input) => {
            pattern::wait(core, entry, pattern, From::Input(input)).await
        }
        WaitFor::OutputAfter(from) => output(entry, from.offset).await,
        WaitFor::Idle(quiet) => idle(entry, *quiet).await,
        WaitFor::Prompt => prompt::prompt(core, entry).await,
        WaitFor::Ready => ready(entry).await,
    }
}

pub(super) async fn finished(live: &mut watch::Receiver<Live>) {
    // The sender lives in the entry the caller holds, so this cannot fail.
    let _ended = live.wait_for(|live| live.state.is_finished()).await.is_ok();
}

/// Until its first attempt runs or it is over without one.
pub(crate) async fn started(entry: &Entry) {
    let mut live = entry.live.subscribe();
    let _ended = live
        .wait_for(|live| live.state.started_at.is_some() || live.state.is_finished())
        .await
        .is_ok();
}

/// What of a service ends a wait for its readiness; `first` is the attempt it is about.
fn verdict(state: &State, first: u32) -> Option<WaitEnd> {
    if state.is_finished() {
        return Some(WaitEnd::Exit);
    }
    if state.healthy != Some(false) && state.stage >= Some(Stage::Running) {
        return Some(WaitEnd::Ready);
    }
    if state.healthy == Some(false) {
        let seen = state.health.clone().unwrap_or_default();
        return Some(WaitEnd::NotReady(seen));
    }
    let between = state.phase == Phase::Starting && state.backoff_until.is_some();
    if between || state.attempt > first {
        let end = state.last_end.as_deref().unwrap_or("it ended");
        let next = format!("{end}; attempt {} follows", first + 1);
        return Some(WaitEnd::NotReady(next));
    }
    None
}

async fn ready(entry: &Entry) -> Result<WaitEnd, Error> {
    if entry.spec.lifetime.plan().is_none() {
        let id = entry.id.short();
        return Err(ArgumentError::NoService { id }.into());
    }
    let mut live = entry.live.subscribe();
    let first = {
        let state = &live.borrow().state;
        let between = u32::from(state.phase == Phase::Starting && state.backoff_until.is_some());
        (state.attempt + between).max(1)
    };
    loop {
        let state = live.borrow_and_update().state.clone();
        // Between two attempts, what is known is about the one before.
        let is_old = !state.is_finished() && state.attempt > 0 && state.attempt < first;
        if !is_old && let Some(end) = verdict(&state, first) {
            return Ok(last_moment(&mut live, end).await);
        }
        // The sender lives in the entry the caller holds, so this cannot fail.
        let _changed = live.changed().await.is_ok();
    }
}

/// A program that has just said why it fails is often about to end: told as one that lives, it
/// would be dead before anybody reads that.
async fn last_moment(live: &mut watch::Receiver<Live>, end: WaitEnd) -> WaitEnd {
    let dies = matches!(end, WaitEnd::NotReady(_)) && live.borrow().state.phase == Phase::Running;
    let moment = Duration::from_millis(LAST_MOMENT_MS);
    if dies && tokio::time::timeout(moment, finished(live)).await.is_ok() {
        return WaitEnd::Exit;
    }
    end
}

async fn output(entry: &Arc<Entry>, after: u64) -> Result<WaitEnd, Error> {
    let _watching = Watching::new(entry);
    let mut marks = entry.marks.subscribe();
    // The sender lives in the entry the caller holds, so this cannot fail.
    let mark = marks
        .wait_for(|mark| mark.end > after || mark.finished)
        .await;
    let came = mark.is_ok_and(|mark| mark.end > after);
    if came {
        complete(&mut marks).await;
        return Ok(WaitEnd::Output);
    }
    finished(&mut entry.live.subscribe()).await;
    Ok(WaitEnd::Exit)
}

/// Until what is being printed is complete: a short silence, within bounds. A program that
/// writes a word in several steps is not answered after its first letter.
async fn complete(marks: &mut watch::Receiver<Mark>) {
    let quiet = Duration::from_millis(OUTPUT_QUIET_MS);
    let bound = Instant::now() + Duration::from_millis(OUTPUT_SETTLE_MS);
    let mut end = marks.borrow_and_update().end;
    let mut due = Instant::now() + quiet;
    loop {
        tokio::select! {
            biased;
            Ok(()) = marks.changed() => {
                let mark = *marks.borrow_and_update();
                if mark.finished {
                    return;
                }
                if mark.end > end {
                    end = mark.end;
                    due = (Instant::now() + quiet).min(bound);
                }
            }
            () = tokio::time::sleep_until(due.min(bound)) => return,
        }
    }
}

async fn idle(entry: &Arc<Entry>, quiet: Duration) -> Result<WaitEnd, Error> {
    let _watching = Watching::new(entry);
    let mut marks = entry.marks.subscribe();
    let mut end = marks.borrow_and_update().end;
    let mut deadline = Instant::now() + quiet;
    loop {
        if marks.borrow().finished {
            finished(&mut entry.live.subscribe()).await;
            return Ok(WaitEnd::Exit);
        }
        tokio::select! {
            biased;
            Ok(()) = marks.changed() => {
                let now = marks.borrow_and_update().end;
                if now > end {
                    end = now;
                    deadline = Instant::now() + quiet;
                }
            }
            () = tokio::time::sleep_until(deadline) => return Ok(WaitEnd::Idle),
        }
    }
}
