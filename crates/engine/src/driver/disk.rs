//! The limit on a workspace's growth, kept by accounting: nothing in the kernel counts what one
//! tree of processes writes to a directory, so it is looked at, and only while there is a limit.

use std::sync::Arc;
use std::time::Duration;

use ostler_model::{Limit, Observation, StopOrder};
use tokio::time::Instant;

use super::run::Ask;
use crate::core::Core;
use crate::entry::Entry;

/// Between the end of one look and the next at most: while nothing grows.
const LOOK_MOST: Duration = Duration::from_millis(2_000);
/// And at least: while the limit comes near. A look that took longer than this is followed by a
/// pause as long, so that accounting takes half of one core at the very most.
const LOOK_LEAST: Duration = Duration::from_millis(100);

/// Looks until it has ended or passed its limit; then it is stopped.
pub(super) async fn keep_within(core: Arc<Core>, entry: Arc<Entry>, limit_bytes: u64) {
    let mut live = entry.live.subscribe();
    let mut pause = LOOK_LEAST;
    let mut before = Look::default();
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
        let grown = grown(&core, &entry).await;
        if grown.is_some_and(|it| it > limit_bytes) {
            let limit = Limit::Disk;
            let order = StopOrder::LimitHit { limit };
            let grace = core.settings.grace;
            // A driver that takes no more asks has just seen the end.
            let _over = entry.ask(Ask::LimitHit(limit)).await.is_err()
                || entry.ask(Ask::Stop { order, grace }).await.is_err();
            return;
        }
        let look = Look {
            bytes: grown.unwrap_or(before.bytes),
            pause,
        };
        pause = until_next(before.bytes, look, limit_bytes).max(began.elapsed());
        before = look;
    }
}

/// What a look found, and the pause before it.
#[derive(Debug, Clone, Copy, Default)]
struct Look {
    bytes: u64,
    pause: Duration,
}

/// Half of the time in which the limit is reached at the pace of the last pause; twice the last
/// pause where nothing grew.
fn until_next(before: u64, now: Look, limit: u64) -> Duration {
    let grown = now.bytes.saturating_sub(before);
    let left = limit.saturating_sub(now.bytes);
    if grown == 0 {
        return (now.pause * 2).clamp(LOOK_LEAST, LOOK_MOST);
    }
    let pause_ms = u64::try_from(now.pause.as_millis()).unwrap_or(u64::MAX);
    let reached_ms = u128::from(left) * u128::from(pause_ms) / u128::from(grown);
    let half = u64::try_from(reached_ms / 2).unwrap_or(u64::MAX);
    Duration::from_millis(half).clamp(LOOK_LEAST, LOOK_MOST)
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

#[cfg(test)]
mod tests {
    use super::*;

    fn next(before: u64, bytes: u64, pause_ms: u64, limit: u64) -> u64 {
        let pause = Duration::from_millis(pause_ms);
        let next = until_next(before, Look { bytes, pause }, limit);
        u64::try_from(next.as_millis()).expect("short")
    }

    #[test]
    fn looks_come_sooner_the_nearer_the_limit_is() {
        assert_eq!(next(0, 0, 100, 1_000), 200, "nothing grows");
        assert_eq!(next(50, 50, 2_000, 1_000), 2_000, "not rarer than that");
        assert_eq!(
            next(0, 100, 200, 1_000),
            900,
            "half of the 1800 ms that are left"
        );
        assert_eq!(next(0, 900, 200, 1_000), 100, "not more often than that");
        assert_eq!(next(0, 1, 2_000, u64::MAX), 2_000);
        assert_eq!(next(0, 2_000, 100, 1_000), 100, "beyond it already");
        assert_eq!(next(900, 100, 400, 1_000), 800, "it became less");
    }
}
