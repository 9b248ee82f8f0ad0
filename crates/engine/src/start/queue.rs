//! The queue of starts that wait for a slot within the quota.

use std::sync::Arc;
use std::time::Duration;

use ostler_model::Caller;
use tokio::sync::OwnedMutexGuard;
use tokio::time::{Instant, sleep_until};

use super::guard::StartGuard;
use super::launch::{ApprovalMode, Launcher, find_existing};
use crate::admission::quota::{QuotaKey, QuotaTicket};
use crate::engine_inner::EngineInner;
use crate::error::Error;
use crate::info::QueueWait;
use crate::request::StartRequest;

/// The longest time a start waits for a slot, and the default unless its request overrides it, in
/// milliseconds.
pub const QUEUE_WAIT_MS: u64 = 45_000;

/// A slot for an execution; dropped before it is used, the slot goes to the next start.
#[derive(Debug)]
pub(crate) struct QuotaPermit {
    core: Arc<EngineInner>,
    quota_key: QuotaKey,
    ticket: QuotaTicket,
    /// Present where the start had to wait.
    pub(crate) queue_wait: Option<QueueWait>,
    /// Makes a repeated start with the same id wait for the result of this one.
    _start_lock: Option<OwnedMutexGuard<()>>,
}

impl QuotaPermit {
    /// The quota that the slot belongs to.
    pub(crate) fn quota_key(&self) -> QuotaKey {
        self.quota_key.clone()
    }

    pub(crate) const fn ticket(&self) -> QuotaTicket {
        self.ticket
    }
}

impl Drop for QuotaPermit {
    fn drop(&mut self) {
        self.core.registry.leave_queue(&self.quota_key, self.ticket);
    }
}

/// The result of the queue for a start.
pub(crate) enum StartAdmission {
    /// An earlier start with its id created this execution.
    Existing(StartGuard),
    /// It has a slot.
    Granted(QuotaPermit),
}

/// Finds the execution that an earlier start with this id created, or takes a slot for a new one;
/// where none is free, it waits for as long as it may. A start that admission refuses does not
/// wait.
///
/// # Errors
/// [`Error::Quota`] where no slot became free in time, and the refusals of admission.
pub(crate) async fn enter_queue(
    launcher: &Launcher,
    caller: &Caller,
    request: &StartRequest,
    share: QuotaKey,
) -> Result<StartAdmission, Error> {
    let core = launcher.core();
    let arrived = Instant::now();
    let start_lock = match request.id {
        Some(id) => Some(core.start_locks.lock(id).await),
        None => None,
    };
    if let Some(existing) = find_existing(core, caller, request.id)? {
        return Ok(StartAdmission::Existing(existing));
    }
    let entry = core.registry.enter_queue(caller, &share, request.id)?;
    let mut permit = QuotaPermit {
        core: Arc::clone(core),
        quota_key: share,
        ticket: entry.ticket,
        queue_wait: None,
        _start_lock: start_lock,
    };
    let Some(granted) = entry.granted else {
        return Ok(StartAdmission::Granted(permit));
    };
    launcher
        .check(caller, request.clone(), ApprovalMode::Assume)
        .await?;
    let longest = Duration::from_millis(QUEUE_WAIT_MS);
    let timeout = request
        .options
        .queue_timeout
        .unwrap_or(longest)
        .min(longest);
    tokio::select! {
        biased;
        called = granted => called.map_err(|_| Error::SessionEnded)?,
        () = core.closing.cancelled() => return Err(Error::Closing),
        () = sleep_until(arrived + timeout) => {
            let waited = if timeout.is_zero() { timeout } else { arrived.elapsed() };
            let exceeded = core.registry.quota_exceeded(caller, &permit.quota_key, waited);
            return Err(Error::Quota(Box::new(exceeded)));
        }
    }
    permit.queue_wait = Some(QueueWait {
        waited: arrived.elapsed(),
        limit: core.registry.limit(&permit.quota_key),
    });
    Ok(StartAdmission::Granted(permit))
}
