//! Standing still: `cgroup.freeze` of the unified hierarchy, or the freezer of version 1.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec};

use super::files;

/// How long members may take until all of them stand still, in milliseconds; usually it is
/// microseconds.
pub const FREEZE_WAIT_MS: u64 = 1_000;
/// Times that a freezer of version 1 is asked whether everybody stands still; it tells nobody.
const LEGACY_ROUNDS: usize = 10_000;

/// What became of a wish to freeze or thaw.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FreezeOutcome {
    /// It is so.
    Done,
    /// Somebody did not stand still in time; everybody goes on.
    TimedOut,
    /// There is no freezer here.
    Unsupported,
}

/// By `cgroup.freeze` in this directory.
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

/// Waits until `frozen 1` stands in a `cgroup.events` file.
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

/// By `freezer.state` in this directory.
pub(super) fn legacy(directory: &Path, frozen: bool) -> FreezeOutcome {
    let switch = directory.join("freezer.state");
    if !frozen {
        return match files::write(&switch, "THAWED") {
            Ok(()) => FreezeOutcome::Done,
            Err(_) => FreezeOutcome::Unsupported,
        };
    }
    for _ in 0..LEGACY_ROUNDS {
        // Writing it again is also how the kernel is asked to look again.
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
