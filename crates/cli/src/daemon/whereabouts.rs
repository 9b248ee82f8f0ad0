//! Who serves a state directory, and which state directory a runtime directory is served from,
//! as far as lock files tell. Nothing is locked to find out: a daemon may be about to start.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use ostler_model::Text;

use crate::error::CommandError;
use crate::paths::Places;

/// The locks of all processes, see proc(5).
const LOCKS: &str = "/proc/locks";

/// Refuses sockets behind which a daemon serves another state directory than ours.
///
/// # Errors
/// When that is so; names both.
pub(crate) fn serves_our_state(places: &Places) -> Result<(), CommandError> {
    let Some(theirs) = noted_state(&places.lock()) else {
        return Ok(());
    };
    if is_same(&theirs, &places.state) {
        return Ok(());
    }
    let Some(pid) = holder(&places.lock()) else {
        return Ok(());
    };
    Err(CommandError::daemon(mismatch(places, &theirs, pid)).with_hint(
        "name that state directory, or another --runtime-dir; without one, each state directory \
         but the usual has a runtime directory of its own",
    ))
}

/// What is wrong where the daemon that answered serves another state directory than ours.
pub(crate) fn other_state(places: &Places, theirs: &Text) -> Option<String> {
    let theirs = PathBuf::from(OsStr::from_bytes(theirs.as_bytes()));
    if is_same(&theirs, &places.state) {
        return None;
    }
    let pid = holder(&places.lock()).unwrap_or(0);
    Some(mismatch(places, &theirs, pid))
}

/// What is wrong where a living daemon lost its runtime directory: it holds the state
/// directory, and nobody holds the runtime directory. One that is ending holds both. Its OS pid,
/// and what to tell.
pub(crate) fn out_of_reach(places: &Places) -> Option<(u32, String)> {
    let pid = holder(&places.state_lock())?;
    if holder(&places.lock()).is_some() {
        return None;
    }
    Some((pid, unreachable(places)?))
}

/// What is wrong where nobody listens at our sockets and our state directory is in use.
pub(crate) fn unreachable(places: &Places) -> Option<String> {
    let pid = holder(&places.state_lock())?;
    Some(format!(
        "process {pid} serves {}, but nobody listens at {}: it listens in another runtime \
         directory, or its own was removed and cannot be made again; `kill {pid}` ends it, and \
         what runs goes on",
        places.state.display(),
        places.daemon_socket().display()
    ))
}

fn mismatch(places: &Places, theirs: &Path, pid: u32) -> String {
    format!(
        "the daemon at {} (process {pid}) serves the state directory {}, not {}",
        places.runtime.display(),
        theirs.display(),
        places.state.display()
    )
}

/// The state directory that the holder of a lock noted in it, behind its pid.
fn noted_state(lock: &Path) -> Option<PathBuf> {
    let text = fs::read(lock).ok()?;
    let line = text.splitn(2, |&byte| byte == b'\n').nth(1)?;
    (!line.is_empty()).then(|| PathBuf::from(OsStr::from_bytes(line)))
}

fn is_same(one: &Path, other: &Path) -> bool {
    if one == other {
        return true;
    }
    match (one.canonicalize(), other.canonicalize()) {
        (Ok(one), Ok(other)) => one == other,
        (Ok(_) | Err(_), Ok(_) | Err(_)) => false,
    }
}

/// The process that holds this lock.
fn holder(lock: &Path) -> Option<u32> {
    let meta = fs::metadata(lock).ok()?;
    let (major, minor) = (rustix::fs::major(meta.dev()), rustix::fs::minor(meta.dev()));
    let file = format!("{major:02x}:{minor:02x}:{}", meta.ino());
    holder_of(&fs::read_to_string(LOCKS).ok()?, &file)
}

/// `1: FLOCK  ADVISORY  WRITE 4711 fe:00:1234 0 EOF`; who waits has an arrow before its kind.
fn holder_of(locks: &str, file: &str) -> Option<u32> {
    locks.lines().find_map(|line| {
        let fields: Vec<&str> = line.split_ascii_whitespace().collect();
        match fields[..] {
            [_, "FLOCK", _, "WRITE", pid, it, ..] if it == file => pid.parse().ok(),
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
        assert_eq!(holder_of(locks, "fe:00:77"), Some(4711));
        assert_eq!(holder_of(locks, "fe:00:78"), Some(6));
        assert_eq!(holder_of(locks, "fe:00:79"), None);
    }

    #[test]
    fn this_process_is_found_by_its_lock() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("lock");
        assert_eq!(holder(&path), None);
        let mut held = super::super::lock::hold(&path).unwrap();
        held.note(Path::new("/some/state"));
        assert_eq!(holder(&path), Some(std::process::id()));
        assert_eq!(noted_state(&path), Some(PathBuf::from("/some/state")));
    }
}
