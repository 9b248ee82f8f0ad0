//! What recovery reads: the execution's directory, `spec.json` before anything runs, `exit`
//! when it is over. No fsync: it survives every kill, not power loss.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use ostler_model::ExecutionId;
use rustix::fs::{AtFlags, Mode, OFlags, mkdirat, openat, renameat, unlinkat};
use rustix::io::Errno;

use super::prepared::Preparation;
use super::serve::{Identity, Mode as ShimMode};
use crate::place::ExitRecord;
use crate::proto::WirePlan;
use crate::spec_file::{SPEC_FILE, SPEC_FILE_VERSION};
use crate::sys::time;

/// The exit record's name in an execution's directory.
pub(crate) const EXIT_FILE: &str = "exit";
/// The control socket's name in an execution's directory, while no daemon lives.
pub(crate) const CONTROL_SOCKET: &str = "ctl.sock";

/// Makes the execution's directory and writes what was asked into it. A first attempt for
/// which that fails leaves nothing.
pub(crate) fn begin(
    executions: BorrowedFd<'_>,
    preparation: &mut Preparation,
    plan: &WirePlan,
    identity: &Identity,
) -> Result<OwnedFd, Errno> {
    let spec = spec_json(plan, identity);
    if plan.attempt > 1 {
        match mkdirat(executions, plan.id.to_string(), Mode::RWXU) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(errno) => return Err(errno),
        }
        let dir = open_directory(executions, plan.id)?;
        replace_file(dir.as_fd(), SPEC_FILE, &spec)?;
        return Ok(dir);
    }
    loop {
        let (fresh, was_prepared) = preparation.take(executions, identity)?;
        match fresh.become_execution(executions, plan.id, &spec) {
            Ok(dir) => return Ok(dir),
            // Something of this execution is there before its spec; or it began already: a
            // client may have chosen its id and sent the start to two daemons, of which the
            // first died with its plan on the way.
            Err((Errno::EXIST | Errno::NOTEMPTY, fresh)) => {
                preparation.keep(fresh);
                let dir = open_directory(executions, plan.id)?;
                write_new_file(dir.as_fd(), SPEC_FILE, &spec)?;
                return Ok(dir);
            }
            Err((errno, fresh)) => {
                fresh.discard(executions);
                // It may have been removed while it waited.
                if !was_prepared {
                    return Err(errno);
                }
            }
        }
    }
}

/// Writes a file that is not there yet; where that fails it is not there afterwards.
fn write_new_file(dir: BorrowedFd<'_>, name: &str, bytes: &[u8]) -> Result<(), Errno> {
    let written = write_with(dir, name, bytes, OFlags::EXCL);
    if written.is_err_and(|errno| errno != Errno::EXIST) {
        remove(dir, name);
    }
    written
}

/// Opens an execution's directory.
pub(crate) fn open_directory(
    executions: BorrowedFd<'_>,
    id: ExecutionId,
) -> Result<OwnedFd, Errno> {
    let flags = OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::RDONLY | OFlags::NOFOLLOW;
    openat(executions, id.to_string(), flags, Mode::empty())
}

fn spec_json(plan: &WirePlan, identity: &Identity) -> Vec<u8> {
    let in_process = match identity.mode {
        ShimMode::Process => "",
        ShimMode::Thread => ",\"in_process\":true",
    };
    let head = format!(
        "{{\"version\":{SPEC_FILE_VERSION},\"id\":\"{}\",\"attempt\":{},\"created_at\":\"{}\",\
         \"boot\":{{\"id\":\"{}\",\"shim_pid\":{},\"shim_start\":{}{in_process}}},\"spec\":",
        plan.id,
        plan.attempt,
        time::timestamp(time::now_ns()),
        identity.boot_id,
        identity.pid,
        identity.start,
    );
    let mut bytes = head.into_bytes();
    bytes.extend_from_slice(plan.spec.as_bytes());
    bytes.extend_from_slice(b"}\n");
    bytes
}

/// Writes the exit record whole or not at all.
pub(crate) fn finish(dir: BorrowedFd<'_>, record: &ExitRecord) -> Result<(), Errno> {
    let bytes = serde_json::to_vec(record).map_err(|_| Errno::INVAL)?;
    replace_file(dir, EXIT_FILE, &bytes)
}

/// Removes a file of the directory, if it is there.
pub(crate) fn remove(dir: BorrowedFd<'_>, name: &str) {
    let _absent = unlinkat(dir, name, AtFlags::empty());
}

fn replace_file(dir: BorrowedFd<'_>, name: &str, bytes: &[u8]) -> Result<(), Errno> {
    let temporary = temporary(name);
    if let Err(error) = write_file(dir, &temporary, bytes) {
        remove(dir, &temporary);
        return Err(error);
    }
    renameat(dir, &temporary, dir, name)
}

/// What a file is called until it is whole.
pub(super) fn temporary(name: &str) -> String {
    format!("{name}.tmp")
}

pub(super) fn write_file(dir: BorrowedFd<'_>, name: &str, bytes: &[u8]) -> Result<(), Errno> {
    write_with(dir, name, bytes, OFlags::TRUNC)
}

fn write_with(dir: BorrowedFd<'_>, name: &str, bytes: &[u8], how: OFlags) -> Result<(), Errno> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::CLOEXEC | how;
    let file = openat(dir, name, flags, Mode::RUSR | Mode::WUSR)?;
    let mut rest = bytes;
    while !rest.is_empty() {
        let written = rustix::io::retry_on_intr(|| rustix::io::write(&file, rest))?;
        rest = &rest[written..];
    }
    Ok(())
}
