//! Finds which daemon serves a state directory, and which state directory a runtime directory
//! belongs to, by their lock files. Nothing is locked for that: a daemon may be about to start.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use ostler_model::ByteString;
use ostler_sys::regular_file;

use super::run::DAEMON_NAME;
use crate::error::CommandError;
use crate::paths::Dirs;
use crate::unix_socket;

/// The file locks of all processes, see proc(5).
const PROC_LOCKS: &str = "/proc/locks";
/// At most so many bytes of a lock file are read: a pid and a path.
const LOCK_BYTES: u64 = 8 * 1024;

/// Refuses sockets of a daemon that serves another state directory.
///
/// # Errors
/// When that is so; the error names both directories.
pub(crate) fn check_state_dir(dirs: &Dirs) -> Result<(), CommandError> {
    let Some(daemon_state) = recorded_state_dir(&dirs.lock()) else {
        return Ok(());
    };
    if is_same_dir(&daemon_state, &dirs.state) {
        return Ok(());
    }
    let Some(pid) = lock_holder(&dirs.lock()) else {
        return Ok(());
    };
    Err(CommandError::daemon(mismatch_message(dirs, &daemon_state, pid)).with_hint(
        "name that state directory, or another --runtime-dir; without one, each state directory \
         but the usual has a runtime directory of its own",
    ))
}

/// The error if the daemon that responded serves another state directory.
pub(crate) fn state_dir_mismatch(dirs: &Dirs, daemon_state: &ByteString) -> Option<String> {
    let theirs = PathBuf::from(OsStr::from_bytes(daemon_state.as_bytes()));
    if is_same_dir(&theirs, &dirs.state) {
        return None;
    }
    let pid = lock_holder(&dirs.lock()).unwrap_or(0);
    Some(mismatch_message(dirs, &theirs, pid))
}

/// The error if a running daemon lost its runtime directory: it holds the lock of the state
/// directory, and no process holds that of the runtime directory. An ending daemon holds both.
/// Returns its OS pid and the message.
pub(crate) fn unreachable_daemon(dirs: &Dirs) -> Option<(u32, String)> {
    let pid = lock_holder(&dirs.state_lock())?;
    if lock_holder(&dirs.lock()).is_some() {
        return None;
    }
    Some((pid, unreachable_message(dirs)?))
}

/// The message about a daemon that accepts connections and does not answer.
pub(crate) fn unresponsive_message(pid: u32) -> String {
    format!(
        "the daemon (process {pid}) does not answer; `kill -9 {pid}` ends it, and what runs goes on"
    )
}

/// Why a daemon cannot be reached: none where there is no daemon and nothing in its place.
pub(crate) fn unreachable_reason(dirs: &Dirs) -> Option<String> {
    let socket = dirs.daemon_socket();
    let connected = unix_socket::connect(&socket);
    match connected
        .err()
        .filter(|it| !unix_socket::is_not_listening(it))
    {
        Some(error) => Some(format!("{} cannot be reached: {error}", socket.display())),
        None => unreachable_message(dirs),
    }
}

/// The error if no process listens on the sockets and the state directory is locked: by a daemon, or
/// by a client that runs the engine itself.
fn unreachable_message(dirs: &Dirs) -> Option<String> {
    let pid = lock_holder(&dirs.state_lock())?;
    if is_client(pid) {
        return Some(format!(
            "process {pid} runs the engine itself, as with --no-daemon, and has {} to itself until \
             it ends; try again then, or name another --state-dir",
            dirs.state.display()
        ));
    }
    if lock_holder(&dirs.lock()) == Some(pid) {
        return Some(format!(
            "the daemon (process {pid}) is starting or ending; try again"
        ));
    }
    Some(format!(
        "process {pid} serves {}, but nobody listens at {}: it listens in another runtime \
         directory, or its own was removed and cannot be made again; `kill {pid}` ends it, and \
         what runs goes on",
        dirs.state.display(),
        dirs.daemon_socket().display()
    ))
}

/// The error about a daemon that accepts connections and does not answer.
pub(crate) fn unresponsive_daemon_message(dirs: &Dirs) -> String {
    match lock_holder(&dirs.lock()) {
        Some(pid) => unresponsive_message(pid),
        None => "the daemon does not answer".to_owned(),
    }
}

/// Who holds the lock of the state directory, in words.
pub(crate) fn state_holder(dirs: &Dirs) -> String {
    match lock_holder(&dirs.state_lock()) {
        Some(pid) if is_client(pid) => format!("process {pid}, which runs the engine itself,"),
        Some(_) | None => "a daemon".to_owned(),
    }
}

/// Whether a process has another name than daemons have; false where its name cannot be read.
fn is_client(pid: u32) -> bool {
    let name = fs::read_to_string(format!("/proc/{pid}/comm"));
    name.is_ok_and(|name| name.trim_end() != DAEMON_NAME)
}

fn mismatch_message(dirs: &Dirs, daemon_state: &Path, pid: u32) -> String {
    format!(
        "the daemon at {} (process {pid}) serves the state directory {}, not {}",
        dirs.runtime.display(),
        daemon_state.display(),
        dirs.state.display()
    )
}

/// The state directory that the holder of a lock recorded in it, after its pid.
pub(super) fn recorded_state_dir(lock: &Path) -> Option<PathBuf> {
    let text = regular_file::read(lock, LOCK_BYTES).ok()?;
    let line = text.splitn(2, |&byte| byte == b'\n').nth(1)?;
    (!line.is_empty()).then(|| PathBuf::from(OsStr::from_bytes(line)))
}

fn is_same_dir(one: &Path, other: &Path) -> bool {
    if one == other {
        return true;
    }
    match (one.canonicalize(), other.canonicalize()) {
        (Ok(one), Ok(other)) => one == other,
        (Ok(_) | Err(_), Ok(_) | Err(_)) => false,
    }
}

/// The pid of the process that holds this lock.
pub(super) fn lock_holder(lock: &Path) -> Option<u32> {
    let meta = fs::metadata(lock).ok()?;
    let (major, minor) = (rustix::fs::major(meta.dev()), rustix::fs::minor(meta.dev()));
    let file = format!("{major:02x}:{minor:02x}:{}", meta.ino());
    lock_holder_in(&fs::read_to_string(PROC_LOCKS).ok()?, &file)
}

/// Parses `1: FLOCK  ADVISORY  WRITE 4711 fe:00:1234 0 EOF`; a waiting process has `->` in its
/// line.
fn lock_holder_in(locks: &str, file: &str) -> Option<u32> {
    locks.lines().find_map(|line| {
        let fields: Vec<&str> = line.split_ascii_whitespace().collect();
        match fields[..] {
            [_, "FLOCK", _, "WRITE", pid, inode, ..] if inode == file => pid.parse().ok(),
            _ => None,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_holder_is_who_has_the_lock_and_not_who_waits() {
        let locks = "1: POSIX  ADVISORY  WRITE 5 fe:00:77 0 EOF\n\
                     2: FLOCK  ADVISORY  WRITE 4711 fe:00:77 0 EOF\n\
                     2: -> FLOCK  ADVISORY  WRITE 12 fe:00:77 0 EOF\n\
                     3: FLOCK  ADVISORY  WRITE 6 fe:00:78 0 EOF\n";
        assert_eq!(lock_holder_in(locks, "fe:00:77"), Some(4711));
        assert_eq!(lock_holder_in(locks, "fe:00:78"), Some(6));
        assert_eq!(lock_holder_in(locks, "fe:00:79"), None);
    }

    #[test]
    fn this_process_is_found_by_its_lock() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("lock");
        assert_eq!(lock_holder(&path), None);
        let held = super::super::file_lock::lock(&path).unwrap();
        super::super::file_lock::write_state_dir(&held, Path::new("/some/state"));
        assert_eq!(lock_holder(&path), Some(std::process::id()));
        assert_eq!(
            recorded_state_dir(&path),
            Some(PathBuf::from("/some/state"))
        );
    }
}
