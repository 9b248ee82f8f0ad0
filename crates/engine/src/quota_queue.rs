//! A start at the quota waits its turn for a place.

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

/// The longest time a start waits for a place, and how long it waits unless its request says
/// otherwise, in milliseconds.
pub const QUEUE_WAIT_MS: u64 = 45_000;

/// How long a start waited for its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueueWait {
    /// How long.
    pub waited: Duration,
    /// How many executions may run at once.
    pub limit: u32,
}

/// A start that waits for a place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueuedStart {
    /// How many starts are served before it.
    pub ahead: usize,
    /// How many executions run.
    pub running: usize,
    /// How many may.
    pub limit: u32,
    /// Those that the caller sees, oldest first.
    pub holders: Vec<QuotaHolder>,
}

/// A place for an execution; dropped before there is one, the next start gets it.
#[derive(Debug)]
pub(crate) struct QuotaPermit {
    core: Arc<EngineInner>,
    quota_key: QuotaKey,
    ticket: QuotaTicket,
    /// Present where it was waited for.
    pub(crate) queue_wait: Option<QueueWait>,
    /// A start that is sent again meanwhile, with the same id, waits for the outcome of this.
    _start_lock: Option<OwnedMutexGuard<()>>,
}

impl QuotaPermit {
    /// What it is and who has it.
    pub(crate) fn key_and_ticket(&self) -> (QuotaKey, QuotaTicket) {
        (self.quota_key.clone(), self.ticket)
    }
}

impl Drop for QuotaPermit {
    fn drop(&mut self) {
        self.core.registry.leave_queue(&self.quota_key, self.ticket);
    }
}

/// What a start comes to before it is carried out.
pub(crate) enum StartAdmission {
    /// An earlier start with its id began this.
    Existing(StartGuard),
    /// It has a place.
    Granted(QuotaPermit),
}

/// Finds the execution that this start began already, or takes a place for it; where none is
/// free, it waits as long as it may. What cannot run at all is refused without a wait.
///
/// # Errors
/// [`Error::Quota`] where no place became free in time, and what admission refuses.
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
    if let Some(begun) = find_existing(core, caller, request.id)? {
        return Ok(StartAdmission::Existing(begun));
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
