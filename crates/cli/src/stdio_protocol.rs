//! What a front and the daemon say to each other on `front.sock`.
//!
//! The front sends one [`StdioHello`] with three descriptors attached: its standard input, its
//! standard output, and a memfd for the connection's log, which daemons write and the front
//! only keeps. The daemon answers one [`HelloReply`] and, at the end, one [`StdioEvent`]. Each is one line
//! of JSON. When either side closes the connection, the session is over; a close without
//! [`StdioEvent::CloseReason`] means the daemon died, and the next one goes on from the log.

use ostler_model::ByteString;
use serde::{Deserialize, Serialize};

use crate::config::ClientPolicy;

/// The protocol's version.
pub(crate) const PROTOCOL: u32 = 2;
/// Descriptors that come with a hello.
pub(crate) const DESCRIPTORS: usize = 3;
/// The longest hello; an environment is bounded by what execve(2) takes.
pub(crate) const HELLO_BYTES: usize = 8 * 1024 * 1024;
/// How long a hello may take to arrive, in milliseconds.
pub(crate) const HELLO_TIMEOUT_MS: u64 = 5_000;
/// The longest note.
pub(crate) const EVENT_BYTES: u64 = 64 * 1024;
/// How sessions that end with their front are named: this, pid, dash, start time.
pub(crate) const STDIO_SESSION_PREFIX: &str = "front-";

/// A front's first words.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct StdioHello {
    /// [`PROTOCOL`].
    pub(crate) protocol: u32,
    /// What is spoken on the streams.
    pub(crate) kind: StdioClientKind,
    /// The session's name.
    pub(crate) session: String,
    /// Whether the session outlives this front (`--session NAME`).
    #[serde(default)]
    pub(crate) kept: bool,
    /// The front's working directory.
    pub(crate) cwd: ByteString,
    /// The front's environment, from which commands get theirs.
    pub(crate) env: Vec<(ByteString, ByteString)>,
    /// The tools to offer.
    pub(crate) tools: Vec<String>,
    /// What holds for this front besides the daemon's settings.
    #[serde(default)]
    pub(crate) policy: ClientPolicy,
    /// The front's OS pid, for people.
    pub(crate) pid: u32,
}

/// What is spoken on the streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum StdioClientKind {
    /// The Model Context Protocol.
    Mcp,
}

/// The daemon's answer to a hello.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum HelloReply {
    /// The streams are taken over.
    Ok(bool),
    /// They are not.
    Error(ostler_server::wire::Problem),
}

/// What the daemon tells a front later.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum StdioEvent {
    /// The conversation is over.
    Bye(CloseReason),
}

/// Why a conversation is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum CloseReason {
    /// The client closed it.
    Closed,
    /// The daemon shuts down; the next request may start another.
    Shutdown,
}

/// A message as a line.
pub(crate) fn encode_line<T: Serialize>(message: &T) -> serde_json::Result<Vec<u8>> {
    let mut bytes = serde_json::to_vec(message)?;
    bytes.push(b'\n');
    Ok(bytes)
}
