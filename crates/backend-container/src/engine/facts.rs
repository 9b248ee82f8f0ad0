//! What an engine says of itself.

use std::path::PathBuf;

use bollard::models::{SystemInfo, SystemVersion};

/// The name of the component by which Podman is recognised.
const PODMAN_COMPONENT: &str = "Podman Engine";
/// The entry of the storage driver's status that names its file system.
const BACKING_FILESYSTEM: &str = "Backing Filesystem";
/// The storage drivers that limit the size of a container's own layer.
const DRIVERS_WITH_SIZE: [&str; 3] = ["btrfs", "zfs", "devicemapper"];

/// Which program an engine is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EngineKind {
    /// Docker, or another one that answers as it does.
    Docker,
    /// Podman, through its compatible interface.
    Podman,
}

impl EngineKind {
    /// Its name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Docker => "Docker",
            Self::Podman => "Podman",
        }
    }
}

/// A container engine, as it described itself when it was connected to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EngineFacts {
    /// Its socket.
    pub socket: PathBuf,
    /// Which program it is.
    pub kind: EngineKind,
    /// Its version.
    pub version: String,
    /// The version of the API that is spoken with it.
    pub api_version: String,
    /// The driver of its images and layers.
    pub storage_driver: String,
    /// The file system below that driver, where it says so.
    pub storage_filesystem: Option<String>,
    /// What makes its cgroups: `cgroupfs` or `systemd`.
    pub cgroup_driver: String,
    /// The version of its cgroups: `1` or `2`.
    pub cgroup_version: String,
    /// Whether it runs without root.
    pub rootless: bool,
    /// Whether root in its containers is another user on the host.
    pub remaps_users: bool,
    /// Whether it limits memory.
    pub limits_memory: bool,
    /// Whether it limits swap, without which a limit on memory includes no swap.
    pub limits_swap: bool,
    /// Whether it limits processor time.
    pub limits_cpu: bool,
    /// Whether it limits processes.
    pub limits_pids: bool,
    /// Whether it filters system calls.
    pub has_seccomp: bool,
}

impl EngineFacts {
    pub(super) fn new(
        socket: PathBuf,
        api_version: String,
        version: &SystemVersion,
        info: SystemInfo,
    ) -> Self {
        let components = version.components.iter().flatten();
        let is_podman = components
            .into_iter()
            .any(|component| component.name == PODMAN_COMPONENT);
        let options = info.security_options.unwrap_or_default();
        let has_option = |name: &str| {
            let mut fields = options.iter().flat_map(|option| option.split(','));
            fields.any(|field| field == format!("name={name}"))
        };
        let mut status = info.driver_status.iter().flatten();
        let filesystem =
            status.find(|entry| entry.first().is_some_and(|it| it == BACKING_FILESYSTEM));
        Self {
            socket,
            kind: if is_podman {
                EngineKind::Podman
            } else {
                EngineKind::Docker
            },
            version: version.version.clone().unwrap_or_default(),
            api_version,
            storage_driver: info.driver.unwrap_or_default(),
            storage_filesystem: filesystem.and_then(|entry| entry.get(1).cloned()),
            cgroup_driver: info
                .cgroup_driver
                .map(|it| it.to_string())
                .unwrap_or_default(),
            cgroup_version: info
                .cgroup_version
                .map(|it| it.to_string())
                .unwrap_or_default(),
            rootless: has_option("rootless"),
            remaps_users: has_option("userns"),
            limits_memory: info.memory_limit.unwrap_or(false),
            limits_swap: info.swap_limit.unwrap_or(false),
            limits_cpu: info.cpu_cfs_quota.unwrap_or(false),
            limits_pids: info.pids_limit.unwrap_or(false),
            has_seccomp: has_option("seccomp"),
        }
    }

    /// Whether its storage driver may limit the size of a container's own layer. With overlay2 on
    /// XFS that depends on mount options that it does not tell: then it refuses the first one.
    #[must_use]
    pub fn may_limit_layers(&self) -> bool {
        let on_xfs =
            self.storage_driver == "overlay2" && self.storage_filesystem.as_deref() == Some("xfs");
        on_xfs || self.limits_layers()
    }

    /// Whether its storage driver is known to limit the size of a container's own layer.
    #[must_use]
    pub fn limits_layers(&self) -> bool {
        DRIVERS_WITH_SIZE.contains(&self.storage_driver.as_str())
    }
}
