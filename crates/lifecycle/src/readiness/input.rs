//! The observations that readiness takes as input.

use std::net::SocketAddr;

use ostler_model::{ByteString, StreamName};

/// One listening socket of the tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListeningSocket {
    /// Where it is bound, as the process sees it.
    pub address: SocketAddr,
    /// Its inode, which tells it from a later one on the same port.
    pub inode: u64,
    /// The OS pid of a process that holds it.
    pub pid: u32,
    /// That process's name.
    pub process: String,
    /// Whether it was stopped by a signal.
    pub stopped: bool,
    /// Connections that nobody has taken yet.
    pub waiting: u32,
}

/// One thing that was seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReadinessInput {
    /// All listening sockets of the tree, and how many processes live in it.
    Sockets {
        /// The sockets.
        sockets: Vec<ListeningSocket>,
        /// Paths of its unix sockets that listen.
        unix: Vec<String>,
        /// Living processes.
        members: u32,
    },
    /// Output, in the order of arrival; pieces may end anywhere.
    Output {
        /// Which stream.
        stream: StreamName,
        /// The bytes.
        bytes: Vec<u8>,
    },
    /// A probe has ended.
    ProbeFinished(ProbeOutcome),
    /// A word over the notify socket.
    Notify(NotifyState),
    /// Nothing but the time.
    Time,
}

/// A word over the notify socket (sd_notify(3)).
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

/// A probe to carry out: one at a time for each service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProbeRequest {
    /// `GET` this path at this address of the tree; TLS where plain HTTP is refused.
    Http {
        /// The socket's own address; a wildcard is reached by its family's loopback.
        address: SocketAddr,
        /// The host name for the `Host` header and TLS.
        host: String,
        /// From `/` on.
        path: String,
        /// Whether TLS is to be tried first.
        tls: bool,
        /// Whether it may speak something else: who talks first is not spoken to, and who says
        /// nothing is told as silent.
        unsure: bool,
    },
    /// Connect and close.
    Tcp {
        /// Where.
        address: SocketAddr,
    },
    /// Run this in the service's directory, with its environment.
    Exec {
        /// Program and arguments.
        argv: Vec<ByteString>,
    },
}

/// How a probe ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProbeOutcome {
    /// An HTTP status.
    Http {
        /// From 100 to 599.
        status: u16,
        /// Whether over TLS.
        tls: bool,
        /// Milliseconds to the first byte.
        ms: u64,
    },
    /// The connection was taken; what came back is no HTTP, or nothing.
    Accepted {
        /// In words: `closed without an answer`, `speaks no HTTP`.
        detail: String,
    },
    /// The connection was taken, and nothing came back.
    Silent {
        /// For how long, in milliseconds.
        ms: u64,
    },
    /// The command exited.
    Exec {
        /// Its exit code; 128 + n for a signal.
        code: i32,
        /// The end of what it printed, at most 200 characters.
        output: String,
    },
    /// Nothing answered.
    Failed {
        /// In words: `connection refused`, `no answer within 30 s`.
        detail: String,
    },
}
