//! A start at the quota waits its turn for a place (D6).

use std::sync::Arc;
use std::time::Duration;

use ostler_model::Caller;
use tokio::sync::OwnedMutexGuard;
use tokio::time::{Instant, sleep_until};

use crate::admission::quota::{QuotaHolder, Share, Ticket};
use crate::begin::{Begun, Consent, check, existing};
use crate::core::Core;
use crate::error::Error;
use crate::request::StartRequest;

/// The longest time a start waits for a place, and how long it waits unless its request says
/// otherwise, in milliseconds (D6).
pub const PLACE_WAIT_MS: u64 = 45_000;

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
    core: Arc<Core>,
    share: Share,
    ticket: Ticket,
    /// Present where it was waited for.
    pub(crate) queued: Option<QueueWait>,
    /// A start that is sent again meanwhile, with the same id, waits for the outcome of this.
    _turn: Option<OwnedMutexGuard<()>>,
}

impl QuotaPermit {
    /// What it is and who has it.
    pub(crate) fn claim(&self) -> (Share, Ticket) {
        (self.share.clone(), self.ticket)
    }
}

impl Drop for QuotaPermit {
    fn drop(&mut self) {
        self.core.registry.leave(&self.share, self.ticket);
    }
}

/// What a start comes to before it is carried out.
pub(crate) enum StartAdmission {
    /// An earlier start with its id began this.
    Existing(Begun),
    /// It has a place.
    Granted(QuotaPermit),
}

/// Finds the execution that this start began already, or takes a place for it; where none is
/// free, it waits as long as it may. What cannot run at all is refused without a wait.
///
/// # Errors
/// [`Error::Quota`] where no place became free in time, and what admission refuses.
pub(crate) async fn enter(
    core: &Arc<Core>,
    caller: &Caller,
    (request, share): (&StartRequest, Share),
) -> Result<StartAdmission, Error> {
    let arrived = Instant::now();
    let turn = match request.id {
        Some(id) => Some(core.starts.lock(id).await),
        None => None,
    };
    if let Some(begun) = existing(core, caller, request.id)? {
        return Ok(StartAdmission::Existing(begun));
    }
    let entry = core.registry.ask(caller, &share, request.id)?;
    let mut permit = QuotaPermit {
        core: Arc::clone(core),
        share,
        ticket: entry.ticket,
        queued: None,
        _turn: turn,
    };
    let Some(call) = entry.call else {
        return Ok(StartAdmission::Granted(permit));
    };
    check(core, caller, request.clone(), Consent::Assume).await?;
    let longest = Duration::from_millis(PLACE_WAIT_MS);
    let limit = request.wait_for_place.unwrap_or(longest).min(longest);
    tokio::select! {
        biased;
        called = call => called.map_err(|_| Error::SessionEnded)?,
        () = core.closing.cancelled() => return Err(Error::Closing),
        () = sleep_until(arrived + limit) => {
            let waited = if limit.is_zero() { limit } else { arrived.elapsed() };
            let refusal = core.registry.no_place(caller, &permit.share, waited);
            return Err(Error::Quota(Box::new(refusal)));
        }
    }
    permit.queued = Some(QueueWait {
        waited: arrived.elapsed(),
        limit: core.registry.limit(&permit.share),
    });
    Ok(StartAdmission::Granted(permit))
}
