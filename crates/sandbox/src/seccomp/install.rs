//! Installs a filter on the calling thread and on everything it starts later.

use libc::{c_long, c_uint, sock_fprog};
use rustix::io::Errno;

use super::filter::SeccompFilter;
use super::rules::SeccompAction;

impl SeccompFilter {
    /// Installs the filter; this cannot be undone. The thread must have no_new_privs already. One
    /// system call on memory prepared before: safe between clone and exec.
    ///
    /// # Errors
    /// As seccomp(2): `EACCES` without no_new_privs, `EINVAL` without support.
    pub fn install(&self) -> Result<(), Errno> {
        let instructions = self.instructions();
        let filter = sock_fprog {
            len: u16::try_from(instructions.len()).map_err(|_| Errno::INVAL)?,
            filter: instructions.as_ptr().cast_mut(),
        };
        // SAFETY: `filter` and the instructions it points to outlive the call, which only
        // reads them.
        let done = unsafe {
            libc::syscall(
                libc::SYS_seccomp,
                c_long::from(libc::SECCOMP_SET_MODE_FILTER),
                0 as c_long,
                &raw const filter,
            )
        };
        result(done)
    }
}

/// Checks that this kernel supports filters with the actions used here.
///
/// # Errors
/// `EOPNOTSUPP` where an action is missing, `EINVAL` or `ENOSYS` where filters are.
pub fn supported() -> Result<(), Errno> {
    for required in [SeccompAction::Eperm, SeccompAction::Kill] {
        let action: c_uint = required.return_value() & libc::SECCOMP_RET_ACTION_FULL;
        // SAFETY: `action` outlives the call, which only reads it.
        let done = unsafe {
            libc::syscall(
                libc::SYS_seccomp,
                c_long::from(libc::SECCOMP_GET_ACTION_AVAIL),
                0 as c_long,
                &raw const action,
            )
        };
        result(done)?;
    }
    Ok(())
}

/// Why filters are not available here; none where they are.
#[must_use]
pub fn unavailable_reason() -> Option<String> {
    let errno = supported().err()?;
    Some(format!(
        "this kernel has no seccomp filters that return errors and end processes: {errno}"
    ))
}

fn result(done: c_long) -> Result<(), Errno> {
    if done < 0 {
        // SAFETY: the C library gives every thread a place for its last error; reading it
        // neither allocates nor locks.
        return Err(Errno::from_raw_os_error(unsafe {
            *libc::__errno_location()
        }));
    }
    Ok(())
}
