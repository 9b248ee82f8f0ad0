//! Reading files at paths that a request names: whoever may write there decides what is found.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

use rustix::fs::{Mode, OFlags};

/// Opens a regular file for reading, at once: a named pipe does not wait for a writer, nor a file
/// with a write lease (`F_SETLEASE`, fcntl(2)) for its holder.
///
/// # Errors
/// As open(2); `EWOULDBLOCK` for a lease; and where it is no regular file.
pub fn open(path: &Path) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = File::from(rustix::fs::open(path, flags, Mode::empty())?);
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::Error::other("it is no regular file")),
    }
}

/// Reads a regular file: at most `limit` bytes and one more, by which a longer one is known.
///
/// # Errors
/// As [`open`], and as read(2).
pub fn read(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open(path)?
        .take(limit.saturating_add(1))
        .read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use rustix::fs::{CWD, FileType, mknodat};

    use super::*;

    #[test]
    fn only_regular_files_are_read_and_nothing_blocks() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        std::fs::write(&path, b"12345").unwrap();
        assert_eq!(read(&path, 5).unwrap(), b"12345");
        assert_eq!(read(&path, 3).unwrap(), b"1234");
        let pipe = directory.path().join("pipe");
        mknodat(CWD, &pipe, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        for other in [pipe.as_path(), directory.path(), Path::new("/dev/null")] {
            assert!(open(other).is_err(), "{}", other.display());
        }
    }
}
