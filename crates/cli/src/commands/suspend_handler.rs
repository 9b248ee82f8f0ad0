//! Ctrl-Z while a command runs in the foreground: the command is paused, this process stops, and
//! both go on with SIGCONT, as `fg` and `bg` of a shell send it.

use std::io;
use std::time::Duration;

use hyper::Method;
use ostler_api::ExecutionBody;
use ostler_model::ErrorCode;
use tokio::signal::unix::{self, SignalKind, signal};
use tokio::time::timeout;

use super::ids;
use crate::attach::stop_self;
use crate::client::{DaemonClient, RequestBody};
use crate::error::CommandError;

/// The longest wait for the pause before this process stops all the same, in seconds.
const PAUSE_S: u64 = 5;

/// The signals of job control.
#[derive(Debug)]
pub(super) struct SuspendSignals {
    stop: unix::Signal,
    resume: unix::Signal,
}

impl SuspendSignals {
    /// Installs the handlers, before the command starts: what is typed meanwhile pauses it once it
    /// runs.
    ///
    /// # Errors
    /// When the system refuses.
    pub(super) fn install() -> Result<Self, CommandError> {
        Self::register().map_err(|error| {
            CommandError::new(ErrorCode::Internal, format!("no signal handler: {error}"))
        })
    }

    fn register() -> io::Result<Self> {
        let kind = |signal: rustix::process::Signal| SignalKind::from_raw(signal.as_raw());
        Ok(Self {
            stop: signal(kind(rustix::process::Signal::TSTP))?,
            resume: signal(kind(rustix::process::Signal::CONT))?,
        })
    }

    /// Pauses and resumes the command with this process. What somebody else paused stays paused.
    pub(super) async fn follow(mut self, client: DaemonClient, id: String) {
        let mut is_paused_here = false;
        loop {
            tokio::select! {
                Some(()) = self.stop.recv() => {
                    is_paused_here |= pause(&client, &id).await;
                    stop_self();
                }
                Some(()) = self.resume.recv() => {
                    if std::mem::take(&mut is_paused_here) {
                        resume(&client, &id).await;
                    }
                }
                else => return,
            }
        }
    }
}

/// Pauses the command; whether it went on until now. Where it cannot be paused, it is said.
async fn pause(client: &DaemonClient, id: &str) -> bool {
    let pausing = async {
        let path = ids::path(id, "");
        let info: ExecutionBody = client.call(Method::GET, &path, RequestBody::None).await?;
        if info.paused || info.is_finished() {
            return Ok(false);
        }
        post(client, id, "/pause").await.map(|()| true)
    };
    let result = timeout(Duration::from_secs(PAUSE_S), pausing).await;
    let reason = match result {
        Ok(Ok(paused)) => return paused,
        Ok(Err(error)) => error
            .message()
            .map_or_else(|| error.to_string(), str::to_owned),
        Err(_) => format!("the daemon does not answer within {PAUSE_S} s"),
    };
    crate::print_note(&format!("{id} is not paused and goes on: {reason}"));
    // A pause that is carried out later is undone as well.
    true
}

async fn resume(client: &DaemonClient, id: &str) {
    if let Err(error) = post(client, id, "/resume").await {
        tracing::debug!(%error, "not resumed: it may have ended");
    }
}

async fn post(client: &DaemonClient, id: &str, verb: &str) -> Result<(), CommandError> {
    let path = ids::path(id, verb);
    let response = client.call_bytes(Method::POST, &path, RequestBody::None);
    response.await.map(drop)
}
