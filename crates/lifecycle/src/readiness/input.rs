//! The observations that readiness takes as input.

use std::net::SocketAddr;

use ostler_model::{ByteString, StreamName};

/// One listening socket of the tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListeningSocket {
    /// The bound address, as the process sees it.
    pub address: SocketAddr,
    /// The socket's inode, which distinguishes it from a later socket on the same port.
    pub inode: u64,
    /// The OS pid of a process that holds it.
    pub pid: u32,
    /// That process's name.
    pub process: String,
    /// Whether that process was stopped by a signal.
    pub stopped: bool,
    /// Connections in the accept queue.
    pub waiting: u32,
}

/// One observation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReadinessInput {
    /// All listening sockets of the tree, and its process count.
    Sockets {
        /// The sockets.
        sockets: Vec<ListeningSocket>,
        /// Paths of its listening unix sockets.
        unix: Vec<String>,
        /// The number of processes in the tree.
        members: u32,
    },
    /// Output, in order of arrival; chunks may end anywhere.
    Output {
        /// Which stream.
        stream: StreamName,
        /// The bytes.
        bytes: Vec<u8>,
    },
    /// A probe has ended.
    ProbeFinished(ProbeOutcome),
    /// A message on the notify socket.
    Notify(NotifyState),
    /// Only the passage of time.
    Time,
}

/// A message on the notify socket (sd_notify(3)).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NotifyState {
    /// `READY=1`.
    pub ready: bool,
    /// `STOPPING=1`.
    pub stopping: bool,
    /// `STATUS=…`, for people.
    pub status: Option<String>,
    /// `WATCHDOG=1`.
    pub watchdog: bool,
}

/// A probe to run: one at a time for each service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProbeRequest {
    /// `GET` this path at this address of the tree; with TLS where plain HTTP is refused.
    Http {
        /// The socket's own address; a wildcard is reached by its family's loopback.
        address: SocketAddr,
        /// The host name for the `Host` header and TLS.
        host: String,
        /// The path, beginning with `/`.
        path: String,
        /// Whether to try TLS first.
        tls: bool,
        /// Whether the server may speak another protocol: to one that talks first nothing is sent,
        /// and one that says nothing is reported as silent.
        unsure: bool,
    },
    /// Connect and close.
    Tcp {
        /// The address to connect to.
        address: SocketAddr,
    },
    /// Run this in the service's directory, with its environment.
    Exec {
        /// Program and arguments.
        argv: Vec<ByteString>,
    },
}

/// The result of a probe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProbeOutcome {
    /// An HTTP response.
    Http {
        /// The status code, from 100 to 599.
        status: u16,
        /// Whether it came over TLS.
        tls: bool,
        /// Milliseconds to the first byte.
        ms: u64,
    },
    /// The connection was accepted; the reply was not HTTP, or empty.
    Accepted {
        /// The detail, as text: `closed without an answer`, `speaks no HTTP`.
        detail: String,
    },
    /// The connection was accepted, and no reply arrived.
    Silent {
        /// The time waited, in milliseconds.
        ms: u64,
    },
    /// The command exited.
    Exec {
        /// Its exit code; 128 + n for a signal.
        code: i32,
        /// The end of its output, at most 200 characters.
        output: String,
    },
    /// The probe failed.
    Failed {
        /// The cause, as text: `connection refused`, `no answer within 30 s`.
        detail: String,
    },
}
