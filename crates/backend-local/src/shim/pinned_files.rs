//! Files a start depends on: nothing is spawned where one of them has changed.
//!
//! Scripts are compared just before the spawn; their interpreters open them later. The program
//! itself is compared by the child, which executes the very file it compared
//! ([`ostler_sandbox::spawn::ExpectedFile`]).

use ostler_backend::{LaunchPlan, PinnedFile};
use ostler_sandbox::spawn::ExpectedFile;
use rustix::fs::{Stat, stat};
use rustix::io::Errno;

use super::launch_failure::LaunchFailure;

/// The name of the step in errors.
const STEP: &str = "consent";

/// Compares the files of a plan and returns the expected identity of its program, where it is
/// pinned.
///
/// # Errors
/// The first file that changed.
pub(super) fn check_files(plan: &LaunchPlan) -> Result<Option<ExpectedFile>, LaunchFailure> {
    if plan.pinned_files.is_empty() {
        return Ok(None);
    }
    for pinned in &plan.pinned_files {
        let is_same = stat(pinned.path.as_path()).is_ok_and(|now| is_same(pinned, &now));
        if !is_same {
            return Err(file_changed(&pinned.path.to_string_lossy()));
        }
    }
    let program = plan.program.as_path();
    let found = stat(program).ok().and_then(|now| {
        let mut pinned = plan.pinned_files.iter();
        pinned.find(|pinned| is_same(pinned, &now))
    });
    match found {
        Some(pinned) => Ok(Some(pinned_program(pinned, plan.sandbox.is_some()))),
        None => Err(file_changed(&plan.program.to_string_lossy())),
    }
}

/// The failure for a file that has changed.
pub(super) fn file_changed(path: &str) -> LaunchFailure {
    LaunchFailure {
        step: STEP,
        errno: Errno::STALE,
        message: Some(format!(
            "{path} changed after a person agreed to its start; it was not started"
        )),
    }
}

fn is_same(pinned: &PinnedFile, now: &Stat) -> bool {
    let identity = (now.st_dev, now.st_ino);
    let modified = (now.st_mtime, nanos(now.st_mtime_nsec));
    let changed = (now.st_ctime, nanos(now.st_ctime_nsec));
    identity == (pinned.dev, pinned.ino)
        && u64::try_from(now.st_size).is_ok_and(|size| size == pinned.size)
        && (modified, changed) == (pinned.modified, pinned.changed)
}

fn nanos(nanos: impl TryInto<i64>) -> i64 {
    nanos.try_into().unwrap_or(-1)
}

/// The expected identity of the program. In a jail the same file may have another device and inode
/// number: an overlay assigns its own.
fn pinned_program(pinned: &PinnedFile, in_jail: bool) -> ExpectedFile {
    ExpectedFile {
        dev_ino: (!in_jail).then_some((pinned.dev, pinned.ino)),
        size: pinned.size,
        mtime: pinned.modified,
        ctime: pinned.changed,
    }
}
