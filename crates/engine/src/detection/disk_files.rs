//! The workspace's files on disk.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use rustix::fs::{FileType, Mode, OFlags};

use super::types::WorkspaceFiles;

/// Bytes of the longest file that is looked into.
pub const FILE_BYTES: u64 = 256 * 1024;

/// Reads ordinary files of at most [`FILE_BYTES`]; never waits for a pipe or a device.
#[derive(Debug, Clone, Copy, Default)]
pub struct DiskFiles;

impl WorkspaceFiles for DiskFiles {
    fn read(&self, path: &Path) -> Option<Vec<u8>> {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
        let file = rustix::fs::open(path, flags, Mode::empty()).ok()?;
        let stat = rustix::fs::fstat(&file).ok()?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            return None;
        }
        let mut bytes = Vec::new();
        // One byte more than allowed: a file may grow while it is read.
        File::from(file)
            .take(FILE_BYTES + 1)
            .read_to_end(&mut bytes)
            .ok()?;
        (bytes.len() as u64 <= FILE_BYTES).then_some(bytes)
    }
}
