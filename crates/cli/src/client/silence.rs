//! Tells the user of a daemon that accepts connections and does not answer: one that was stopped by
//! a signal or hangs. A request that takes its time, as one that waits for the end of a command, is
//! distinguished by another one, which a daemon answers at once.

use std::convert::Infallible;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use hyper::Method;
use ostler_api::HealthBody;
use tokio::net::UnixStream;
use tokio::time::{Instant, sleep_until, timeout};

use super::http::{DaemonClient, RequestBody, build_request, send};

/// Seconds without an answer after which another request shows whether the daemon answers at all.
const PROBE_S: u64 = 2;
/// Seconds that this one may take.
const ANSWER_S: u64 = 6;
/// The path that a daemon answers at once.
const HEALTH: &str = "/api/v1/health";

/// Whether this process has printed the note.
static IS_PRINTED: AtomicBool = AtomicBool::new(false);

/// Whether a daemon answers.
#[derive(Debug)]
pub(crate) enum DaemonState {
    /// It does.
    Answers(Box<HealthBody>),
    /// It accepts connections and does not answer.
    Silent,
    /// There is none, or it cannot be reached.
    Unreachable,
}

impl DaemonClient {
    /// Asks the daemon for its state, and gives up where it does not answer.
    pub(crate) async fn daemon_state(&self) -> DaemonState {
        let client = self.without_silence_note();
        let health = client.call(Method::GET, HEALTH, RequestBody::None);
        match timeout(Duration::from_secs(PROBE_S + ANSWER_S), health).await {
            Ok(Ok(health)) => DaemonState::Answers(Box::new(health)),
            Ok(Err(_)) => DaemonState::Unreachable,
            Err(_) => DaemonState::Silent,
        }
    }
}

/// Prints a note where the daemon of this connection has not answered within a few seconds.
#[derive(Debug)]
pub(super) struct SilenceNote {
    socket: PathBuf,
    /// The process that listens on the socket.
    pid: Option<u32>,
}

impl SilenceNote {
    /// For a request over this connection.
    pub(super) fn new(socket: &Path, stream: &UnixStream) -> Self {
        let pid = stream.peer_cred().ok().and_then(|peer| peer.pid());
        Self {
            socket: socket.to_owned(),
            pid: pid.and_then(|pid| u32::try_from(pid).ok()),
        }
    }

    /// Prints it once for all requests of this process. Ends only with the request.
    pub(super) async fn print_when_silent(self) -> Infallible {
        let deadline = |seconds| Instant::now() + Duration::from_secs(seconds);
        sleep_until(deadline(PROBE_S)).await;
        let answer = timeout(Duration::from_secs(ANSWER_S), is_answered(&self.socket)).await;
        // An engine in this process is no daemon.
        let pid = self.pid.filter(|pid| *pid != std::process::id());
        if answer.is_err()
            && let Some(pid) = pid
            && !IS_PRINTED.swap(true, Ordering::Relaxed)
        {
            crate::print_note(&crate::daemon::unresponsive_message(pid));
        }
        std::future::pending().await
    }
}

/// Asks what is answered at once. An error is an answer: the request itself gets it, too.
async fn is_answered(socket: &Path) {
    let Ok(stream) = UnixStream::connect(socket).await else {
        return;
    };
    if let Ok(request) = build_request(Method::GET, HEALTH, RequestBody::None) {
        drop(send(stream, request).await);
    }
}
