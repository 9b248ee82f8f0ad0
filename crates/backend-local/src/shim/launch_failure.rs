//! Why a command could not be started.

use rustix::io::Errno;

/// The step that failed, and its error.
#[derive(Debug)]
pub(super) struct LaunchFailure {
    /// Which step failed.
    pub(super) step: &'static str,
    /// The error number.
    pub(super) errno: Errno,
    /// Further explanation; none where step and number are enough.
    pub(super) message: Option<String>,
}

impl LaunchFailure {
    /// A failure without further explanation.
    pub(super) const fn at(step: &'static str) -> impl Fn(Errno) -> Self {
        move |errno| Self {
            step,
            errno,
            message: None,
        }
    }
}
