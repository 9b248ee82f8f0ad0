//! Where state, sockets and configuration lie.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use crate::config::Environment;
use crate::error::CommandError;

const DIRECTORY_MODE: u32 = 0o700;
const GROUP_AND_OTHERS: u32 = 0o077;

/// The two directories a daemon is known by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Places {
    /// Executions, the ledger, the log of the daemon, its lock.
    pub(crate) state: PathBuf,
    /// Sockets.
    pub(crate) runtime: PathBuf,
}

impl Places {
    /// The lock one daemon holds for its life; the engine locks the state directory besides.
    pub(crate) fn lock(&self) -> PathBuf {
        self.runtime.join("serve.lock")
    }

    /// What the daemon has to say while nobody watches.
    pub(crate) fn log(&self) -> PathBuf {
        self.state.join("daemon.log")
    }

    /// The socket that speaks HTTP.
    pub(crate) fn daemon_socket(&self) -> PathBuf {
        self.runtime.join(DAEMON_SOCKET)
    }

    /// The socket that takes over the standard streams of fronts.
    pub(crate) fn front_socket(&self) -> PathBuf {
        self.runtime.join(FRONT_SOCKET)
    }

    /// Makes both directories, for us alone, and checks that nobody else can get in.
    ///
    /// # Errors
    /// When one cannot be made, or belongs to somebody else.
    pub(crate) fn prepare(&self) -> Result<(), CommandError> {
        make_private(&self.state).map_err(|error| unusable("state", &self.state, &error))?;
        make_private(&self.runtime).map_err(|error| unusable("runtime", &self.runtime, &error))
    }
}

/// The name of the socket that speaks HTTP.
pub(crate) const DAEMON_SOCKET: &str = "daemon.sock";
/// The name of the socket for fronts.
pub(crate) const FRONT_SOCKET: &str = "front.sock";

fn unusable(what: &str, path: &Path, error: &io::Error) -> CommandError {
    CommandError::new(
        ostler_model::ErrorCode::Storage,
        format!(
            "the {what} directory {} cannot be used: {error}",
            path.display()
        ),
    )
    .with_hint(format!(
        "name another with --{what}-dir or OSTLER_{}_DIR",
        what.to_ascii_uppercase()
    ))
}

fn make_private(path: &Path) -> io::Result<()> {
    fs::DirBuilder::new()
        .recursive(true)
        .mode(DIRECTORY_MODE)
        .create(path)?;
    let meta = fs::metadata(path)?;
    let us = rustix::process::geteuid().as_raw();
    if meta.uid() != us {
        let owner = meta.uid();
        return Err(io::Error::other(format!(
            "it belongs to user {owner}, not to user {us}"
        )));
    }
    if meta.mode() & GROUP_AND_OTHERS != 0 {
        fs::set_permissions(path, fs::Permissions::from_mode(DIRECTORY_MODE))?;
    }
    Ok(())
}

/// The state directory where nothing names another.
pub(crate) fn default_state(env: &Environment) -> PathBuf {
    match env.absolute("XDG_STATE_HOME") {
        Some(directory) => directory.join("ostler"),
        None if is_root() => PathBuf::from("/var/lib/ostler"),
        None => home(env).join(".local/state/ostler"),
    }
}

/// The runtime directory that goes with `state`: daemons of other state directories have
/// sockets of their own.
pub(crate) fn default_runtime(env: &Environment, state: &Path) -> PathBuf {
    let base = runtime_base(env);
    if state == default_state(env) {
        return base;
    }
    let name = format!("{:016x}", fingerprint(state.as_os_str()));
    base.join(name)
}

fn runtime_base(env: &Environment) -> PathBuf {
    if let Some(directory) = env.absolute("XDG_RUNTIME_DIR") {
        return directory.join("ostler");
    }
    if is_root() {
        return PathBuf::from("/run/ostler");
    }
    let uid = rustix::process::geteuid().as_raw();
    temporary(env).join(format!("ostler-{uid}"))
}

/// The directory for short-lived files.
pub(crate) fn temporary(env: &Environment) -> PathBuf {
    env.absolute("TMPDIR")
        .unwrap_or_else(|| PathBuf::from("/tmp"))
}

/// The configuration file of this user.
pub(crate) fn default_config(env: &Environment) -> PathBuf {
    env.absolute("XDG_CONFIG_HOME")
        .unwrap_or_else(|| home(env).join(".config"))
        .join("ostler/config.toml")
}

/// The configuration file of the machine, read below the user's own by root.
pub(crate) fn machine_config() -> Option<PathBuf> {
    is_root().then(|| PathBuf::from("/etc/ostler/config.toml"))
}

/// The home directory.
pub(crate) fn home(env: &Environment) -> PathBuf {
    env.absolute("HOME").unwrap_or_else(|| PathBuf::from("/"))
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// FNV-1a, 64 bits: stable over versions, and enough to keep directories apart.
fn fingerprint(text: &OsStr) -> u64 {
    const OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
    const PRIME: u64 = 0x0000_0100_0000_01b3;
    text.as_bytes().iter().fold(OFFSET, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(PRIME)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn env(pairs: &[(&str, &str)]) -> Environment {
        pairs.iter().copied().collect()
    }

    #[test]
    fn relative_directories_of_the_environment_do_not_count() {
        let env = env(&[("XDG_RUNTIME_DIR", "here"), ("TMPDIR", "there")]);
        assert_eq!(temporary(&env), Path::new("/tmp"));
        assert!(runtime_base(&env).is_absolute());
    }

    #[test]
    fn other_state_directories_have_sockets_of_their_own() {
        let env = env(&[("XDG_RUNTIME_DIR", "/r"), ("XDG_STATE_HOME", "/s")]);
        let usual = default_runtime(&env, &default_state(&env));
        let one = default_runtime(&env, Path::new("/one"));
        let two = default_runtime(&env, Path::new("/two"));
        assert_eq!(usual, Path::new("/r/ostler"));
        assert_eq!(one.parent(), Some(Path::new("/r/ostler")));
        assert_ne!(one, two);
    }

    #[test]
    fn a_directory_of_somebody_else_is_refused_and_an_open_one_closed() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("a/b");
        make_private(&path).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        make_private(&path).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o700);
        if is_root() {
            std::os::unix::fs::chown(&path, Some(12345), None).unwrap();
            assert!(make_private(&path).is_err());
        }
    }
}
