//! Shims that a signal has stopped, as `killall -STOP` does with every process of a name. What must
//! be carried out at once continues them: only a freeze, which is recorded, may halt an execution.

use crate::sys::proc;
use ostler_sys::pidfd;

/// Continues a shim where a signal has stopped it.
pub(super) fn continue_if_stopped(shim_pid: u32) {
    let Ok(pid) = i32::try_from(shim_pid) else {
        return;
    };
    let is_stopped = || proc::stat(pid).is_some_and(|stat| stat.is_stopped());
    if !is_stopped() {
        return;
    }
    let Ok(pidfd) = pidfd::open(shim_pid) else {
        return;
    };
    // Read again: what was read before may be of a process that had its pid.
    if is_stopped() && proc::has_role(pid) {
        let signal = rustix::process::Signal::CONT;
        let continued = rustix::process::pidfd_send_signal(&pidfd, signal);
        tracing::warn!(
            shim_pid,
            ?continued,
            "a signal had stopped a shim: continued"
        );
    }
}
