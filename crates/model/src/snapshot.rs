//! Snapshots of a running process tree.

use serde::{Deserialize, Serialize};

use crate::byte_string::ByteString;

/// Resources that a process tree has used, as far as they can be known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Usage {
    /// User time in microseconds.
    #[serde(default)]
    pub user_us: u64,
    /// System time in microseconds.
    #[serde(default)]
    pub system_us: u64,
    /// The largest resident set of one process, in bytes.
    #[serde(default)]
    pub max_rss_bytes: u64,
}

/// What to observe of a running process tree; each field costs system calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SnapshotRequest {
    /// Listening TCP sockets and the processes that hold them.
    pub listeners: bool,
    /// Listening unix sockets and the processes that hold them.
    pub unix: bool,
    /// The process that waits for the execution's input (else the leader), and how it waits.
    pub foreground: bool,
    /// The size of its workspace.
    pub disk: bool,
}

/// The state of a running process tree at one moment.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct TreeSnapshot {
    /// All living processes of the tree, the leader first.
    pub members: Vec<TreeMember>,
    /// Their resource usage, summed.
    pub usage: LiveUsage,
    /// Listening TCP sockets, where requested.
    pub listeners: Vec<TcpListenerInfo>,
    /// Listening unix sockets, where requested.
    #[serde(default)]
    pub unix: Vec<UnixListenerInfo>,
    /// The foreground process, where requested and known.
    pub foreground: Option<ForegroundProcess>,
    /// Bytes by which the workspace has grown since the start (allocated; shrinking counts as 0),
    /// where requested and there is a workspace.
    #[serde(default)]
    pub disk_bytes: Option<u64>,
    /// Why the workspace may have grown by more than that: what could not be measured, as text for
    /// the user.
    #[serde(default)]
    pub disk_unmeasured: Option<String>,
}

/// One living process of a tree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TreeMember {
    /// Its OS pid; an identity only together with `start`.
    pub pid: u32,
    /// Its start time in clock ticks since boot (field 22 of proc(5)'s `stat`).
    pub start: u64,
    /// Its parent's OS pid.
    pub parent: u32,
    /// Its name (`comm`, at most 15 bytes); where a runtime names its first thread `MainThread`
    /// (Node.js), the name of its program.
    pub name: String,
    /// Whether it is stopped by a signal.
    #[serde(default)]
    pub stopped: bool,
}

/// Resource usage of living processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct LiveUsage {
    /// Processor time in clock ticks, user and system.
    pub cpu_ticks: u64,
    /// Resident pages; shared pages count once for each process.
    pub resident_pages: u64,
}

/// One listening TCP socket.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TcpListenerInfo {
    /// The address it is bound to.
    pub address: std::net::SocketAddr,
    /// The inode of the socket, which distinguishes it from a later one on the same port.
    pub inode: u64,
    /// The OS pid of a process of the tree that holds it.
    pub pid: u32,
    /// The number of connections that were not accepted yet.
    #[serde(default)]
    pub waiting: u32,
}

/// One listening unix socket.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnixListenerInfo {
    /// The name it is bound to, as its process gave it: a path, or an abstract name after a
    /// leading `@` (unix(7)), NUL bytes in it shown as `@` too.
    pub path: ByteString,
    /// The inode of the socket, which distinguishes it from a later one of the same name.
    pub inode: u64,
    /// The OS pid of a process of the tree that holds it.
    pub pid: u32,
}

/// The process that would receive typed input.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ForegroundProcess {
    /// Its OS pid.
    pub pid: u32,
    /// The descriptor from which it reads the execution's input, where it blocks in that read, or
    /// in a wait without timeout for nothing else.
    pub reads: Option<u32>,
    /// Whether it waits for something of which the execution's input may be a part: for several
    /// descriptors at once (poll, select, epoll), or for something that cannot be inspected.
    #[serde(default)]
    pub polls: bool,
    /// Whether its terminal echoes input (`ECHO`); none without a terminal.
    pub echo: Option<bool>,
    /// Whether its terminal delivers whole lines (`ICANON`); none without a terminal. A line
    /// editor reads single keys and echoes them itself.
    #[serde(default)]
    pub lines: Option<bool>,
}
