//! A shell script as a command of ours: born in a slot, by the code that every command is born
//! by.

use std::ffi::CString;
use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use ostler_model::ending::WaitStatus;
use ostler_sandbox::birth::wait::{self, Waited};
use ostler_sandbox::birth::{Born, CArray, Launch, Pages, STACK_BYTES, spawn};
use ostler_sandbox::cgroup::{Entry, Slot};
use ostler_sandbox::{Cell, Walls};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// Emulation is slow: no step of a script takes longer than this.
const SCRIPT_WAIT_MS: u64 = 60_000;

/// Starts `sh -c script` in a slot.
pub(crate) fn start(entry: &Entry<'_>, script: &str) -> Result<Born, String> {
    start_within(entry, None, script)
}

/// The same in a cell, which was built in the same slot.
pub(crate) fn start_within(
    entry: &Entry<'_>,
    within: Option<(&Cell, &Walls)>,
    script: &str,
) -> Result<Born, String> {
    let text = |text: &str| CString::new(text).map_err(|error| error.to_string());
    let argv = CArray::new(vec![text("sh")?, text("-c")?, text(script)?]);
    let env = CArray::new(vec![text("PATH=/bin")?]);
    let null = File::options().read(true).write(true).open("/dev/null");
    let null = null.map_err(|error| error.to_string())?;
    let joins: Vec<BorrowedFd<'_>> = entry.joins().collect();
    let launch = Launch {
        program: c"/bin/sh",
        pinned: None,
        argv: &argv,
        env: &env,
        cwd: c"/",
        stdio: [null.as_fd(); 3],
        terminal: false,
        joins: &joins,
        cgroup: entry.birthplace(),
        dies_with_parent: true,
        ignored: &[],
        soft_open_files: None,
        rlimits: &[],
        cell: within.map(|(cell, _)| cell),
        walls: within.map(|(_, walls)| walls),
    };
    let mut stack = Pages::map(STACK_BYTES).map_err(|errno| errno.to_string())?;
    spawn(&launch, &mut stack).map_err(|failure| format!("{failure:?}"))
}

/// Waits until it has ended.
pub(crate) fn end(born: &Born) -> Result<WaitStatus, String> {
    until(born.pidfd.as_fd(), PollFlags::IN)?;
    match wait::reap(born.pid) {
        Waited::Reaped(reaped) => Ok(reaped.status),
        Waited::Living | Waited::None => Err("it ended, and nobody was there".to_owned()),
    }
}

/// Waits for an event on a descriptor.
pub(crate) fn until(descriptor: BorrowedFd<'_>, event: PollFlags) -> Result<(), String> {
    until_within(descriptor, event, SCRIPT_WAIT_MS)
}

/// The same for so long.
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

/// Ends everybody in a slot, and says who did not.
pub(crate) fn clear(slot: &mut Slot, born: &Born) -> Result<WaitStatus, String> {
    slot.kill();
    let status = end(born)?;
    // What the script left behind is our child now, or nobody's that we could wait for.
    while matches!(wait::reap(-1), Waited::Reaped(_)) {}
    Ok(status)
}
