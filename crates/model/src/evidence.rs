//! What a place can do, and what can be observed of a running tree.

use serde::{Deserialize, Serialize};

/// One thing a place may be able to enforce.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ability {
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
pub struct Abilities {
    /// What can be enforced.
    pub present: Vec<Ability>,
    /// What cannot, and why.
    pub missing: Vec<crate::policy::Degraded>,
    /// How limits are enforced.
    pub backend: LimitBackend,
}

impl Abilities {
    /// Whether `ability` can be enforced.
    #[must_use]
    pub fn has(&self, ability: Ability) -> bool {
        self.present.contains(&ability)
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
pub struct Observation {
    /// Sockets that listen, and who holds them.
    pub listeners: bool,
    /// The process that waits for the execution's input (else the leader), and how.
    pub foreground: bool,
}

/// What was seen of a running tree at one moment.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Evidence {
    /// Every living process of the tree, the leader first.
    pub members: Vec<Member>,
    /// What they use, added up.
    pub usage: LiveUsage,
    /// Sockets that listen, where they were asked for.
    pub listeners: Vec<Listener>,
    /// Who has the say, where it was asked for and can be told.
    pub foreground: Option<Foreground>,
}

/// One living process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Member {
    /// Its OS pid; an identity only together with `start`.
    pub pid: u32,
    /// Its start time in clock ticks since boot (field 22 of proc(5)'s `stat`).
    pub start: u64,
    /// Its parent's OS pid.
    pub parent: u32,
    /// Its name, at most 15 bytes of it.
    pub name: String,
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
pub struct Listener {
    /// The address it is bound to.
    pub address: std::net::SocketAddr,
    /// The socket's inode, which tells it from a later one on the same port.
    pub inode: u64,
    /// The OS pid of a member that holds it.
    pub pid: u32,
}

/// The process that would get what is typed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Foreground {
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
