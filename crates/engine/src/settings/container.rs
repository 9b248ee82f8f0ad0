//! The settings for containers: their defaults, and what requests may ask for.

use std::path::PathBuf;

use ostler_model::container::{CONTAINER_CPU_MILLIS, CONTAINER_DISK_BYTES, CONTAINER_MEMORY_BYTES};
use ostler_model::{ByteString, ContainerOptions, Limits};

/// The defaults of containers, and what requests may ask for. A request may tighten, never loosen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContainerSettings {
    /// The socket of the container engine; none looks for it in the usual places.
    pub socket: Option<PathBuf>,
    /// What a container gets that its request does not ask for. Nothing here is compared with the
    /// lists below.
    pub defaults: ContainerOptions,
    /// The limits of each container.
    pub limits: Limits,
    /// The images that requests may name: a name or id, or the beginning of one, followed by `*`;
    /// empty allows all that are on this machine.
    pub images: Vec<String>,
    /// The networks that requests may name. None allows `bridge` and `none`, and `none` alone where
    /// all requests are held to level high and it reaches not the whole network.
    pub networks: Option<Vec<String>>,
    /// Where the volumes of requests may be.
    pub volumes: Vec<AllowedVolume>,
    /// The capabilities(7) that requests may ask for, without `CAP_`.
    pub capabilities: Vec<String>,
    /// The users that requests may name; empty allows all but root.
    pub users: Vec<String>,
    /// Whether requests may have a writable root file system.
    pub allow_writable_root: bool,
    /// Whether requests may do without `no_new_privs`.
    pub allow_new_privileges: bool,
}

/// A directory or file of the host that volumes may be, or be in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AllowedVolume {
    /// Its absolute path.
    pub path: ByteString,
    /// Whether it may be mounted writable.
    pub write: bool,
}

impl Default for ContainerSettings {
    fn default() -> Self {
        Self {
            socket: None,
            defaults: ContainerOptions::default(),
            limits: Limits {
                memory_bytes: Some(CONTAINER_MEMORY_BYTES),
                cpu_millis: Some(CONTAINER_CPU_MILLIS),
                disk_bytes: Some(CONTAINER_DISK_BYTES),
                ..Limits::default()
            },
            images: Vec::new(),
            networks: None,
            volumes: Vec::new(),
            capabilities: Vec::new(),
            users: Vec::new(),
            allow_writable_root: false,
            allow_new_privileges: false,
        }
    }
}
