//! What of the host a container may have mounted. Reads the file system to resolve links.

use std::os::unix::fs::FileTypeExt as _;
use std::path::{Component, Path, PathBuf};

use ostler_model::container::{CONTAINER_SECRETS, CONTAINER_WORKSPACE};
use ostler_model::{ByteString, VolumeMount};

use super::environment;
use super::sandbox::{PathContext, canonical_or_self, canonical_path};
use super::sandbox_bounds::invalid;
use crate::error::Error;
use crate::request::StartRequest;
use crate::settings::{AllowedVolume, Settings};

/// The trees of the host that are no data: the kernel's, and the sockets of services.
const HOST_TREES: [&str; 4] = ["/dev", "/proc", "/run", "/sys"];
/// Sockets of container engines. Whoever reaches one is root on this machine.
const ENGINE_SOCKETS: [&str; 5] = [
    "/run/containerd/containerd.sock",
    "/run/crio/crio.sock",
    "/run/docker.sock",
    "/run/podman/podman.sock",
    "/var/run/docker.sock",
];
/// Variables that name the socket of a container engine, as `unix://` and its path.
const SOCKET_VARIABLES: [&[u8]; 2] = [b"DOCKER_HOST", b"CONTAINER_HOST"];
/// The directories of a container that are not for volumes, with what is below them.
const INNER_TREES: [&str; 5] = ["/dev", "/proc", "/run/ostler", CONTAINER_SECRETS, "/sys"];
/// Directories of a container that have something else mounted.
const INNER_MOUNTS: [&str; 2] = ["/tmp", CONTAINER_WORKSPACE];

/// The paths that decide what may be mounted, without symbolic links.
pub(super) struct HostPaths {
    /// The engine's own directories and those that the settings hide.
    hidden: Vec<PathBuf>,
    /// Sockets of container engines.
    sockets: Vec<PathBuf>,
    /// Where volumes of requests may be.
    allowed: Vec<AllowedVolume>,
}

impl HostPaths {
    pub(super) fn of(settings: &Settings) -> Self {
        let own = [&settings.state_dir, &settings.contexts.directory];
        let own = own.into_iter().map(PathBuf::as_path);
        let hide = settings.isolation.hide.iter().map(ByteString::as_path);
        let named = SOCKET_VARIABLES.iter().filter_map(|name| {
            let value = environment::value(&settings.base_env, name)?;
            let path = value.as_bytes().strip_prefix(b"unix://")?;
            Some(ByteString::from(path).as_path().to_owned())
        });
        let usual = ENGINE_SOCKETS.iter().map(PathBuf::from);
        let sockets = settings.container.socket.iter().cloned();
        let allowed = settings.container.volumes.iter();
        Self {
            hidden: own.chain(hide).map(canonical_or_self).collect(),
            sockets: sockets
                .chain(named)
                .chain(usual)
                .map(|it| canonical_or_self(&it))
                .collect(),
            allowed: allowed
                .map(|it| AllowedVolume {
                    path: ByteString::from(canonical_or_self(it.path.as_path())),
                    write: it.write,
                })
                .collect(),
        }
    }

    /// The host's directory at `/workspace`: the requested one, else the working directory.
    pub(super) fn workspace(
        &self,
        settings: &Settings,
        request: &StartRequest,
        requested: Option<&ByteString>,
    ) -> Result<ByteString, Error> {
        let client_env = if request.base_env.is_empty() {
            &settings.base_env
        } else {
            &request.base_env
        };
        let context = PathContext::of_container(settings, request, client_env);
        let given = requested.unwrap_or(&request.cwd);
        self.check_contents("workspace", given, &canonical_path("workspace", given)?)?;
        let Some(path) = context.workspace(&request.cwd, requested)? else {
            let problem = "it is shared by everything on this machine; name a directory below it";
            return Err(invalid("workspace", &given.to_string(), problem));
        };
        Ok(ByteString::from(path))
    }

    /// The volumes of the settings.
    pub(super) fn defaults(&self, volumes: &[VolumeMount]) -> Result<Vec<VolumeMount>, Error> {
        volumes.iter().map(|volume| self.resolve(volume)).collect()
    }

    /// The volumes of a request, which must be within those that the settings allow.
    pub(super) fn requested(&self, volumes: &[VolumeMount]) -> Result<Vec<VolumeMount>, Error> {
        volumes
            .iter()
            .map(|volume| {
                let resolved = self.resolve(volume)?;
                self.check_allowed(volume, &resolved)?;
                Ok(resolved)
            })
            .collect()
    }

    fn resolve(&self, volume: &VolumeMount) -> Result<VolumeMount, Error> {
        let path = canonical_path("volume", &volume.host)?;
        let refuse = |problem: &str| Err(invalid("volume", &volume.host.to_string(), problem));
        let in_tree = HOST_TREES.iter().find(|tree| path.starts_with(tree));
        if let Some(tree) = in_tree {
            return refuse(&format!("nothing of {tree} is mounted in a container"));
        }
        if path == Path::new("/") {
            return refuse("the host's root is not mounted in a container");
        }
        let is_socket = path.metadata().is_ok_and(|it| it.file_type().is_socket());
        if is_socket || self.sockets.contains(&path) {
            return refuse("a socket of the host is not mounted in a container");
        }
        if self.hidden.iter().any(|dir| path.starts_with(dir)) {
            return refuse("it belongs to Ostler, or the settings hide it");
        }
        self.check_contents("volume", &volume.host, &path)?;
        Ok(VolumeMount {
            host: ByteString::from(path),
            container: check_inner_path(&volume.container)?,
            write: volume.write,
        })
    }

    /// Nothing in a mounted directory can be hidden from the container.
    fn check_contents(
        &self,
        what: &'static str,
        given: &ByteString,
        path: &Path,
    ) -> Result<(), Error> {
        let contained = |list: &[PathBuf]| list.iter().any(|it| it.starts_with(path));
        let problem = if contained(&self.sockets) {
            "it contains the socket of a container engine"
        } else if contained(&self.hidden) {
            "it contains what belongs to Ostler, or what the settings hide"
        } else {
            return Ok(());
        };
        Err(invalid(what, &given.to_string(), problem))
    }

    fn check_allowed(&self, given: &VolumeMount, resolved: &VolumeMount) -> Result<(), Error> {
        let path = resolved.host.as_path();
        let holds = |it: &&AllowedVolume| path.starts_with(it.path.as_path());
        let found: Vec<&AllowedVolume> = self.allowed.iter().filter(holds).collect();
        let problem = if found.is_empty() {
            "it is in none of the directories that the setting container.volumes permits"
        } else if given.write && !found.iter().any(|it| it.write) {
            "the setting container.volumes permits it read-only"
        } else {
            return Ok(());
        };
        Err(invalid("volume", &given.host.to_string(), problem))
    }

    /// Whether each path of the container has one volume at most.
    pub(super) fn check_targets(&self, volumes: &[VolumeMount]) -> Result<(), Error> {
        for (index, volume) in volumes.iter().enumerate() {
            let others = volumes.iter().skip(index + 1);
            if others.clone().any(|it| it.container == volume.container) {
                let problem = "two volumes have this path in the container";
                return Err(invalid("volume", &volume.container.to_string(), problem));
            }
        }
        Ok(())
    }
}

/// A path of a container that something can be mounted at, in its one form.
fn check_inner_path(given: &ByteString) -> Result<ByteString, Error> {
    let refuse = |problem: &str| {
        Err(invalid(
            "path in the container",
            &given.to_string(),
            problem,
        ))
    };
    let path = given.as_path();
    if given.has_nul() {
        return refuse("it contains a NUL byte");
    }
    if !path.is_absolute() || path.components().any(|it| it == Component::ParentDir) {
        return refuse("it is not absolute, or has '..'");
    }
    let path: PathBuf = path.components().collect();
    let is_taken = |tree: &&&str| path.starts_with(tree) || Path::new(tree).starts_with(&path);
    let taken = INNER_TREES.iter().find(is_taken);
    let mounted = INNER_MOUNTS.iter().find(|it| path == Path::new(it));
    if let Some(tree) = taken.or(mounted) {
        return refuse(&format!("{tree} has something else there"));
    }
    Ok(ByteString::from(path))
}
