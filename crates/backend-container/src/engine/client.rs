//! [`EngineClient`]: the connection to whichever engine answers, made when it is first needed and
//! again when it was lost.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use ostler_backend::ContainerError;
use parking_lot::Mutex;
use tokio::net::UnixStream;
use tokio::time::timeout;

use super::connection::EngineConnection;
use super::discovery::{EngineDiscovery, SocketCandidate};
use super::error::EngineError;
use super::facts::EngineFacts;

/// How long it may take to connect to a socket.
const CONNECT_LIMIT: Duration = Duration::from_secs(2);

/// Finds an engine and keeps the connection.
#[derive(Debug)]
pub(crate) struct EngineClient {
    discovery: EngineDiscovery,
    /// Held while an engine is looked for: callers share one search.
    connection: tokio::sync::Mutex<Option<Arc<EngineConnection>>>,
    /// What the engine last said of itself; stays when it is lost.
    facts: Mutex<Option<EngineFacts>>,
}

impl EngineClient {
    pub(crate) fn new(discovery: EngineDiscovery) -> Self {
        Self {
            discovery,
            connection: tokio::sync::Mutex::default(),
            facts: Mutex::default(),
        }
    }

    /// What the engine said of itself when it was last connected to.
    pub(crate) fn last_facts(&self) -> Option<EngineFacts> {
        self.facts.lock().clone()
    }

    /// The connection; made where there is none, or nothing listens any more.
    ///
    /// # Errors
    /// When no engine answers, or one is there that does not answer in time.
    pub(crate) async fn connect(&self) -> Result<Arc<EngineConnection>, ContainerError> {
        let mut connection = self.connection.lock().await;
        if let Some(known) = connection.as_ref().filter(|it| !it.is_lost())
            && check_socket(known.socket()).await.is_ok()
        {
            return Ok(Arc::clone(known));
        }
        let found = Arc::new(find(&self.discovery).await?);
        let facts = found.facts();
        tracing::info!(
            socket = %facts.socket.display(),
            engine = facts.kind.as_str(),
            version = facts.version,
            api = facts.api_version,
            "connected to a container engine"
        );
        *self.facts.lock() = Some(facts.clone());
        *connection = Some(Arc::clone(&found));
        Ok(found)
    }
}

/// The first engine that answers.
async fn find(discovery: &EngineDiscovery) -> Result<EngineConnection, ContainerError> {
    let mut tried = Vec::new();
    for candidate in discovery.candidates() {
        let path = match candidate {
            SocketCandidate::Socket(path) => path,
            SocketCandidate::Unsupported(url) => {
                tried.push(format!("{url} (only unix sockets are supported)"));
                continue;
            }
        };
        match open(&path).await {
            Ok(connection) => return Ok(connection),
            // It is there, and containers of ours may be in it: no other one takes its place.
            Err(error @ EngineError::TimedOut(_)) => {
                return Err(error.into_container_error(&path));
            }
            Err(error) => tried.push(format!("{} ({error})", path.display())),
        }
    }
    Err(ContainerError::NoEngine { tried })
}

async fn open(path: &Path) -> Result<EngineConnection, EngineError> {
    check_socket(path).await?;
    EngineConnection::open(PathBuf::from(path)).await
}

/// Connects once by itself: the reason is in no error of the client.
async fn check_socket(path: &Path) -> Result<(), EngineError> {
    match timeout(CONNECT_LIMIT, UnixStream::connect(path)).await {
        Ok(Ok(_closed)) => Ok(()),
        // Its queue is full: it accepts no connections.
        Ok(Err(error)) if error.kind() == std::io::ErrorKind::WouldBlock => {
            Err(EngineError::TimedOut(CONNECT_LIMIT))
        }
        Ok(Err(error)) => Err(EngineError::Disconnected(reason(&error))),
        Err(_) => Err(EngineError::TimedOut(CONNECT_LIMIT)),
    }
}

#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "the standard library adds kinds of errors"
)]
fn reason(error: &std::io::Error) -> String {
    use std::io::ErrorKind;
    match error.kind() {
        ErrorKind::NotFound => "no such file".to_owned(),
        ErrorKind::PermissionDenied => "permission denied".to_owned(),
        ErrorKind::ConnectionRefused => "nothing listens on it".to_owned(),
        _ => error.to_string(),
    }
}

#[cfg(test)]
#[path = "client_tests.rs"]
mod tests;
