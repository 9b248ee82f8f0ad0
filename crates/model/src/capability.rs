//! Capabilities of a backend: their names, and which of them a host has.

use serde::{Deserialize, Serialize};

/// A capability of a backend.
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
    /// User ids that are unused on the host, where the caller is root.
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
#[error("'{given}' is nothing that can be done without; allowed: {}", Capability::OPTIONAL_NAMES.join(", "))]
pub struct CapabilityError {
    /// The text as given.
    pub given: String,
}

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
    /// The names of the capabilities that level high can be allowed to do without.
    pub const OPTIONAL_NAMES: [&'static str; 17] = [
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

/// A requested capability that this host or backend lacks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MissingCapability {
    /// The capability.
    pub ability: Capability,
    /// The reason, as text for the user.
    pub reason: String,
}

/// What a backend can enforce, each missing capability with its reason.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct CapabilitySet {
    /// The capabilities that can be enforced.
    pub present: Vec<Capability>,
    /// The capabilities that cannot, and why.
    pub missing: Vec<MissingCapability>,
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
    pub fn without(mut self, missing: Vec<MissingCapability>) -> Self {
        for absent in missing {
            self.present.retain(|it| *it != absent.ability);
            self.missing.retain(|it| it.ability != absent.ability);
            self.missing.push(absent);
        }
        self
    }
}
