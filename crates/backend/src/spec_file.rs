//! `spec.json`: the specification of an execution and the shim that runs it. Written by the shim
//! before anything runs; read by recovery and by later engines.

use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::AsFd;
use std::path::Path;

use ostler_model::{ExecutionId, Spec, Timestamp};
use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use crate::launch_plan::PLAN_MAX_BYTES;

/// The file's name in an execution's directory.
pub const SPEC_FILE: &str = "spec.json";
/// The version byte of [`SpecFile`].
pub const SPEC_FILE_VERSION: u8 = 1;
/// Bytes of the largest spec: no more than a plan holds, with room for its envelope.
pub(crate) const SPEC_BYTES: u64 = PLAN_MAX_BYTES + 64 * 1024;

/// The content of `spec.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SpecFile {
    /// The format's version, now [`SPEC_FILE_VERSION`].
    pub version: u8,
    /// The execution.
    pub id: ExecutionId,
    /// The newest attempt that was started, from 1.
    pub attempt: u32,
    /// When the spawn of that attempt began.
    pub created_at: Timestamp,
    /// The shim that runs it, and the boot of the machine it belongs to.
    pub boot: ShimIdentity,
    /// The specification, verbatim.
    pub spec: Spec,
}

/// Identifies a process beyond the reuse of pids: boot id, pid and start time (proc(5)).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShimIdentity {
    /// The boot id: `/proc/sys/kernel/random/boot_id`.
    pub id: String,
    /// The shim's OS pid.
    pub shim_pid: u32,
    /// The shim's start time in clock ticks since boot (field 22 of `/proc/<pid>/stat`).
    pub shim_start: u64,
    /// Whether the shim was a thread of the engine's own process.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub in_process: bool,
}

/// A spec file that cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum SpecFileError {
    /// The file cannot be read.
    #[error("spec.json cannot be read: {0}")]
    Io(#[from] std::io::Error),
    /// Something else is in its place.
    #[error("spec.json is damaged: it is not a regular file")]
    NotAFile,
    /// It is not in the format this version writes.
    #[error("spec.json is damaged: {0}")]
    Damaged(#[from] serde_json::Error),
    /// Its version is newer than this code.
    #[error("spec.json has version {0}; this program reads up to {SPEC_FILE_VERSION}")]
    Version(u8),
}

/// Reads `spec.json` in an execution's directory.
///
/// # Errors
/// When the file is missing, damaged or of a newer version.
pub fn read(dir: &Path) -> Result<SpecFile, SpecFileError> {
    let opened = open_regular(CWD, dir.join(SPEC_FILE))?;
    let stored = opened.ok_or(SpecFileError::NotAFile)?;
    let mut bytes = Vec::new();
    stored.take(SPEC_BYTES).read_to_end(&mut bytes)?;
    let file: SpecFile = serde_json::from_slice(&bytes)?;
    if file.version > SPEC_FILE_VERSION {
        return Err(SpecFileError::Version(file.version));
    }
    Ok(file)
}

/// Opens a file of an execution's directory for reading, at once: what is in the place of one, such as
/// a named pipe, is not waited for. None where it is not a regular file.
///
/// # Errors
/// As openat(2).
pub(crate) fn open_regular(dir: impl AsFd, path: impl AsRef<Path>) -> io::Result<Option<File>> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = match openat(dir, path.as_ref(), flags, Mode::empty()) {
        Ok(file) => File::from(file),
        // A socket, a link that leads to itself.
        Err(Errno::NXIO | Errno::LOOP) => return Ok(None),
        Err(errno) => return Err(errno.into()),
    };
    Ok(file.metadata()?.is_file().then_some(file))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;
    use std::os::unix::net::UnixListener;

    use rustix::fs::{FileType, mknodat};

    use super::*;

    #[test]
    fn what_is_in_the_place_of_the_file_is_not_waited_for() {
        let make: [fn(&Path); 5] = [
            |path| mknodat(CWD, path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).expect("made"),
            |path| drop(UnixListener::bind(path).expect("made")),
            |path| std::fs::create_dir(path).expect("made"),
            |path| symlink("/dev/zero", path).expect("made"),
            |path| symlink(SPEC_FILE, path).expect("made"),
        ];
        for make in make {
            let dir = tempfile::tempdir().expect("a directory");
            make(&dir.path().join(SPEC_FILE));
            let error = read(dir.path()).expect_err("no file");
            assert!(matches!(error, SpecFileError::NotAFile), "{error}");
        }
        let dir = tempfile::tempdir().expect("a directory");
        let error = read(dir.path()).expect_err("no file");
        assert!(matches!(error, SpecFileError::Io(_)), "{error}");
    }
}
