//! How long a zygote or a shim may take to respond. One that is stopped never will; one that can
//! run may only wait for the processor or the disk, and is given much longer: whoever is replaced
//! or killed for being slow would be replaced or killed again on the same busy machine.

use std::time::Duration;

use ostler_backend::BoxFuture;
use tokio::time::{Instant, timeout};

use crate::sys::proc;

/// How often the state of a silent process is read, in milliseconds.
const INTERVAL_MS: u64 = 100;
/// How long a process that can run is waited for, in milliseconds.
const RUNNABLE_MS: u64 = 10_000;

/// How long a process that waits for the disk is waited for, in milliseconds: killed in a sync, it
/// would not have recorded the end. Less than a starting daemon may take until it serves.
const DISK_WAIT_MS: u64 = 20_000;

/// What the kernel says of a process that has not responded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ResponderState {
    /// It runs, or will.
    Runnable,
    /// It waits in the kernel, where no signal reaches it: for the disk.
    WaitsForDisk,
    /// A signal has stopped it.
    Stopped,
    /// It has ended.
    Ended,
}

impl ResponderState {
    fn of(pid: i32) -> Self {
        match proc::stat(pid) {
            Some(stat) if stat.is_stopped() => Self::Stopped,
            Some(stat) if stat.waits_for_disk() => Self::WaitsForDisk,
            Some(stat) if stat.is_alive() => Self::Runnable,
            Some(_) | None => Self::Ended,
        }
    }

    /// Whether no response can be expected of it any more after this silence, if a stopped one is
    /// given the time `stopped`.
    fn is_overdue(self, silence: Duration, stopped: Duration) -> bool {
        let limit = match self {
            Self::Runnable => Duration::from_millis(RUNNABLE_MS).max(stopped),
            Self::WaitsForDisk => Duration::from_millis(DISK_WAIT_MS).max(stopped),
            Self::Stopped => stopped,
            Self::Ended => Duration::ZERO,
        };
        silence >= limit
    }
}

/// The response of a process; none once it is overdue. A stopped one is given the time `stopped`.
/// `silence` is how long ago it last sent anything.
pub(super) async fn response_of<T>(
    pid: i32,
    stopped: Duration,
    silence: impl Fn() -> Duration,
    mut response: BoxFuture<'_, T>,
) -> Option<T> {
    let requested = Instant::now();
    let interval = Duration::from_millis(INTERVAL_MS);
    loop {
        if let Ok(response) = timeout(interval, &mut response).await {
            return Some(response);
        }
        let silence = silence().min(requested.elapsed());
        if ResponderState::of(pid).is_overdue(silence, stopped) {
            return None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_can_run_is_given_longer_than_who_is_stopped() {
        let [short, long] = [100, RUNNABLE_MS].map(Duration::from_millis);
        let overdue = |responder: ResponderState| {
            [Duration::ZERO, short, long].map(|silence| responder.is_overdue(silence, short))
        };
        assert_eq!(overdue(ResponderState::Runnable), [false, false, true]);
        assert_eq!(overdue(ResponderState::WaitsForDisk), [false, false, false]);
        assert_eq!(overdue(ResponderState::Stopped), [false, true, true]);
        assert_eq!(overdue(ResponderState::Ended), [true, true, true]);
    }

    #[test]
    fn this_process_can_run_and_no_process_has_ended() {
        let own = i32::try_from(std::process::id()).expect("a pid");
        assert_eq!(ResponderState::of(own), ResponderState::Runnable);
        assert_eq!(ResponderState::of(i32::MAX), ResponderState::Ended);
    }
}
