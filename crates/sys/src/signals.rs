//! Signal masks, dispositions and descriptors.

use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use rustix::io::Errno;

use crate::errno::last_errno;

/// Signals that zygote and shims ignore: a terminal's and a broken pipe's.
pub const IGNORED: [libc::c_int; 4] = [libc::SIGHUP, libc::SIGINT, libc::SIGQUIT, libc::SIGPIPE];

fn empty_set() -> libc::sigset_t {
    let mut set = MaybeUninit::uninit();
    // SAFETY: sigemptyset initialises the whole set it is given.
    unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        set.assume_init()
    }
}

/// Blocks every signal in this thread and returns the previous mask.
pub fn block_all() -> libc::sigset_t {
    let mut all = empty_set();
    let mut old = empty_set();
    // SAFETY: both sets are initialised and live through the call.
    unsafe {
        libc::sigfillset(&raw mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, &raw mut old);
    }
    old
}

/// Sets this thread's mask.
pub fn set_mask(mask: &libc::sigset_t) {
    // SAFETY: the set is initialised and lives through the call.
    unsafe {
        libc::pthread_sigmask(
            libc::SIG_SETMASK,
            std::ptr::from_ref(mask),
            std::ptr::null_mut(),
        );
    }
}

/// The kernel's `struct sigaction`, zero meaning the default action on every architecture. The
/// C library's own call refuses two signals that it uses itself and that may arrive ignored.
#[repr(C)]
struct KernelSigaction {
    handler: usize,
    rest: [usize; 3],
}

/// The kernel's signal set, in bytes.
const KERNEL_SET_BYTES: usize = 8;
/// The highest signal.
const LAST_SIGNAL: libc::c_int = 64;

/// Every signal; those that cannot be set are refused by the kernel.
pub const ALL: std::ops::RangeInclusive<libc::c_int> = 1..=LAST_SIGNAL;

/// Gives a signal its default action, or ignores it. One system call: also safe in a child that
/// shares its parent's memory.
pub fn set_action(number: libc::c_int, ignored: bool) {
    let handler = if ignored {
        libc::SIG_IGN
    } else {
        libc::SIG_DFL
    };
    let action = KernelSigaction {
        handler,
        rest: [0; 3],
    };
    // SAFETY: the struct is valid during the call; neither action runs a handler.
    unsafe {
        libc::syscall(
            libc::SYS_rt_sigaction,
            number,
            &raw const action,
            std::ptr::null_mut::<KernelSigaction>(),
            KERNEL_SET_BYTES,
        );
    }
}

/// Gives every signal its default action, except the [`IGNORED`] ones, and empties the mask. For a
/// process that has just started and must not inherit its parent's dispositions.
pub fn reset_dispositions() {
    for number in ALL {
        set_action(number, IGNORED.contains(&number));
    }
    set_mask(&empty_set());
}

/// Blocks SIGCHLD and returns a non-blocking descriptor that becomes readable when it is pending.
pub fn sigchld_fd() -> Result<OwnedFd, Errno> {
    let mut set = empty_set();
    // SAFETY: the set is initialised; signalfd returns a fresh descriptor or -1.
    unsafe {
        libc::sigaddset(&raw mut set, libc::SIGCHLD);
        libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut());
        let descriptor = libc::signalfd(-1, &raw const set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK);
        if descriptor < 0 {
            return Err(last_errno());
        }
        Ok(OwnedFd::from_raw_fd(descriptor))
    }
}

/// Drains a descriptor of [`sigchld_fd`].
pub fn drain_signalfd(descriptor: BorrowedFd<'_>) {
    let mut space = [0_u8; 4 * size_of::<libc::signalfd_siginfo>()];
    // SAFETY: the buffer is valid for its length.
    unsafe {
        libc::read(
            descriptor.as_raw_fd(),
            space.as_mut_ptr().cast(),
            space.len(),
        )
    };
}

/// Sends `signal` to one process (positive) or one group (negative). Signal 0 only checks that it
/// exists.
pub fn kill(target: i32, signal: i32) -> Result<(), Errno> {
    // SAFETY: kill(2) touches no memory of this process.
    if unsafe { libc::kill(target, signal) } == 0 {
        Ok(())
    } else {
        Err(last_errno())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_exists_can_be_sent_signal_0() {
        let own = i32::try_from(std::process::id()).expect("pids are positive");
        assert_eq!(kill(own, 0), Ok(()));
        assert_eq!(kill(i32::MAX, 0), Err(Errno::SRCH));
    }

    #[test]
    fn every_signal_is_blocked_until_the_mask_is_restored() {
        let mask = block_all();
        let mut blocked = empty_set();
        // SAFETY: the set is initialised and lives through the calls.
        let is_blocked = unsafe {
            libc::pthread_sigmask(libc::SIG_BLOCK, std::ptr::null(), &raw mut blocked);
            libc::sigismember(&raw const blocked, libc::SIGTERM) == 1
        };
        set_mask(&mask);
        assert!(is_blocked);
    }
}
