//! Stopping and restarting, and waiting for completion.

use std::sync::Arc;
use std::time::Duration;

use ostler_model::duration::as_millis;
use ostler_model::{Principal, StopReason};

use crate::engine_inner::EngineInner;
use crate::error::Error;
use crate::execution::{DriverCommand, ExecutionHandle, LiveState};

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
    let command = DriverCommand::Stop { order, grace };
    end_within(core, entry, command, grace).await
}

/// Sends a command that ends the execution within `longest`, and waits for the end.
async fn end_within(
    core: &EngineInner,
    entry: &ExecutionHandle,
    command: DriverCommand,
    longest: Duration,
) -> Result<(), Error> {
    let mut live = entry.live.subscribe();
    if live.borrow().state.is_finished() {
        return Ok(());
    }
    // The driver accepts no more commands: the execution or the engine has ended.
    let _over = entry.send_command(command).await.is_err();
    let timeout = longest + Duration::from_millis(STOP_MARGIN_MS);
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
    let grace = core.grace_of(&entry.spec);
    let command = DriverCommand::Interrupt { order, wait, grace };
    end_within(core, entry, command, wait + grace).await
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
