//! What a place can do, and what can be observed of a running tree.

use serde::{Deserialize, Serialize};

use crate::byte_string::ByteString;

/// One thing a place may be able to enforce.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Capability {
    /// An environment without what the front did not list.
    CleanEnvironment,
    /// A process group of its own.
    OwnGroup,
    /// Every descendant ends with the execution.
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
    /// Commands go on when the daemon ends.
    Durable,
    /// The tree can be frozen whole, for a pause.
    Freezer,
    /// A limit on the growth of the workspace.
    DiskLimit,
    /// exec(2) gives no more rights than the caller has.
    NoNewPrivileges,
    /// User, mount, pid, ipc, uts and cgroup namespaces of its own.
    Namespaces,
    /// Ids that are nobody's on the host, where the caller is root.
    SpareIds,
    /// A root of its own: read-only system, private directories, nothing else.
    OwnRoot,
    /// A fresh /proc that shows its own processes only.
    FreshProc,
    /// The workspace writable under spare ids (an idmapped mount).
    MappedWorkspace,
    /// Writes to the workspace kept apart (an overlay).
    Overlay,
    /// No capability, not even within its own namespaces.
    NoCapabilities,
    /// Landlock as the second wall.
    Landlock,
    /// A seccomp filter as the third wall.
    Seccomp,
    /// A network namespace of its own, with loopback only.
    NetworkNamespace,
    /// A gate through which only listed hosts are reached.
    Gate,
}

/// A word that names nothing a place can enforce.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{given}' is nothing that can be done without; allowed: {}", OPTIONAL_CAPABILITIES.join(", "))]
pub struct CapabilityError {
    /// As it was given.
    pub given: String,
}

/// What level high can be told to do without, by name.
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
    /// Every one, in the order of the enum.
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

    /// Its stable name, as on every face.
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

/// How limits of a tree are enforced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LimitBackend {
    /// Controllers of the unified cgroup hierarchy.
    CgroupV2,
    /// Controllers of the first version, killing by the second where it is mounted.
    CgroupV1,
    /// setrlimit(2) only.
    Rlimits,
    /// Nothing.
    #[default]
    None,
}

/// What a place can enforce, each missing piece with its reason.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct CapabilitySet {
    /// What can be enforced.
    pub present: Vec<Capability>,
    /// What cannot, and why.
    pub missing: Vec<crate::isolation::MissingCapability>,
    /// How limits are enforced.
    pub backend: LimitBackend,
    /// Whether commands are born as root unless they are given spare ids.
    #[serde(default)]
    pub root: bool,
}

impl CapabilitySet {
    /// Whether `ability` can be enforced.
    #[must_use]
    pub fn has(&self, ability: Capability) -> bool {
        self.present.contains(&ability)
    }

    /// These abilities less what was found missing since.
    #[must_use]
    pub fn lacking(mut self, missing: Vec<crate::isolation::MissingCapability>) -> Self {
        for lack in missing {
            self.present.retain(|it| *it != lack.ability);
            self.missing.retain(|it| it.ability != lack.ability);
            self.missing.push(lack);
        }
        self
    }
}

/// Resources a tree has used, as far as they can be known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Usage {
    /// Microseconds of user time.
    #[serde(default)]
    pub user_us: u64,
    /// Microseconds of system time.
    #[serde(default)]
    pub system_us: u64,
    /// The largest resident set of one process, in bytes.
    #[serde(default)]
    pub max_rss_bytes: u64,
}

/// What is to be observed of a running tree; each costs a look at the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SnapshotRequest {
    /// Sockets that listen, and who holds them.
    pub listeners: bool,
    /// Unix sockets that listen, and who holds them.
    pub unix: bool,
    /// The process that waits for the execution's input (else the leader), and how.
    pub foreground: bool,
    /// Bytes its workspace holds now.
    pub disk: bool,
}

/// What was seen of a running tree at one moment.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct TreeSnapshot {
    /// Every living process of the tree, the leader first.
    pub members: Vec<TreeMember>,
    /// What they use, added up.
    pub usage: LiveUsage,
    /// Sockets that listen, where they were asked for.
    pub listeners: Vec<TcpListenerInfo>,
    /// Unix sockets that listen, where they were asked for.
    #[serde(default)]
    pub unix: Vec<UnixListenerInfo>,
    /// Who has the say, where it was asked for and can be told.
    pub foreground: Option<ForegroundProcess>,
    /// Bytes the workspace has grown by since the start (allocated, shrinking counts as 0),
    /// where it was asked for and there is one.
    #[serde(default)]
    pub disk_bytes: Option<u64>,
}

/// One living process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TreeMember {
    /// Its OS pid; an identity only together with `start`.
    pub pid: u32,
    /// Its start time in clock ticks since boot (field 22 of proc(5)'s `stat`).
    pub start: u64,
    /// Its parent's OS pid.
    pub parent: u32,
    /// Its name, at most 15 bytes of it; where a runtime calls its first thread `MainThread`
    /// (Node.js), that of its program.
    pub name: String,
    /// Whether a signal has stopped it.
    #[serde(default)]
    pub stopped: bool,
}

/// What living processes use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct LiveUsage {
    /// Clock ticks of processor time, user and system.
    pub cpu_ticks: u64,
    /// Resident pages, shared ones counted for each process.
    pub resident_pages: u64,
}

/// One listening TCP socket.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TcpListenerInfo {
    /// The address it is bound to.
    pub address: std::net::SocketAddr,
    /// The socket's inode, which tells it from a later one on the same port.
    pub inode: u64,
    /// The OS pid of a member that holds it.
    pub pid: u32,
    /// Connections that no member has taken yet.
    #[serde(default)]
    pub waiting: u32,
}

/// One listening unix socket.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnixListenerInfo {
    /// The name it is bound to, as its process gave it: a path, or an abstract name after a
    /// leading `@` (unix(7)), NUL bytes in it shown as `@` too.
    pub path: ByteString,
    /// The socket's inode, which tells it from a later one of the same name.
    pub inode: u64,
    /// The OS pid of a member that holds it.
    pub pid: u32,
}

/// The process that would get what is typed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ForegroundProcess {
    /// Its OS pid.
    pub pid: u32,
    /// The descriptor it reads the execution's input from, where it is blocked in that, or in a
    /// wait without a time limit for nothing else.
    pub reads: Option<u32>,
    /// Whether it waits for something of which the execution's input may be one: for several
    /// at once (poll, select, epoll), or for what may not be looked at.
    #[serde(default)]
    pub polls: bool,
    /// Whether its terminal shows what is typed; none without a terminal.
    pub echo: Option<bool>,
    /// Whether its terminal hands over whole lines; none without a terminal. A line editor
    /// takes single keys and shows them itself.
    #[serde(default)]
    pub lines: Option<bool>,
}
