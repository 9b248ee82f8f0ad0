//! `ostler shutdown`.

use std::os::fd::{AsFd as _, OwnedFd};

use clap::Args;
use hyper::Method;
use ostler_api::HealthBody;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use crate::client::RequestBody;
use crate::context::{CliContext, block_on};
use crate::error::CommandResult;

/// What `shutdown` takes.
#[derive(Debug, Args)]
pub(crate) struct ShutdownArgs {}

/// Stops the daemon, and returns when its process has exited.
///
/// # Errors
/// When no daemon is running.
pub(crate) fn run(context: &CliContext) -> CommandResult {
    let client = context.running_daemon_client();
    let daemon = block_on(async {
        let health = client.call::<HealthBody>(Method::GET, "/api/v1/health", RequestBody::None);
        let daemon = pidfd(health.await?.pid);
        let shutdown = client.call_bytes(Method::POST, "/api/v1/shutdown", RequestBody::None);
        shutdown.await.map(|_| daemon)
    })?;
    if let Some(daemon) = daemon {
        let mut fds = [PollFd::from_borrowed_fd(daemon.as_fd(), PollFlags::IN)];
        let result = rustix::io::retry_on_intr(|| poll(&mut fds, None));
        if let Err(error) = result {
            crate::print_note(&format!("the daemon's end cannot be waited for: {error}"));
        }
    }
    Ok(0)
}

fn pidfd(pid: u32) -> Option<OwnedFd> {
    let pid = Pid::from_raw(i32::try_from(pid).ok()?)?;
    pidfd_open(pid, PidfdFlags::empty()).ok()
}
