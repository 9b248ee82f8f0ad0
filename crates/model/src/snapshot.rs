//! Capabilities of a backend, and snapshots of a running process tree.

use serde::{Deserialize, Serialize};

use crate::byte_string::ByteString;

/// One thing that a backend may be able to enforce.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Capability {
    /// An environment that holds only what the caller listed.
    CleanEnvironment,
    /// A process group of its own.
    OwnGroup,
    /// Killing every descendant when the execution ends.
    TreeKill,
    /// A cgroup of its own.
    OwnCgroup,
    /// A limit on processes.
    PidsLimit,
    /// A limit on memory.
    MemoryLimit,
    /// A limit on processor time.
    CpuLimit,
    /// Limits per process by setrlimit(2).
    ProcessLimits,
    /// Durability: commands keep running when the daemon ends.
    Durable,
    /// Freezing the whole process tree, for a pause.
    Freezer,
    /// A limit on the growth of the workspace.
    DiskLimit,
    /// `no_new_privs`: execve(2) grants no further privileges (prctl(2)).
    NoNewPrivileges,
    /// User, mount, pid, ipc, uts and cgroup namespaces of its own.
    Namespaces,
    /// User ids that belong to nobody on the host, where the caller is root.
    SpareIds,
    /// A root file system of its own: read-only system directories, private directories, nothing
    /// else.
    OwnRoot,
    /// A fresh `/proc` that shows its own processes only.
    FreshProc,
    /// A workspace that is writable under spare ids (an idmapped mount).
    MappedWorkspace,
    /// An overlay that keeps writes to the workspace apart from the host.
    Overlay,
    /// No capabilities(7), not even within its own namespaces.
    NoCapabilities,
    /// Landlock(7) rules in addition to the mount namespace.
    Landlock,
    /// A seccomp(2) filter.
    Seccomp,
    /// A network namespace of its own, with the loopback interface only.
    NetworkNamespace,
    /// The egress proxy, through which only listed hosts are reached.
    Gate,
}

/// The error for a name that is not a capability.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{given}' is nothing that can be done without; allowed: {}", OPTIONAL_CAPABILITIES.join(", "))]
pub struct CapabilityError {
    /// The text as given.
    pub given: String,
}

/// The names of the capabilities that level high can be allowed to do without.
const OPTIONAL_CAPABILITIES: [&str; 17] = [
    "no_new_privileges",
    "namespaces",
    "spare_ids",
    "own_root",
    "fresh_proc",
    "mapped_workspace",
    "overlay",
    "no_capabilities",
    "landlock",
    "seccomp",
    "network_namespace",
    "gate",
    "own_cgroup",
    "pids_limit",
    "memory_limit",
    "cpu_limit",
    "disk_limit",
];

impl std::str::FromStr for Capability {
    type Err = CapabilityError;

    fn from_str(given: &str) -> Result<Self, CapabilityError> {
        let found = Self::ALL.into_iter().find(|it| it.as_str() == given);
        found.ok_or_else(|| CapabilityError {
            given: given.to_owned(),
        })
    }
}

impl Capability {
    /// All capabilities, in the order of the enum.
    pub const ALL: [Self; 23] = [
        Self::CleanEnvironment,
        Self::OwnGroup,
        Self::TreeKill,
        Self::OwnCgroup,
        Self::PidsLimit,
        Self::MemoryLimit,
        Self::CpuLimit,
        Self::ProcessLimits,
        Self::Durable,
        Self::Freezer,
        Self::DiskLimit,
        Self::NoNewPrivileges,
        Self::Namespaces,
        Self::SpareIds,
        Self::OwnRoot,
        Self::FreshProc,
        Self::MappedWorkspace,
        Self::Overlay,
        Self::NoCapabilities,
        Self::Landlock,
        Self::Seccomp,
        Self::NetworkNamespace,
        Self::Gate,
    ];

    /// The stable name, the same on every interface.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::CleanEnvironment => "clean_environment",
            Self::OwnGroup => "own_group",
            Self::TreeKill => "tree_kill",
            Self::OwnCgroup => "own_cgroup",
            Self::PidsLimit => "pids_limit",
            Self::MemoryLimit => "memory_limit",
            Self::CpuLimit => "cpu_limit",
            Self::ProcessLimits => "process_limits",
            Self::Durable => "durable",
            Self::Freezer => "freezer",
            Self::DiskLimit => "disk_limit",
            Self::NoNewPrivileges => "no_new_privileges",
            Self::Namespaces => "namespaces",
            Self::SpareIds => "spare_ids",
            Self::OwnRoot => "own_root",
            Self::FreshProc => "fresh_proc",
            Self::MappedWorkspace => "mapped_workspace",
            Self::Overlay => "overlay",
            Self::NoCapabilities => "no_capabilities",
            Self::Landlock => "landlock",
            Self::Seccomp => "seccomp",
            Self::NetworkNamespace => "network_namespace",
            Self::Gate => "gate",
        }
    }
}

/// How resource limits of a process tree are enforced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LimitBackend {
    /// Controllers of the unified cgroup hierarchy (version 2).
    CgroupV2,
    /// Controllers of cgroup version 1; killing by version 2 where it is mounted.
    CgroupV1,
    /// setrlimit(2) only.
    Rlimits,
    /// Not at all.
    #[default]
    None,
}

/// What a backend can enforce, each missing capability with its reason.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct CapabilitySet {
    /// The capabilities that can be enforced.
    pub present: Vec<Capability>,
    /// The capabilities that cannot, and why.
    pub missing: Vec<crate::isolation::MissingCapability>,
    /// How resource limits are enforced.
    pub backend: LimitBackend,
    /// Whether commands are started as root unless they are given spare ids.
    #[serde(default)]
    pub root: bool,
}

impl CapabilitySet {
    /// Whether `ability` can be enforced.
    #[must_use]
    pub fn has(&self, ability: Capability) -> bool {
        self.present.contains(&ability)
    }

    /// This set without the capabilities that were found missing since.
    #[must_use]
    pub fn without(mut self, missing: Vec<crate::isolation::MissingCapability>) -> Self {
        for absent in missing {
            self.present.retain(|it| *it != absent.ability);
            self.missing.retain(|it| it.ability != absent.ability);
            self.missing.push(absent);
        }
        self
    }
}

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

/// The process that would receive what is typed.
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
