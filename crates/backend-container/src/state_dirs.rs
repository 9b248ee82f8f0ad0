//! The files of containers in the state directory.
//!
//! ```text
//! <state>/container            0700: what is in it is reached by this user and through mounts only
//!   init-<hash>                the init, mounted read-only
//!   <name>/                    mounted at /run/ostler: the init makes its socket in it
//!   uses/<execution>           a symbolic link whose target is the name of the execution's container
//! ```
//!
//! The init runs as the container's user, whose id may be none of ours, and may be known to the image
//! only. Its directory has mode 1777 until the socket is there: everyone may create a file in it, and
//! the parent directory decides who is everyone. Afterwards it has mode 0755, so that no command in
//! the container that runs as another user than this one can fill the host's disk there.
//!
//! The links outlive the daemon: they say which containers are in use when the next one starts. A
//! link is made and read by one call each, and is never half written.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::time::Duration;

use ostler_container_init::protocol::SOCKET_NAME;
use ostler_model::ExecutionId;

use crate::identity::ContainerName;

/// The directory of containers in the state directory.
const CONTAINERS: &str = "container";
/// The directory of links in it.
const USES: &str = "uses";
/// While the init makes its socket.
const MODE_OPEN: u32 = 0o1777;
/// Afterwards.
const MODE_CLOSED: u32 = 0o755;

/// The directories.
#[derive(Debug, Clone)]
pub(crate) struct StateDirs {
    root: PathBuf,
}

impl StateDirs {
    /// Those of this state directory; made where they are missing.
    ///
    /// # Errors
    /// When they cannot be created, or others could replace them.
    pub(crate) fn open(state_dir: &Path) -> io::Result<Self> {
        let root = state_dir.join(CONTAINERS);
        ostler_sys::private_dir::ensure(&root)?;
        ostler_sys::private_dir::ensure(&root.join(USES))?;
        Ok(Self { root })
    }

    /// The directory that holds them all.
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// The directory of a container.
    pub(crate) fn of_container(&self, name: &ContainerName) -> PathBuf {
        self.root.join(name.as_str())
    }

    /// The socket of a container's init.
    pub(crate) fn socket(&self, name: &ContainerName) -> PathBuf {
        self.of_container(name).join(SOCKET_NAME)
    }

    /// The inode of that socket; none where it is not there.
    pub(crate) fn socket_inode(&self, name: &ContainerName) -> Option<u64> {
        let metadata = fs::symlink_metadata(self.socket(name)).ok()?;
        Some(metadata.ino())
    }

    /// Whether the directory of a container has changed within this time.
    pub(crate) fn is_recent(&self, name: &ContainerName, within: Duration) -> bool {
        let changed = fs::metadata(self.of_container(name)).and_then(|it| it.modified());
        // A clock that was set back makes it recent.
        changed.is_ok_and(|changed| changed.elapsed().map_or(true, |since| since < within))
    }

    /// Makes the directory of a container, for its init to make the socket in.
    ///
    /// # Errors
    /// As mkdir(2).
    pub(crate) fn create(&self, name: &ContainerName) -> io::Result<PathBuf> {
        let path = self.of_container(name);
        fs::create_dir(&path)?;
        fs::set_permissions(&path, Permissions::from_mode(MODE_OPEN))?;
        Ok(path)
    }

    /// Lets only this user create further files there.
    ///
    /// # Errors
    /// As chmod(2).
    pub(crate) fn close(&self, name: &ContainerName) -> io::Result<()> {
        let mode = Permissions::from_mode(MODE_CLOSED);
        fs::set_permissions(self.of_container(name), mode)
    }

    /// Removes the directory of a container that is gone.
    pub(crate) fn remove(&self, name: &ContainerName) {
        let path = self.of_container(name);
        let removed = fs::remove_dir_all(&path);
        if let Err(error) = removed.or_else(not_found_is_none) {
            tracing::warn!(path = %path.display(), %error, "the directory of a container stays");
        }
    }

    /// The containers that have a directory.
    pub(crate) fn containers(&self) -> Vec<ContainerName> {
        let entries = fs::read_dir(&self.root).into_iter().flatten().flatten();
        let names = entries.filter_map(|it| ContainerName::parse(it.file_name().to_str()?));
        names.collect()
    }

    /// Records that an execution runs in a container.
    ///
    /// # Errors
    /// As symlink(2).
    pub(crate) fn record_use(&self, id: ExecutionId, name: &ContainerName) -> io::Result<()> {
        self.forget_use(id)?;
        symlink(name.as_str(), self.use_link(id))
    }

    /// The container that an execution runs in, by that record.
    pub(crate) fn container_of(&self, id: ExecutionId) -> Option<ContainerName> {
        let name = fs::read_link(self.use_link(id)).ok()?;
        ContainerName::parse(name.to_str()?)
    }

    /// Removes that record.
    ///
    /// # Errors
    /// As unlink(2).
    pub(crate) fn forget_use(&self, id: ExecutionId) -> io::Result<()> {
        fs::remove_file(self.use_link(id)).or_else(not_found_is_none)
    }

    /// All executions that are recorded to run in a container.
    pub(crate) fn uses(&self) -> Vec<(ExecutionId, ContainerName)> {
        let entries = fs::read_dir(self.root.join(USES));
        let entries = entries.into_iter().flatten().flatten();
        let ids = entries.filter_map(|it| it.file_name().to_str()?.parse().ok());
        ids.filter_map(|id| Some((id, self.container_of(id)?)))
            .collect()
    }

    fn use_link(&self, id: ExecutionId) -> PathBuf {
        self.root.join(USES).join(id.to_string())
    }
}

fn not_found_is_none(error: io::Error) -> io::Result<()> {
    if error.kind() == io::ErrorKind::NotFound {
        Ok(())
    } else {
        Err(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uses_are_recorded_replaced_and_forgotten() {
        let state = tempfile::tempdir().expect("a directory");
        let dirs = StateDirs::open(state.path()).expect("made");
        let id = ExecutionId::mint();
        let names = [(); 2].map(|()| ContainerName::unique().expect("random"));
        for name in &names {
            dirs.record_use(id, name).expect("recorded");
        }
        assert_eq!(dirs.uses(), [(id, names[1].clone())]);
        dirs.forget_use(id).expect("forgotten");
        dirs.forget_use(id).expect("no error");
        assert_eq!(dirs.container_of(id), None);
    }

    #[test]
    fn the_directory_of_a_container_is_open_until_it_is_closed() {
        let state = tempfile::tempdir().expect("a directory");
        let dirs = StateDirs::open(state.path()).expect("made");
        let name = ContainerName::unique().expect("random");
        let path = dirs.create(&name).expect("made");
        let mode = || fs::metadata(&path).expect("there").permissions().mode() & 0o7777;
        assert_eq!(mode(), MODE_OPEN);
        dirs.close(&name).expect("closed");
        assert_eq!(
            (mode(), dirs.containers()),
            (MODE_CLOSED, vec![name.clone()])
        );
        dirs.remove(&name);
        dirs.remove(&name);
        assert_eq!(dirs.containers(), []);
    }
}
