//! Which directories of the host a container must not see.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use ostler_backend::ContainerError;
use ostler_container_init::protocol::SOCKET_DIR;
use ostler_model::ContainerSpec;
use ostler_model::container::CONTAINER_WORKSPACE;
use serde::Serialize;

use crate::container_config::INIT_TARGET;

/// Where our own things are in a container: no volume may hide them or lie in them.
const RESERVED: [&str; 2] = [SOCKET_DIR, INIT_TARGET];

/// What the paths of a workspace and of volumes lead to, as device and inode: a container has
/// mounted these, whatever has their names later. Their numbers are not used again while it runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct MountedInodes(Vec<Option<(u64, u64)>>);

impl MountedInodes {
    /// Those of a specification now. Reads the file system.
    pub(crate) fn of(spec: &ContainerSpec) -> Self {
        let inode = |path: &Path| {
            let metadata = path.metadata().ok()?;
            Some((metadata.dev(), metadata.ino()))
        };
        Self(mounted(spec).map(inode).collect())
    }
}

/// Refuses a workspace or volume that contains the engine's socket, which gives whoever reaches it
/// the whole machine. Reads the file system: links are followed, as the engine follows them.
///
/// # Errors
/// With the directory.
pub(crate) fn check(spec: &ContainerSpec, socket: &Path) -> Result<(), ContainerError> {
    let sockets = [Some(socket.to_owned()), socket.canonicalize().ok()];
    let sockets: Vec<PathBuf> = sockets.into_iter().flatten().collect();
    for path in mounted(spec) {
        let resolved = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let contains = |socket: &PathBuf| socket.starts_with(path) || socket.starts_with(&resolved);
        if sockets.iter().any(contains) {
            return Err(ContainerError::Refused(format!(
                "{} contains the socket of the engine, {}",
                path.display(),
                socket.display()
            )));
        }
    }
    check_targets(spec)
}

/// The directories of the host that it mounts.
fn mounted(spec: &ContainerSpec) -> impl Iterator<Item = &Path> {
    let volumes = spec.volumes.iter().map(|volume| volume.host.as_path());
    std::iter::once(spec.workspace.as_path()).chain(volumes)
}

fn check_targets(spec: &ContainerSpec) -> Result<(), ContainerError> {
    for volume in &spec.volumes {
        let target = volume.container.as_path();
        let reserved = RESERVED.iter().map(Path::new);
        let mut reserved = reserved.chain([Path::new(CONTAINER_WORKSPACE)]);
        let hides = reserved.clone().any(|it| it.starts_with(target));
        let inside =
            reserved.any(|it| target.starts_with(it) && it != Path::new(CONTAINER_WORKSPACE));
        if !target.is_absolute() || hides || inside {
            return Err(ContainerError::Refused(format!(
                "nothing can be mounted at {} of a container",
                target.display()
            )));
        }
    }
    Ok(())
}

/// The path in the container of what of the state directory a workspace or volume would show: the
/// control sockets of the daemon are in it. Something else is mounted over each.
pub(crate) fn shown_state(spec: &ContainerSpec, state_dir: &Path) -> Vec<PathBuf> {
    let state = state_dir
        .canonicalize()
        .unwrap_or_else(|_| state_dir.to_owned());
    let workspace = (spec.workspace.as_path(), Path::new(CONTAINER_WORKSPACE));
    let volumes = spec.volumes.iter();
    let volumes = volumes.map(|it| (it.host.as_path(), it.container.as_path()));
    let mounts = std::iter::once(workspace).chain(volumes);
    let shown = mounts.filter_map(|(host, target)| {
        let host = host.canonicalize().unwrap_or_else(|_| host.to_owned());
        Some(target.join(state.strip_prefix(host).ok()?))
    });
    shown.collect()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use ostler_model::{ByteString, VolumeMount};

    use super::*;
    use crate::fixtures;

    fn bytes(path: &Path) -> ByteString {
        ByteString::from(path.to_str().expect("text"))
    }

    #[test]
    fn the_socket_of_the_engine_is_never_mounted_not_even_by_a_link() {
        let root = tempfile::tempdir().expect("a directory");
        let run = root.path().join("run");
        std::fs::create_dir(&run).expect("made");
        let link = root.path().join("link");
        symlink(&run, &link).expect("linked");
        let socket = run.join("docker.sock");
        std::fs::write(&socket, "").expect("made");
        let mut spec = fixtures::launch().spec;
        assert_eq!(check(&spec, &socket), Ok(()));
        for path in [root.path(), run.as_path(), link.as_path(), socket.as_path()] {
            spec.workspace = bytes(path);
            let refused = check(&spec, &socket).expect_err("refused");
            assert!(matches!(refused, ContainerError::Refused(_)), "{refused}");
        }
        spec.workspace = ByteString::from("/srv/project");
        spec.volumes = vec![VolumeMount {
            host: bytes(&link),
            container: ByteString::from("/mnt"),
            write: false,
        }];
        assert!(check(&spec, &socket).is_err());
    }

    #[test]
    fn our_own_mounts_are_not_hidden() {
        let mut spec = fixtures::launch().spec;
        for (target, allowed) in [
            ("/data", true),
            ("/workspace/cache", true),
            ("/workspace", false),
            ("/run", false),
            ("/", false),
            ("/run/ostler/x", false),
            ("data", false),
        ] {
            spec.volumes = vec![VolumeMount {
                host: ByteString::from("/srv/data"),
                container: ByteString::from(target),
                write: true,
            }];
            assert_eq!(check_targets(&spec).is_ok(), allowed, "{target}");
        }
    }

    #[test]
    fn the_state_directory_is_found_in_the_workspace() {
        let root = tempfile::tempdir().expect("a directory");
        let state = root.path().join("a/state");
        std::fs::create_dir_all(&state).expect("made");
        let mut spec = fixtures::launch().spec;
        assert_eq!(shown_state(&spec, &state), Vec::<PathBuf>::new());
        spec.workspace = bytes(root.path());
        assert_eq!(
            shown_state(&spec, &state),
            [Path::new("/workspace/a/state")]
        );
    }
}
