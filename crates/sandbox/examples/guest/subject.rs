//! Runs a shell script as a command: spawned in a slot, by the code that spawns every command.

use std::ffi::CString;
use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use ostler_model::termination::WaitStatus;
use ostler_sandbox::cgroup::{CgroupJoin, CgroupSlot};
use ostler_sandbox::spawn::wait::{self, ReapOutcome};
use ostler_sandbox::spawn::{CArray, Pages, STACK_BYTES, SpawnSpec, SpawnedChild, spawn};
use ostler_sandbox::{Jail, Restrictions};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// The timeout of one step of a script, in milliseconds; emulation is slow.
const SCRIPT_WAIT_MS: u64 = 60_000;

/// Starts `sh -c script` in a slot.
pub(crate) fn start(entry: &CgroupJoin<'_>, script: &str) -> Result<SpawnedChild, String> {
    start_within(entry, None, script)
}

/// The same in a jail that was built in the same slot.
pub(crate) fn start_within(
    entry: &CgroupJoin<'_>,
    within: Option<(&Jail, &Restrictions)>,
    script: &str,
) -> Result<SpawnedChild, String> {
    let text = |text: &str| CString::new(text).map_err(|error| error.to_string());
    let argv = CArray::new(vec![text("sh")?, text("-c")?, text(script)?]);
    let env = CArray::new(vec![text("PATH=/bin")?]);
    let null = File::options().read(true).write(true).open("/dev/null");
    let null = null.map_err(|error| error.to_string())?;
    let joins: Vec<BorrowedFd<'_>> = entry.joins().collect();
    let launch = SpawnSpec {
        program: c"/bin/sh",
        expected: None,
        argv: &argv,
        env: &env,
        cwd: c"/",
        stdio: [null.as_fd(); 3],
        terminal: false,
        leads_session: false,
        cgroup_procs: &joins,
        cgroup: entry.clone_into(),
        dies_with_parent: true,
        reset_signals: &[],
        soft_open_files: None,
        rlimits: &[],
        jail: within.map(|(cell, _)| cell),
        restrictions: within.map(|(_, restrictions)| restrictions),
    };
    let mut stack = Pages::map(STACK_BYTES).map_err(|errno| errno.to_string())?;
    spawn(&launch, &mut stack).map_err(|failure| format!("{failure:?}"))
}

/// Waits until it has ended.
pub(crate) fn end(child: &SpawnedChild) -> Result<WaitStatus, String> {
    until(child.pidfd.as_fd(), PollFlags::IN)?;
    match wait::reap(child.pid) {
        ReapOutcome::Reaped(reaped) => Ok(reaped.status),
        ReapOutcome::Running | ReapOutcome::NoChildren => {
            Err("it ended, and nobody was there".to_owned())
        }
    }
}

/// Waits for an event on a descriptor.
pub(crate) fn until(descriptor: BorrowedFd<'_>, event: PollFlags) -> Result<(), String> {
    until_within(descriptor, event, SCRIPT_WAIT_MS)
}

/// The same with a timeout.
pub(crate) fn until_within(
    descriptor: BorrowedFd<'_>,
    event: PollFlags,
    limit_ms: u64,
) -> Result<(), String> {
    let mut waited = [PollFd::from_borrowed_fd(descriptor, event)];
    let limit = Timespec::try_from(Duration::from_millis(limit_ms));
    let limit = limit.map_err(|error| error.to_string())?;
    match poll(&mut waited, Some(&limit)) {
        Ok(0) => Err(format!("nothing within {limit_ms} ms")),
        Ok(_) => Ok(()),
        Err(errno) => Err(errno.to_string()),
    }
}

/// Kills every process in a slot, and reports those that survived.
pub(crate) fn clear(slot: &mut CgroupSlot, child: &SpawnedChild) -> Result<WaitStatus, String> {
    slot.kill();
    let status = end(child)?;
    // Remaining processes of the script are children of this one now, or cannot be waited for.
    while matches!(wait::reap(-1), ReapOutcome::Reaped(_)) {}
    Ok(status)
}
