//! Waiting: for the end, for a line, for quiet, for a prompt. Everything here reads what the
//! driver publishes; nothing polls, but for [`prompt`]'s looks.

use std::sync::Arc;
use std::time::Duration;

use ostler_journal::{LineQuery, Pattern, ReadError, Unfinished, encoding_named};
use ostler_model::{Cursor, Phase, Stage, State, Text};
use tokio::sync::watch;
use tokio::time::Instant;

use super::prompt;
use crate::admission::arguments::ArgumentError;
use crate::core::Core;
use crate::entry::{Entry, Live, Watching};
use crate::error::Error;
use crate::info::{Match, WaitEnd, Waited};
use crate::request::WaitFor;

/// Output up to this many bytes is searched in place; more on a thread of its own.
const INLINE_BYTES: u64 = 256 * 1024;

/// Waits as asked, at most so long.
pub(crate) async fn wait(
    core: &Core,
    entry: &Arc<Entry>,
    until: &WaitFor,
    at_most: Option<Duration>,
) -> Result<Waited, Error> {
    let why = {
        let found = look(core, entry, until);
        match at_most {
            // `timeout` looks at the future first: what is already so is told even with 0.
            Some(at_most) => tokio::time::timeout(at_most, found)
                .await
                .unwrap_or(Ok(WaitEnd::AtMost))?,
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

async fn look(core: &Core, entry: &Arc<Entry>, until: &WaitFor) -> Result<WaitEnd, Error> {
    match until {
        WaitFor::Nothing => Ok(WaitEnd::Nothing),
        WaitFor::Exit => {
            finished(&mut entry.live.subscribe()).await;
            Ok(WaitEnd::Exit)
        }
        WaitFor::Pattern(pattern) => line(entry, pattern, None).await,
        WaitFor::PatternAfter(pattern, from) => line(entry, pattern, Some(*from)).await,
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

async fn line(
    entry: &Arc<Entry>,
    pattern: &Pattern,
    mut from: Option<Cursor>,
) -> Result<WaitEnd, Error> {
    let _watching = Watching::new(entry);
    let label = entry.spec.encoding.as_deref();
    let pattern = match label.and_then(|label| encoding_named(label).ok()) {
        Some(encoding) => pattern.clone().over(encoding),
        None => pattern.clone(),
    };
    let mut marks = entry.marks.subscribe();
    loop {
        let over = marks.borrow_and_update().finished;
        let (found, next) = search(entry, &pattern, from).await?;
        if let Some(found) = found {
            return Ok(WaitEnd::Pattern(found));
        }
        if over {
            finished(&mut entry.live.subscribe()).await;
            return Ok(WaitEnd::Exit);
        }
        from = Some(next);
        // The sender lives in the entry, so this cannot fail.
        let _changed = marks.changed().await.is_ok();
    }
}

/// As [`matching`], on a thread of its own where there is much to read.
async fn search(
    entry: &Arc<Entry>,
    pattern: &Pattern,
    from: Option<Cursor>,
) -> Result<(Option<Match>, Cursor), Error> {
    let read = from.map_or(0, |from| from.offset);
    let end = entry.marks.borrow().end;
    if end.saturating_sub(read) <= INLINE_BYTES {
        return matching(entry, pattern, from);
    }
    let (entry, pattern) = (Arc::clone(entry), pattern.clone());
    let searched = tokio::task::spawn_blocking(move || matching(&entry, &pattern, from)).await;
    // The search itself does not panic, and nobody aborts it.
    searched.unwrap_or_else(|_| Ok((None, from.unwrap_or_default())))
}

/// The first matching line from a position on, its last unfinished line included.
fn matching(
    entry: &Entry,
    pattern: &Pattern,
    from: Option<Cursor>,
) -> Result<(Option<Match>, Cursor), Error> {
    let query = LineQuery {
        from,
        grep: Some(pattern.clone()),
        unfinished: Unfinished::Preview,
        count_omitted: false,
        head: Some(1),
        max_lines: 1,
        ..LineQuery::default()
    };
    let journal = match entry.journal() {
        // Not born yet: there is nothing to read, and what comes is told of.
        Err(Error::Output(ReadError::Missing { .. })) if !entry.is_finished() => {
            return Ok((None, from.unwrap_or_default()));
        }
        journal => journal?,
    };
    let page = journal.lines(&query)?;
    let found = page.lines.into_iter().next().map(|line| Match {
        at: line.at,
        stream: line.stream,
        offset: line.offset,
        number: line.number,
        line: Text::from(line.bytes),
    });
    Ok((found, page.next))
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
            return Ok(end);
        }
        // The sender lives in the entry the caller holds, so this cannot fail.
        let _changed = live.changed().await.is_ok();
    }
}

async fn output(entry: &Arc<Entry>, after: u64) -> Result<WaitEnd, Error> {
    let _watching = Watching::new(entry);
    let mut marks = entry.marks.subscribe();
    // The sender lives in the entry the caller holds, so this cannot fail.
    let mark = marks
        .wait_for(|mark| mark.end > after || mark.finished)
        .await;
    if mark.is_ok_and(|mark| mark.end > after) {
        return Ok(WaitEnd::Output);
    }
    finished(&mut entry.live.subscribe()).await;
    Ok(WaitEnd::Exit)
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
