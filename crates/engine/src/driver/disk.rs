//! The limit on a workspace's growth, kept by accounting: nothing in the kernel counts what one
//! tree of processes writes to a directory, so it is looked at, and only while there is a limit.

use std::sync::Arc;
use std::time::Duration;

use ostler_model::{Limit, Observation, StopOrder};
use tokio::time::Instant;

use super::run::Ask;
use crate::core::Core;
use crate::entry::Entry;

/// Between the end of one look and the next, in milliseconds; a look that took longer than
/// this waits as long as it took, so that accounting takes half of one core at the very most.
const LOOK_MS: u64 = 2_000;

/// Looks until it has ended or passed its limit; then it is stopped.
pub(super) async fn keep_within(core: Arc<Core>, entry: Arc<Entry>, limit_bytes: u64) {
    let mut live = entry.live.subscribe();
    let mut pause = Duration::from_millis(LOOK_MS);
    loop {
        let due = Instant::now() + pause;
        let ended = live.wait_for(|live| live.state.is_finished() || live.settled);
        tokio::select! {
            biased;
            () = core.closing.cancelled() => return,
            _ended = ended => return,
            () = tokio::time::sleep_until(due) => {}
        }
        let began = Instant::now();
        if grown(&core, &entry)
            .await
            .is_some_and(|it| it > limit_bytes)
        {
            let limit = Limit::Disk;
            let order = StopOrder::LimitHit { limit };
            let grace = core.settings.grace;
            // A driver that takes no more asks has just seen the end.
            let _over = entry.ask(Ask::LimitHit(limit)).await.is_err()
                || entry.ask(Ask::Stop { order, grace }).await.is_err();
            return;
        }
        pause = began.elapsed().max(Duration::from_millis(LOOK_MS));
    }
}

/// Bytes the workspace has grown by; none where nobody can tell.
async fn grown(core: &Core, entry: &Entry) -> Option<u64> {
    let what = Observation {
        disk: true,
        ..Observation::default()
    };
    let seen = core.place.observe(entry.id, what).await.ok()?;
    seen.disk_bytes
}
