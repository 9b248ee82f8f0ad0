//! The wait for the first of several conditions, at most for a time.

use std::sync::Arc;
use std::time::Duration;

use ostler_journal::JournalEnd;
use ostler_model::{Cursor, Io, Phase, ServiceStage, State};
use tokio::sync::watch;
use tokio::time::Instant;

use super::pattern::{self, SearchOrigin};
use super::prompt;
use crate::admission::arguments::ArgumentError;
use crate::engine_inner::EngineInner;
use crate::error::Error;
use crate::execution::{ExecutionHandle, LiveState, OutputWatchGuard};
use crate::info::{WaitEnd, WaitOutcome};
use crate::request::WaitFor;

/// How long a failing service is given to end before it is reported as running, in milliseconds.
const IMMINENT_EXIT_MS: u64 = 500;

/// Silence after which a burst of output counts as complete, in milliseconds.
const OUTPUT_QUIET_MS: u64 = 5;
/// How long that is waited for at most after the first output, in milliseconds.
const OUTPUT_SETTLE_MS: u64 = 50;

/// Waits for the condition, at most for this time.
pub(crate) async fn wait(
    core: &EngineInner,
    entry: &Arc<ExecutionHandle>,
    until: &WaitFor,
    timeout: Option<Duration>,
) -> Result<WaitOutcome, Error> {
    if matches!(entry.spec.io, Io::Pty { .. }) {
        core.open_readers.keep_open(entry);
    }
    let end = {
        let wait = wait_until(core, entry, until);
        match timeout {
            // `timeout` polls the future first: a condition that already holds is reported even
            // with 0.
            Some(at_most) => match tokio::time::timeout(at_most, wait).await {
                Ok(found) => found?,
                Err(_) => on_timeout(entry, until),
            },
            None => wait.await?,
        }
    };
    let info = entry.info();
    let cursor = match &end {
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
        | WaitEnd::TimedOut
        | WaitEnd::Nothing => info.cursor(),
    };
    Ok(WaitOutcome { info, end, cursor })
}

/// The timeout expired. Output that arrived is reported, whether or not more of it was under way.
fn on_timeout(entry: &ExecutionHandle, until: &WaitFor) -> WaitEnd {
    match until {
        WaitFor::OutputAfter(from) if entry.journal_end.borrow().end > from.offset => {
            WaitEnd::Output
        }
        WaitFor::OutputAfter(_)
        | WaitFor::Nothing
        | WaitFor::Exit
        | WaitFor::Pattern(_)
        | WaitFor::PatternAfter(..)
        | WaitFor::PatternAfterInput(..)
        | WaitFor::Idle(_)
        | WaitFor::Prompt
        | WaitFor::Ready => WaitEnd::TimedOut,
    }
}

async fn wait_until(
    core: &EngineInner,
    entry: &Arc<ExecutionHandle>,
    until: &WaitFor,
) -> Result<WaitEnd, Error> {
    match until {
        WaitFor::Nothing => Ok(WaitEnd::Nothing),
        WaitFor::Exit => {
            wait_finished(&mut entry.live.subscribe()).await;
            Ok(WaitEnd::Exit)
        }
        WaitFor::Pattern(pattern) => {
            pattern::wait_for_pattern(core, entry, pattern, SearchOrigin::Start).await
        }
        WaitFor::PatternAfter(pattern, from) => {
            pattern::wait_for_pattern(core, entry, pattern, SearchOrigin::Offset(from.offset)).await
        }
        WaitFor::PatternAfterInput(pattern, input) => {
            pattern::wait_for_pattern(core, entry, pattern, SearchOrigin::Input(input)).await
        }
        WaitFor::OutputAfter(from) => wait_output(entry, from.offset).await,
        WaitFor::Idle(quiet) => wait_idle(entry, *quiet).await,
        WaitFor::Prompt => prompt::wait_for_prompt(core, entry).await,
        WaitFor::Ready => wait_ready(entry).await,
    }
}

pub(super) async fn wait_finished(live: &mut watch::Receiver<LiveState>) {
    // The sender is owned by the entry that the caller holds, so this cannot fail.
    let _ended = live.wait_for(|live| live.state.is_finished()).await.is_ok();
}

/// Resolves when the first attempt runs, or the execution ended without one.
pub(crate) async fn wait_started(entry: &ExecutionHandle) {
    let mut live = entry.live.subscribe();
    let _ended = live
        .wait_for(|live| live.state.started_at.is_some() || live.state.is_finished())
        .await
        .is_ok();
}

/// The outcome that ends a wait for readiness; `first` is the attempt it began with.
fn readiness_outcome(state: &State, first: u32) -> Option<WaitEnd> {
    if state.is_finished() {
        return Some(WaitEnd::Exit);
    }
    if state.healthy != Some(false) && state.stage >= Some(ServiceStage::Running) {
        return Some(WaitEnd::Ready);
    }
    if state.healthy == Some(false) {
        let health = state.health.clone().unwrap_or_default();
        return Some(WaitEnd::NotReady(health));
    }
    let in_backoff = state.phase == Phase::Starting && state.backoff_until.is_some();
    if in_backoff || state.attempt > first {
        let end = state.last_end.as_deref().unwrap_or("it ended");
        let next = format!("{end}; attempt {} follows", first + 1);
        return Some(WaitEnd::NotReady(next));
    }
    None
}

async fn wait_ready(entry: &ExecutionHandle) -> Result<WaitEnd, Error> {
    if entry.spec.lifetime.plan().is_none() {
        let id = entry.id.short();
        return Err(ArgumentError::NoService { id }.into());
    }
    let mut live = entry.live.subscribe();
    let mut first = {
        let state = &live.borrow().state;
        let backoff_attempt =
            u32::from(state.phase == Phase::Starting && state.backoff_until.is_some());
        (state.attempt + backoff_attempt).max(1)
    };
    loop {
        let state = live.borrow_and_update().state.clone();
        // A restart on request is no failure: what counts is the attempt that it starts.
        first = first.max(state.requested_attempt);
        // Between two attempts, the known state is that of the previous one.
        let is_previous_attempt =
            !state.is_finished() && state.attempt > 0 && state.attempt < first;
        if !is_previous_attempt && let Some(end) = readiness_outcome(&state, first) {
            return Ok(prefer_imminent_exit(&mut live, end).await);
        }
        // The sender is owned by the entry that the caller holds, so this cannot fail.
        let _changed = live.changed().await.is_ok();
    }
}

/// A program that has just reported why it fails is often about to end: reported as running, it
/// would be dead before the caller reads that.
async fn prefer_imminent_exit(live: &mut watch::Receiver<LiveState>, end: WaitEnd) -> WaitEnd {
    let may_exit =
        matches!(end, WaitEnd::NotReady(_)) && live.borrow().state.phase == Phase::Running;
    let grace = Duration::from_millis(IMMINENT_EXIT_MS);
    if may_exit
        && tokio::time::timeout(grace, wait_finished(live))
            .await
            .is_ok()
    {
        return WaitEnd::Exit;
    }
    end
}

async fn wait_output(entry: &Arc<ExecutionHandle>, after: u64) -> Result<WaitEnd, Error> {
    let _watching = OutputWatchGuard::new(entry);
    let mut marks = entry.journal_end.subscribe();
    // The sender is owned by the entry that the caller holds, so this cannot fail.
    let mark = marks
        .wait_for(|mark| mark.end > after || mark.finished)
        .await;
    let has_output = mark.is_ok_and(|mark| mark.end > after);
    if has_output {
        wait_output_quiet(&mut marks).await;
        return Ok(WaitEnd::Output);
    }
    wait_finished(&mut entry.live.subscribe()).await;
    Ok(WaitEnd::Exit)
}

/// Waits until a burst of output is complete: a short silence, within bounds. A program that writes
/// a word in several steps does not end the wait with its first letter.
async fn wait_output_quiet(marks: &mut watch::Receiver<JournalEnd>) {
    let quiet = Duration::from_millis(OUTPUT_QUIET_MS);
    let deadline = Instant::now() + Duration::from_millis(OUTPUT_SETTLE_MS);
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
                    due = (Instant::now() + quiet).min(deadline);
                }
            }
            () = tokio::time::sleep_until(due.min(deadline)) => return,
        }
    }
}

async fn wait_idle(entry: &Arc<ExecutionHandle>, quiet: Duration) -> Result<WaitEnd, Error> {
    let _watching = OutputWatchGuard::new(entry);
    let mut marks = entry.journal_end.subscribe();
    let mut end = marks.borrow_and_update().end;
    let mut deadline = Instant::now() + quiet;
    loop {
        if marks.borrow().finished {
            wait_finished(&mut entry.live.subscribe()).await;
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
