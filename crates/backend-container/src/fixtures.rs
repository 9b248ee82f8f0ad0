//! What several tests start from.

use std::path::PathBuf;
use std::time::Duration;

use ostler_backend::ContainerLaunch;
use ostler_model::{ByteString, ContainerSpec};

use crate::engine::{EngineFacts, EngineKind};

/// A start in a container with nothing but what every container has.
pub(crate) fn launch() -> ContainerLaunch {
    ContainerLaunch {
        spec: ContainerSpec {
            image: "busybox".to_owned(),
            workspace: ByteString::from("/srv/project"),
            network: "none".to_owned(),
            dns: Vec::new(),
            proxy: None,
            read_only_root: true,
            no_new_privileges: true,
            user: None,
            cap_add: Vec::new(),
            volumes: Vec::new(),
            secret_files: false,
            health: None,
            idle_timeout: Duration::from_secs(60),
            reuse: true,
            disk: None,
        },
        principal: "local:1000".to_owned(),
        project: "/srv/project".to_owned(),
    }
}

/// An engine that limits everything.
pub(crate) fn engine_facts() -> EngineFacts {
    EngineFacts {
        socket: PathBuf::from("/run/docker.sock"),
        kind: EngineKind::Docker,
        version: "20.10.24".to_owned(),
        api_version: "1.41".to_owned(),
        storage_driver: "overlay2".to_owned(),
        storage_filesystem: None,
        cgroup_driver: "cgroupfs".to_owned(),
        cgroup_version: "2".to_owned(),
        rootless: false,
        remaps_users: false,
        limits_memory: true,
        limits_swap: true,
        limits_cpu: true,
        limits_pids: true,
        has_seccomp: true,
    }
}
