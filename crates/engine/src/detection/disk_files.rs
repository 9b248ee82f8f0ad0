//! [`WorkspaceFiles`] on disk.

use std::path::Path;

use ostler_detect::WorkspaceFiles;
use ostler_sys::regular_file;

/// The size of the largest file that is read, in bytes.
pub const FILE_BYTES: u64 = 256 * 1024;

/// Reads ordinary files of at most [`FILE_BYTES`]; never waits for a pipe or a device.
#[derive(Debug, Clone, Copy, Default)]
pub struct DiskFiles;

impl WorkspaceFiles for DiskFiles {
    fn read(&self, path: &Path) -> Option<Vec<u8>> {
        let bytes = regular_file::read(path, FILE_BYTES).ok()?;
        (bytes.len() as u64 <= FILE_BYTES).then_some(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_on_disk_are_read_within_bounds() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("package.json");
        let limit = usize::try_from(FILE_BYTES).expect("it fits");
        std::fs::write(&path, vec![b'x'; limit]).expect("written");
        assert_eq!(DiskFiles.read(&path).map(|it| it.len()), Some(limit));
        std::fs::write(&path, vec![b'x'; limit + 1]).expect("written");
        assert_eq!(DiskFiles.read(&path), None);
        assert_eq!(DiskFiles.read(directory.path()), None);
        assert_eq!(DiskFiles.read(&directory.path().join("none")), None);
        let fifo = directory.path().join("fifo");
        let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
        rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, mode, 0)
            .expect("made");
        assert_eq!(DiskFiles.read(&fifo), None);
    }
}
