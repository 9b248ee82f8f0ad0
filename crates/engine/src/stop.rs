//! Stopping and restarting, and waiting for completion.

use std::sync::Arc;
use std::time::Duration;

use ostler_backend::ControlCommand;
use ostler_model::duration::as_millis;
use ostler_model::{Principal, Signal, StopReason};

use crate::engine_inner::EngineInner;
use crate::error::Error;
use crate::execution::{DriverCommand, ExecutionHandle, LiveState, forward_command};

/// How long an end may take beyond the grace, in milliseconds: the kill, the sweep of survivors and
/// the exit record.
pub(crate) const STOP_MARGIN_MS: u64 = 15_000;
/// The longest grace, in seconds.
pub(crate) const GRACE_MAX_S: u64 = 3_600;

/// Stops an execution, and waits until it has ended.
pub(crate) async fn stop_and_wait(
    core: &EngineInner,
    entry: &Arc<ExecutionHandle>,
    order: StopReason,
    grace: Duration,
) -> Result<(), Error> {
    let grace = grace.min(Duration::from_secs(GRACE_MAX_S));
    let mut live = entry.live.subscribe();
    if live.borrow().state.is_finished() {
        return Ok(());
    }
    // The driver accepts no more commands: the execution or the engine has ended.
    let _over = entry
        .send_command(DriverCommand::Stop { order, grace })
        .await
        .is_err();
    let timeout = grace + Duration::from_millis(STOP_MARGIN_MS);
    let ended = async {
        // What `wait_for` returns holds the lock: it must be dropped before the next read.
        let done = live.wait_for(|live| live.state.is_finished() || live.driver_done);
        done.await.is_ok_and(|live| live.state.is_finished())
    };
    match tokio::time::timeout(timeout, ended).await {
        Ok(true) => Ok(()),
        Ok(false) => Err(Error::Closing),
        Err(_) if core.closing.is_cancelled() => Err(Error::Closing),
        Err(_) => Err(Error::StillRunning {
            id: entry.id,
            waited_ms: as_millis(timeout),
        }),
    }
}

/// Sends SIGINT, and stops the execution where it has not ended after `wait`.
pub(crate) async fn interrupt_and_stop(
    core: &EngineInner,
    entry: &Arc<ExecutionHandle>,
    order: StopReason,
    wait: Duration,
) -> Result<(), Error> {
    let mut live = entry.live.subscribe();
    if live.borrow().state.is_finished() {
        return Ok(());
    }
    let interrupt = ControlCommand::Signal(Signal::INT);
    if let Err(error) = forward_command(entry, interrupt).await {
        // It may have ended before the signal.
        let is_finished = live.borrow().state.is_finished();
        return if is_finished { Ok(()) } else { Err(error) };
    }
    let ended = live.wait_for(|live| live.state.is_finished() || live.driver_done);
    let is_late = tokio::select! {
        () = core.closing.cancelled() => return Err(Error::Closing),
        ended = tokio::time::timeout(wait, ended) => ended.is_err(),
    };
    if is_late {
        return stop_and_wait(core, entry, order, core.grace_of(&entry.spec)).await;
    }
    Ok(())
}

/// Ends a service's attempt and waits until the next one starts; between two attempts, the next
/// begins at once. No effect on an execution that has ended or is ending.
pub(crate) async fn restart_and_wait(
    core: &EngineInner,
    entry: &Arc<ExecutionHandle>,
    by: Principal,
    reason: String,
) -> Result<(), Error> {
    let mut live = entry.live.subscribe();
    let before = live.borrow_and_update().state.attempt;
    entry
        .send_command(DriverCommand::Restart { by, reason })
        .await?;
    let timeout = core.grace_of(&entry.spec) + Duration::from_millis(STOP_MARGIN_MS);
    let restarted = live.wait_for(|live| {
        let state = &live.state;
        state.attempt > before || state.is_finished() || live.driver_done
    });
    let is_over = |live: &LiveState| live.state.attempt > before || live.state.is_finished();
    match tokio::time::timeout(timeout, restarted).await {
        Ok(Ok(live)) if is_over(&live) => Ok(()),
        // Its driver has ended with the engine.
        Ok(_) => Err(Error::Closing),
        Err(_) => Err(Error::StillRunning {
            id: entry.id,
            waited_ms: as_millis(timeout),
        }),
    }
}
