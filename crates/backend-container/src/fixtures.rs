//! What several tests start from.

use std::time::Duration;

use ostler_backend::ContainerLaunch;
use ostler_model::{ByteString, ContainerSpec};

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
        },
        principal: "local:1000".to_owned(),
        project: "/srv/project".to_owned(),
    }
}
