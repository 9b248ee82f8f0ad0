//! Unix sockets addressed through a directory descriptor, so that long paths work: an address holds
//! 108 bytes (unix(7)), a path may have 4096.

use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use ostler_sys::peer;
use rustix::fs::{Mode, OFlags};

const SOCKET_MODE: u32 = 0o600;

/// An open directory, through which sockets in it are addressed.
#[derive(Debug)]
struct SocketDir(File);

impl SocketDir {
    fn of(socket: &Path) -> io::Result<Self> {
        let parent = socket.parent().unwrap_or(Path::new("/"));
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let fd = rustix::fs::open(parent, flags, Mode::empty())?;
        Ok(Self(File::from(fd)))
    }

    /// A short path for `socket`, valid while this is open.
    fn short_path(&self, socket: &Path) -> io::Result<PathBuf> {
        let name = socket
            .file_name()
            .ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))?;
        Ok(Path::new("/proc/self/fd")
            .join(self.0.as_raw_fd().to_string())
            .join(name))
    }
}

/// Connects to the socket at `path`, where this user listens: whoever else does, in a directory that
/// was there first, must not get the environment and the secrets that requests carry.
///
/// # Errors
/// Those of connect(2): `NotFound` and `ConnectionRefused` mean that no process listens.
/// `PermissionDenied` where another user does.
pub(crate) fn connect(path: &Path) -> io::Result<UnixStream> {
    let directory = SocketDir::of(path)?;
    let stream = UnixStream::connect(directory.short_path(path)?)?;
    check_listener(peer::uid(&stream)?, rustix::process::geteuid().as_raw())?;
    Ok(stream)
}

fn check_listener(listener: u32, own: u32) -> io::Result<()> {
    if listener == own {
        return Ok(());
    }
    let message = format!(
        "user {listener} listens there, and this is user {own}, so nothing was sent; name another \
         --runtime-dir, or run this as that user"
    );
    Err(io::Error::new(io::ErrorKind::PermissionDenied, message))
}

/// Binds and listens at `path` for this user only, and replaces the socket of an earlier daemon.
/// The caller holds the lock.
///
/// # Errors
/// Those of bind(2).
pub(crate) fn bind(path: &Path) -> io::Result<UnixListener> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        Ok(()) | Err(_) => {}
    }
    let directory = SocketDir::of(path)?;
    let listener = UnixListener::bind(directory.short_path(path)?)?;
    fs::set_permissions(path, fs::Permissions::from_mode(SOCKET_MODE))?;
    Ok(listener)
}

/// Whether a failed connect means that no process listens.
pub(crate) fn is_not_listening(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_other_user_is_talked_to() {
        assert!(check_listener(7, 7).is_ok());
        for (listener, own) in [(7, 8), (7, 0), (0, 7)] {
            let error = check_listener(listener, own).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::PermissionDenied);
            assert!(!is_not_listening(&error));
        }
    }

    #[test]
    fn paths_longer_than_an_address_work() {
        let root = tempfile::tempdir().unwrap();
        let deep = root.path().join("d".repeat(120)).join("e".repeat(120));
        fs::create_dir_all(&deep).unwrap();
        let path = deep.join("s.sock");
        assert!(is_not_listening(&connect(&path).unwrap_err()));
        let first = bind(&path).unwrap();
        connect(&path).unwrap();
        drop(first);
        assert!(is_not_listening(&connect(&path).unwrap_err()));
        let _second = bind(&path).unwrap();
        connect(&path).unwrap();
    }
}
