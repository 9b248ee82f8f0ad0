//! Reading files that somebody else may have put something else in the place of: whoever may write
//! there decides what is found.

use std::error::Error;
use std::fmt;
use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::OwnedFd;
use std::path::{Component, Path};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, fstat, lstat, openat, stat, statat};
use rustix::io::Errno;

/// What is at a path where a regular file is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WrongFileType(&'static str);

impl WrongFileType {
    /// For the type of a file; none for a regular one.
    #[must_use]
    pub fn of(kind: FileType) -> Option<Self> {
        let name = match kind {
            FileType::RegularFile => return None,
            FileType::Directory => "a directory",
            FileType::Fifo => "a named pipe",
            FileType::Socket => "a socket",
            FileType::CharacterDevice | FileType::BlockDevice => "a device",
            FileType::Symlink => "a link that leads nowhere",
            _ => "something else",
        };
        Some(Self(name))
    }

    /// What is at this path, where it is there and links from it lead to no regular file.
    #[must_use]
    pub fn at(path: &Path) -> Option<Self> {
        let found = stat(path).or_else(|_| lstat(path)).ok()?;
        Self::of(FileType::from_raw_mode(found.st_mode))
    }
}

impl fmt::Display for WrongFileType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, not a regular file", self.0)
    }
}

impl Error for WrongFileType {}

/// Whether this error of [`open`] or open(2) is about the type of the file, or of one on the way.
#[must_use]
pub fn is_wrong_type(error: &io::Error) -> bool {
    let known = [Errno::ISDIR, Errno::NOTDIR, Errno::LOOP, Errno::NXIO];
    error.get_ref().is_some_and(|it| it.is::<WrongFileType>())
        || Errno::from_io_error(error).is_some_and(|it| known.contains(&it))
}

/// Opens a regular file for reading, at once: a named pipe does not wait for a writer, nor a file
/// with a write lease (`F_SETLEASE`, fcntl(2)) for its holder.
///
/// # Errors
/// As open(2); `EWOULDBLOCK` for a lease; and [`WrongFileType`] where it is no regular file.
pub fn open(path: &Path) -> io::Result<File> {
    check_type(File::from(rustix::fs::open(
        path,
        READ_FLAGS,
        Mode::empty(),
    )?))
}

/// Without waiting for anybody, nor a controlling terminal.
const READ_FLAGS: OFlags = OFlags::RDONLY
    .union(OFlags::CLOEXEC)
    .union(OFlags::NONBLOCK)
    .union(OFlags::NOCTTY);

fn check_type(file: File) -> io::Result<File> {
    match WrongFileType::of(FileType::from_raw_mode(fstat(&file)?.st_mode)) {
        None => Ok(file),
        Some(wrong) => Err(io::Error::other(wrong)),
    }
}

/// Opens a regular file below a directory as [`open`] does, and follows no symbolic link from there
/// on: who may write below it decides what is found, and is not to choose among all files that this
/// process may read.
///
/// # Errors
/// As [`open`]; where a component of `path` is a symbolic link, or is not below the directory.
pub fn open_beneath(directory: &Path, path: &Path) -> io::Result<File> {
    let dir_flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let mut parent = rustix::fs::open(directory, dir_flags, Mode::empty())?;
    let mut names = path.components().peekable();
    while let Some(name) = names.next() {
        let Component::Normal(name) = name else {
            return Err(io::ErrorKind::InvalidInput.into());
        };
        let is_last = names.peek().is_none();
        let flags = if is_last { READ_FLAGS } else { dir_flags };
        let opened = openat(&parent, name, flags | OFlags::NOFOLLOW, Mode::empty());
        parent = match opened {
            Ok(opened) => opened,
            Err(_) if is_link(&parent, Path::new(name)) => {
                return Err(io::Error::other(format!(
                    "'{}' is a symbolic link, which is not followed",
                    name.display()
                )));
            }
            Err(error) => return Err(error.into()),
        };
    }
    check_type(File::from(parent))
}

fn is_link(directory: &OwnedFd, name: &Path) -> bool {
    let found = statat(directory, name, AtFlags::SYMLINK_NOFOLLOW);
    found.is_ok_and(|found| FileType::from_raw_mode(found.st_mode) == FileType::Symlink)
}

/// Reads a regular file of at most `limit` bytes as text.
///
/// # Errors
/// As [`open`], and as read(2); where it is larger, or not UTF-8.
pub fn read_text(path: &Path, limit: u64) -> io::Result<String> {
    text_of(open(path)?, limit)
}

/// Reads an open file of at most `limit` bytes as text.
///
/// # Errors
/// As read(2); where it is larger, or not UTF-8.
pub fn text_of(file: File, limit: u64) -> io::Result<String> {
    let bytes = read_limited(file, limit)?;
    if bytes.len() as u64 > limit {
        return Err(io::Error::other(format!("it has more than {limit} bytes")));
    }
    String::from_utf8(bytes).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}

/// Reads a regular file: at most `limit` bytes and one more, by which a longer one is known.
///
/// # Errors
/// As [`open`], and as read(2).
pub fn read(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    read_limited(open(path)?, limit)
}

fn read_limited(file: File, limit: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.take(limit.saturating_add(1)).read_to_end(&mut bytes)?;
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
            let error = open(other).unwrap_err();
            assert!(is_wrong_type(&error), "{error}");
            let what = WrongFileType::at(other).unwrap();
            assert_eq!(error.to_string(), what.to_string());
        }
        assert_eq!(WrongFileType::at(&path), None);
        let circle = directory.path().join("circle");
        std::os::unix::fs::symlink(&circle, &circle).unwrap();
        assert!(is_wrong_type(&open(&circle).unwrap_err()));
        let what = WrongFileType::at(&circle).unwrap().to_string();
        assert_eq!(what, "a link that leads nowhere, not a regular file");
        assert_eq!(WrongFileType::at(&directory.path().join("none")), None);
        assert_eq!(read_text(&path, 5).unwrap(), "12345");
        for (text, problem) in [("123456", "more than 5 bytes"), ("\u{e9}", "")] {
            std::fs::write(&path, text.chars().map(|it| it as u8).collect::<Vec<_>>()).unwrap();
            let error = read_text(&path, 5).unwrap_err();
            assert!(error.to_string().contains(problem), "{error}");
        }
    }

    #[test]
    fn no_link_below_a_directory_is_followed() {
        use std::os::unix::fs::symlink;
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        std::fs::create_dir(at("real")).unwrap();
        std::fs::write(at("real/file"), b"text").unwrap();
        symlink("real", at("linked")).unwrap();
        symlink("file", at("real/other")).unwrap();
        symlink(directory.path(), at("above")).unwrap();
        let open = |below: &str, path: &str| open_beneath(&at(below), Path::new(path));
        for (below, path) in [
            ("", "real/file"),
            ("above", "real/file"),
            ("linked", "file"),
        ] {
            assert_eq!(text_of(open(below, path).unwrap(), 10).unwrap(), "text");
        }
        for (path, problem) in [
            ("linked/file", "'linked' is a symbolic link"),
            ("real/other", "'other' is a symbolic link"),
            ("real", "a directory, not a regular file"),
            ("../x", "invalid"),
            ("none/file", "No such file"),
        ] {
            let error = open("", path).unwrap_err().to_string();
            assert!(error.contains(problem), "{path}: {error}");
        }
    }
}
