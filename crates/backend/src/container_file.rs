//! `container.json`: the container of an execution's newest attempt, and the process there from which
//! its processes descend. Written by the shim once the command runs; read by whoever inspects it.

use std::os::fd::BorrowedFd;

use rustix::fs::renameat;
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use crate::ContainerAttachment;
use crate::execution_dir::{temporary_name, write_file};
use crate::stored_files::{ReadFileError, read_json};

/// The file's name in an execution's directory.
pub const CONTAINER_FILE: &str = "container.json";
/// The version byte of [`ContainerFile`].
const CONTAINER_FILE_VERSION: u8 = 1;
/// Bytes of the largest file.
const CONTAINER_FILE_BYTES: u64 = 4096;

/// The content of `container.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContainerFile {
    /// The format's version.
    version: u8,
    /// The attempt, from 1.
    pub attempt: u32,
    /// The container, and how it is reached.
    #[serde(flatten)]
    pub attachment: ContainerAttachment,
    /// The OS pid on this machine of the process from which those of the attempt descend; 0 where
    /// this machine does not show it.
    pub runner_pid: i32,
    /// Its start time in clock ticks since boot (field 22 of `/proc/<pid>/stat`).
    pub runner_start: u64,
}

impl ContainerFile {
    /// The content for an attempt.
    #[must_use]
    pub const fn new(
        attempt: u32,
        attachment: ContainerAttachment,
        runner_pid: i32,
        runner_start: u64,
    ) -> Self {
        Self {
            version: CONTAINER_FILE_VERSION,
            attempt,
            attachment,
            runner_pid,
            runner_start,
        }
    }

    /// Writes it whole or not at all.
    ///
    /// # Errors
    /// As openat(2), write(2) and renameat(2).
    pub fn write(&self, dir: BorrowedFd<'_>) -> Result<(), Errno> {
        let bytes = serde_json::to_vec(self).map_err(|_| Errno::INVAL)?;
        let temporary = temporary_name(CONTAINER_FILE);
        write_file(dir, &temporary, &bytes)?;
        renameat(dir, temporary, dir, CONTAINER_FILE)
    }

    /// Reads it; none where no attempt ran in a container.
    ///
    /// # Errors
    /// When it cannot be opened, is damaged or of a newer version.
    pub fn read(dir: BorrowedFd<'_>) -> Result<Option<Self>, ReadFileError> {
        let found = read_json::<Self>(dir, CONTAINER_FILE, CONTAINER_FILE_BYTES)?;
        match found {
            Some(file) if file.version > CONTAINER_FILE_VERSION => Err(ReadFileError::Damaged),
            found => Ok(found),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    use super::*;

    #[test]
    fn what_is_written_is_read_and_nothing_is_no_error() {
        let root = tempfile::TempDir::new().expect("a directory");
        let dir = std::fs::File::open(root.path()).expect("there");
        assert_eq!(ContainerFile::read(dir.as_fd()), Ok(None));
        let file = ContainerFile::new(
            2,
            ContainerAttachment {
                container: "f00".to_owned(),
                socket: "/run/init.sock".into(),
                init_pid: 7,
            },
            12,
            345,
        );
        file.write(dir.as_fd()).expect("written");
        assert_eq!(ContainerFile::read(dir.as_fd()), Ok(Some(file)));
        let path = root.path().join(CONTAINER_FILE);
        for content in [
            "",
            "{}",
            r#"{"version":2,"attempt":1,"container":"f","socket":"s","init_pid":1,"runner_pid":1,"runner_start":1}"#,
        ] {
            std::fs::write(&path, content).expect("written");
            assert_eq!(
                ContainerFile::read(dir.as_fd()),
                Err(ReadFileError::Damaged)
            );
        }
    }
}
