//! `ostler shutdown`.

use std::os::fd::{AsFd as _, OwnedFd};

use clap::Args;
use hyper::Method;
use ostler_server::wire::HealthBody;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use crate::client::Body;
use crate::error::Outcome;
use crate::setup::{Setup, block_on};

/// What `shutdown` takes.
#[derive(Debug, Args)]
pub(crate) struct ShutdownArgs {}

/// Ends the daemon, and returns when its process is gone.
///
/// # Errors
/// When no daemon is running.
pub(crate) fn run(setup: &Setup) -> Outcome {
    let client = setup.client_of_running();
    let daemon = block_on(async {
        let asked = client.call::<HealthBody>(Method::GET, "/api/v1/health", Body::None);
        let daemon = pidfd(asked.await?.pid);
        let asked = client.bytes(Method::POST, "/api/v1/shutdown", Body::None);
        asked.await.map(|_| daemon)
    })?;
    if let Some(daemon) = daemon {
        let mut fds = [PollFd::from_borrowed_fd(daemon.as_fd(), PollFlags::IN)];
        let waited = rustix::io::retry_on_intr(|| poll(&mut fds, None));
        if let Err(error) = waited {
            crate::tell(&format!("the daemon's end cannot be waited for: {error}"));
        }
    }
    Ok(0)
}

fn pidfd(pid: u32) -> Option<OwnedFd> {
    let pid = Pid::from_raw(i32::try_from(pid).ok()?)?;
    pidfd_open(pid, PidfdFlags::empty()).ok()
}
