//! The protocol between a stdio proxy and the daemon on `front.sock`.
//!
//! The proxy sends one [`StdioHello`] with three descriptors attached: its standard input, its
//! standard output, and a memfd for the connection's log, which daemons write and the proxy only
//! keeps. The daemon responds with one [`HelloReply`] and, at the end, one [`StdioEvent`]. Each is
//! one line of JSON. When either side closes the connection, the session is over; a close without
//! [`StdioEvent::Bye`] means that the daemon died, and the next one continues from the log.

use ostler_model::ByteString;
use serde::{Deserialize, Serialize};

use crate::config::ClientPolicy;

pub(crate) const PROTOCOL: u32 = 2;
/// The number of descriptors attached to a hello.
pub(crate) const DESCRIPTORS: usize = 3;
/// The longest hello in bytes; execve(2) limits the size of an environment.
pub(crate) const HELLO_BYTES: usize = 8 * 1024 * 1024;
/// The timeout for receiving a hello, in milliseconds.
pub(crate) const HELLO_TIMEOUT_MS: u64 = 5_000;
/// The longest event in bytes.
pub(crate) const EVENT_BYTES: u64 = 64 * 1024;
/// The prefix of session names of stdio proxies: followed by the pid, a dash and the start time.
pub(crate) const STDIO_SESSION_PREFIX: &str = "front-";

/// The first message of a proxy.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct StdioHello {
    /// The protocol version, [`PROTOCOL`].
    pub(crate) protocol: u32,
    /// The protocol on the streams.
    pub(crate) kind: StdioClientKind,
    pub(crate) session: String,
    /// Whether the session outlives this proxy (`--session NAME`).
    #[serde(default)]
    pub(crate) kept: bool,
    /// The proxy's working directory.
    pub(crate) cwd: ByteString,
    /// The proxy's environment, which commands inherit.
    pub(crate) env: Vec<(ByteString, ByteString)>,
    /// The tool profiles to offer.
    pub(crate) tools: Vec<String>,
    /// The policy of this client in addition to the daemon's settings.
    #[serde(default)]
    pub(crate) policy: ClientPolicy,
    /// The proxy's OS pid, for people.
    pub(crate) pid: u32,
}

/// The protocol on the streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum StdioClientKind {
    /// The Model Context Protocol.
    Mcp,
}

/// The daemon's response to a hello.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum HelloReply {
    /// The daemon has taken over the streams.
    Ok(bool),
    /// The daemon refused.
    Error(ostler_api::Problem),
}

/// A later message of the daemon.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum StdioEvent {
    /// The session is over.
    Bye(CloseReason),
}

/// Why a session is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum CloseReason {
    /// The client closed it.
    Closed,
    /// The daemon shuts down; the next request may start another one.
    Shutdown,
}

/// Encodes a message as a line.
pub(crate) fn encode_line<T: Serialize>(message: &T) -> serde_json::Result<Vec<u8>> {
    let mut bytes = serde_json::to_vec(message)?;
    bytes.push(b'\n');
    Ok(bytes)
}
