//! Freezing a slot: `cgroup.freeze` of the unified hierarchy, or the freezer of version 1.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec};

use super::files;

/// How long freezing all members may take, in milliseconds; usually it takes microseconds.
pub const FREEZE_WAIT_MS: u64 = 1_000;
/// How often a freezer of version 1 is polled for completion; it sends no notification.
const LEGACY_ROUNDS: usize = 10_000;

/// The result of freezing or thawing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FreezeOutcome {
    /// The requested state is reached.
    Done,
    /// Some member did not freeze in time; all were thawed.
    TimedOut,
    /// There is no freezer here.
    Unsupported,
}

/// Uses `cgroup.freeze` in this directory.
pub(super) fn unified(directory: &Path, frozen: bool) -> FreezeOutcome {
    let switch = directory.join("cgroup.freeze");
    let value = if frozen { "1" } else { "0" };
    if files::write(&switch, value).is_err() {
        return FreezeOutcome::Unsupported;
    }
    if !frozen {
        return FreezeOutcome::Done;
    }
    match wait_frozen(&directory.join("cgroup.events")) {
        Ok(true) => FreezeOutcome::Done,
        Ok(false) | Err(_) => {
            let _thawed = files::write(&switch, "0");
            FreezeOutcome::TimedOut
        }
    }
}

/// Waits for `frozen 1` in a `cgroup.events` file.
fn wait_frozen(events: &Path) -> io::Result<bool> {
    let deadline = Instant::now() + Duration::from_millis(FREEZE_WAIT_MS);
    let mut file = File::open(events)?;
    loop {
        let mut text = String::new();
        file.seek(SeekFrom::Start(0))?;
        file.read_to_string(&mut text)?;
        if files::parse_number(&text, "frozen") == Some(1) {
            return Ok(true);
        }
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(false);
        }
        let limit = Timespec {
            tv_sec: i64::try_from(left.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: i64::from(left.subsec_nanos()),
        };
        let mut polled = [PollFd::new(&file, PollFlags::PRI)];
        rustix::event::poll(&mut polled, Some(&limit))?;
    }
}

/// Uses `freezer.state` in this directory.
pub(super) fn legacy(directory: &Path, frozen: bool) -> FreezeOutcome {
    let switch = directory.join("freezer.state");
    if !frozen {
        return match files::write(&switch, "THAWED") {
            Ok(()) => FreezeOutcome::Done,
            Err(_) => FreezeOutcome::Unsupported,
        };
    }
    for _ in 0..LEGACY_ROUNDS {
        // Writing it again makes the kernel check again.
        if files::write(&switch, "FROZEN").is_err() {
            return FreezeOutcome::Unsupported;
        }
        let state = std::fs::read_to_string(&switch).unwrap_or_default();
        if state.trim_end() == "FROZEN" {
            return FreezeOutcome::Done;
        }
        std::thread::yield_now();
    }
    let _thawed = files::write(&switch, "THAWED");
    FreezeOutcome::TimedOut
}
