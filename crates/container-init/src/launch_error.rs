//! Why a command could not be started.

use std::path::Path;

use ostler_sandbox::spawn::{SpawnStep, SpawnStepError};
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

    /// That of a command, or of its runner, for which no process could be made.
    pub(crate) fn no_process(errno: Errno) -> Self {
        let error = Self::at(SpawnStep::Clone.name())(errno);
        let message = "no process can be made: the container has as many as its limit allows";
        Self {
            message: (errno == Errno::AGAIN).then(|| message.to_owned()),
            ..error
        }
    }

    /// That of a command, with what only the container knows of it.
    pub(crate) fn of_spawn(error: &SpawnStepError, cwd: &Path) -> Self {
        let SpawnStepError { step, errno } = *error;
        let failed = Self::at(step.name())(errno);
        if step == SpawnStep::Clone {
            return Self::no_process(errno);
        }
        if step != SpawnStep::Chdir || errno != Errno::ACCESS {
            return failed;
        }
        Self {
            message: Some(format!(
                "cannot enter {}: the container's user, with uid {} and no capability that \
                 overrides permissions, may not, by its owner and mode on the host",
                cwd.display(),
                rustix::process::geteuid().as_raw()
            )),
            ..failed
        }
    }

    /// The event that reports it to the shim.
    pub(crate) fn into_event(self) -> TreeEvent {
        TreeEvent::Failed {
            step: self.step.to_owned(),
            errno: self.errno.raw_os_error(),
            message: self.message,
        }
    }
}
