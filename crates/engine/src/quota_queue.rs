//! The queue of starts that wait for a slot within the quota.

use std::sync::Arc;
use std::time::Duration;

use ostler_model::Caller;
use tokio::sync::OwnedMutexGuard;
use tokio::time::{Instant, sleep_until};

use crate::admission::quota::{QuotaHolder, QuotaKey, QuotaTicket};
use crate::engine_inner::EngineInner;
use crate::error::Error;
use crate::request::StartRequest;
use crate::start::{ApprovalMode, StartGuard, check, find_existing};

/// The longest time a start waits for a slot, and the default unless its request overrides it, in
/// milliseconds.
pub const QUEUE_WAIT_MS: u64 = 45_000;

/// A start's wait for its slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueueWait {
    /// The time waited.
    pub waited: Duration,
    /// The quota: how many executions may run at once.
    pub limit: u32,
}

/// A start that waits for a slot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueuedStart {
    /// The number of starts that are served before it.
    pub ahead: usize,
    /// The number of running executions.
    pub running: usize,
    /// The quota: how many may run at once.
    pub limit: u32,
    /// The running executions that the caller sees, oldest first.
    pub holders: Vec<QuotaHolder>,
}

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
    /// The quota that the slot belongs to, and its ticket.
    pub(crate) fn key_and_ticket(&self) -> (QuotaKey, QuotaTicket) {
        (self.quota_key.clone(), self.ticket)
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
/// where none is free, it waits for as long as it may. What cannot run at all is refused without a
/// wait.
///
/// # Errors
/// [`Error::Quota`] where no slot became free in time, and what admission refuses.
pub(crate) async fn enter_queue(
    core: &Arc<EngineInner>,
    caller: &Caller,
    (request, share): (&StartRequest, QuotaKey),
) -> Result<StartAdmission, Error> {
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
    check(core, caller, request.clone(), ApprovalMode::Assume).await?;
    let longest = Duration::from_millis(QUEUE_WAIT_MS);
    let timeout = request.queue_timeout.unwrap_or(longest).min(longest);
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
