//! `ostler shutdown`.

use std::os::fd::AsFd as _;

use clap::Args;
use hyper::Method;
use ostler_api::HealthBody;
use ostler_sys::pidfd;

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
        let daemon = pidfd::open(health.await?.pid);
        let shutdown = client.call_bytes(Method::POST, "/api/v1/shutdown", RequestBody::None);
        shutdown.await.map(|_| daemon)
    })?;
    // One that is gone by now needs no wait.
    if let Ok(daemon) = daemon
        && let Err(error) = pidfd::wait_blocking(daemon.as_fd())
    {
        crate::print_note(&format!("the daemon's end cannot be waited for: {error}"));
    }
    Ok(0)
}
