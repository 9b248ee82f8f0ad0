//! Why a command could not be started.

use rustix::io::Errno;

use crate::protocol::TreeEvent;

/// Why a command does not run.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct LaunchError {
    pub(crate) step: &'static str,
    pub(crate) errno: Errno,
    pub(crate) message: Option<String>,
}

impl LaunchError {
    pub(crate) const fn at(step: &'static str) -> impl Fn(Errno) -> Self {
        move |errno| Self {
            step,
            errno,
            message: None,
        }
    }

    /// As a shim is told.
    pub(crate) fn into_event(self) -> TreeEvent {
        TreeEvent::Failed {
            step: self.step.to_owned(),
            errno: self.errno.raw_os_error(),
            message: self.message,
        }
    }
}
