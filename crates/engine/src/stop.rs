//! Stopping, and waiting until it is so.

use std::sync::Arc;
use std::time::Duration;

use ostler_model::{Principal, StopOrder};

use crate::core::Core;
use crate::driver::Ask;
use crate::entry::Entry;
use crate::error::Error;

/// How long an end may take beyond the grace, in milliseconds: the kill, the sweep and the
/// exit record.
pub(crate) const STOP_MARGIN_MS: u64 = 15_000;
/// The longest grace, in seconds.
pub(crate) const GRACE_MAX_S: u64 = 3_600;

/// Decides that an execution must end, and waits until it has.
pub(crate) async fn carry_out(
    core: &Core,
    entry: &Arc<Entry>,
    order: StopOrder,
    grace: Duration,
) -> Result<(), Error> {
    let grace = grace.min(Duration::from_secs(GRACE_MAX_S));
    let mut live = entry.live.subscribe();
    if live.borrow().state.is_finished() {
        return Ok(());
    }
    // A driver that takes no more asks has just seen the end, or the engine's.
    let _over = entry.ask(Ask::Stop { order, grace }).await.is_err();
    let longest = grace + Duration::from_millis(STOP_MARGIN_MS);
    let ended = async {
        // What `wait_for` returns holds the lock: it must be gone before anybody looks again.
        let seen = live.wait_for(|live| live.state.is_finished() || live.settled);
        seen.await.is_ok_and(|live| live.state.is_finished())
    };
    match tokio::time::timeout(longest, ended).await {
        Ok(true) => Ok(()),
        Ok(false) => Err(Error::Closing),
        Err(_) if core.closing.is_cancelled() => Err(Error::Closing),
        Err(_) => Err(Error::StillRunning {
            id: entry.id,
            waited_ms: u64::try_from(longest.as_millis()).unwrap_or(u64::MAX),
        }),
    }
}

/// Ends a service's attempt and waits until the next one is on its way; one between two
/// attempts begins the next at once. Nothing of what has ended, or ends.
pub(crate) async fn begin_again(
    core: &Core,
    entry: &Arc<Entry>,
    (by, reason): (Principal, String),
) -> Result<(), Error> {
    let mut live = entry.live.subscribe();
    let before = live.borrow_and_update().state.attempt;
    entry.ask(Ask::Restart { by, reason }).await?;
    let longest = core.settings.grace + Duration::from_millis(STOP_MARGIN_MS);
    let begun = live.wait_for(|live| {
        let state = &live.state;
        state.attempt > before || state.is_finished() || live.settled
    });
    match tokio::time::timeout(longest, begun).await {
        Ok(_) => Ok(()),
        Err(_) => Err(Error::StillRunning {
            id: entry.id,
            waited_ms: u64::try_from(longest.as_millis()).unwrap_or(u64::MAX),
        }),
    }
}
