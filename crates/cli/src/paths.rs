//! The paths of state, sockets and configuration.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use ostler_sys::private_dir;

use crate::error::CommandError;
use crate::process_env::ProcessEnv;

/// The two directories that identify a daemon.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Dirs {
    /// The state directory: executions, the ledger, the daemon's log, its lock.
    pub(crate) state: PathBuf,
    /// The runtime directory: sockets.
    pub(crate) runtime: PathBuf,
}

impl Dirs {
    /// The daemon's lock, held for its life; the engine locks the state directory in addition.
    pub(crate) fn lock(&self) -> PathBuf {
        self.runtime.join("serve.lock")
    }

    /// The lock of the engine, in the state directory.
    pub(crate) fn state_lock(&self) -> PathBuf {
        self.state.join(ostler_engine::LOCK_FILE)
    }

    /// The daemon's log.
    pub(crate) fn log(&self) -> PathBuf {
        self.state.join("daemon.log")
    }

    /// The HTTP socket.
    pub(crate) fn daemon_socket(&self) -> PathBuf {
        self.runtime.join(DAEMON_SOCKET)
    }

    /// The socket for stdio proxies.
    pub(crate) fn stdio_socket(&self) -> PathBuf {
        self.runtime.join(STDIO_SOCKET)
    }

    /// Creates both directories with mode 0700, and checks that no other user has access.
    ///
    /// # Errors
    /// When one cannot be created, or belongs to another user.
    pub(crate) fn prepare(&self) -> Result<(), CommandError> {
        private_dir::ensure(&self.state)
            .map_err(|error| unusable_dir("state", &self.state, &error))?;
        self.prepare_runtime()
    }

    /// Creates the runtime directory, as [`Dirs::prepare`].
    ///
    /// # Errors
    /// As [`Dirs::prepare`].
    pub(crate) fn prepare_runtime(&self) -> Result<(), CommandError> {
        private_dir::ensure(&self.runtime)
            .map_err(|error| unusable_dir("runtime", &self.runtime, &error))
    }
}

/// The name of the HTTP socket.
pub(crate) const DAEMON_SOCKET: &str = "daemon.sock";
/// The name of the socket for stdio proxies.
pub(crate) const STDIO_SOCKET: &str = "front.sock";

fn unusable_dir(what: &str, path: &Path, error: &io::Error) -> CommandError {
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

/// The default state directory.
pub(crate) fn default_state(env: &ProcessEnv) -> PathBuf {
    match env.absolute("XDG_STATE_HOME") {
        Some(directory) => directory.join("ostler"),
        None if is_root() => PathBuf::from("/var/lib/ostler"),
        None => home(env).join(".local/state/ostler"),
    }
}

/// The default runtime directory for `state`: daemons of other state directories have sockets of
/// their own.
pub(crate) fn default_runtime(env: &ProcessEnv, state: &Path) -> PathBuf {
    let base = runtime_base(env);
    if state == default_state(env) {
        return base;
    }
    let name = format!("{:016x}", fingerprint(state.as_os_str()));
    base.join(name)
}

fn runtime_base(env: &ProcessEnv) -> PathBuf {
    if let Some(directory) = env.absolute("XDG_RUNTIME_DIR") {
        return directory.join("ostler");
    }
    if is_root() {
        return PathBuf::from("/run/ostler");
    }
    let uid = rustix::process::geteuid().as_raw();
    temp_dir(env).join(format!("ostler-{uid}"))
}

/// Creates a private temporary directory; the caller removes it.
///
/// # Errors
/// When none can be created where no other user can replace it.
pub(crate) fn make_scratch(env: &ProcessEnv, prefix: &str) -> Result<PathBuf, CommandError> {
    let parent = temp_dir(env);
    if !parent.is_dir() {
        let message = format!(
            "no directory for short-lived files: {} is no directory",
            parent.display()
        );
        return Err(CommandError::new(ostler_model::ErrorCode::Storage, message)
            .with_hint("name one that is there with TMPDIR"));
    }
    private_dir::create_unique(&parent, prefix).map_err(|error| {
        CommandError::new(
            ostler_model::ErrorCode::Storage,
            format!(
                "no directory for short-lived files in {}: {error}",
                parent.display()
            ),
        )
        .with_hint("name another place with TMPDIR")
    })
}

/// The directory for temporary files.
fn temp_dir(env: &ProcessEnv) -> PathBuf {
    env.absolute("TMPDIR")
        .unwrap_or_else(|| PathBuf::from("/tmp"))
}

/// The configuration file of this user.
pub(crate) fn default_config(env: &ProcessEnv) -> PathBuf {
    env.absolute("XDG_CONFIG_HOME")
        .unwrap_or_else(|| home(env).join(".config"))
        .join("ostler/config.toml")
}

/// The configuration file of the machine, which root reads with lower precedence than the user's.
pub(crate) fn machine_config() -> Option<PathBuf> {
    is_root().then(|| PathBuf::from("/etc/ostler/config.toml"))
}

/// A path without `..` and links in its directory, also where the file does not exist yet.
pub(crate) fn resolve_directory(path: &Path) -> PathBuf {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    match (
        absolute.parent().map(Path::canonicalize),
        absolute.file_name(),
    ) {
        (Some(Ok(directory)), Some(name)) => directory.join(name),
        (Some(Ok(_) | Err(_)) | None, Some(_) | None) => absolute,
    }
}

/// The home directory: of the environment, else of passwd(5).
pub(crate) fn home(env: &ProcessEnv) -> PathBuf {
    env.absolute("HOME")
        .or_else(|| {
            let users = fs::read_to_string("/etc/passwd").ok()?;
            home_from_passwd(&users, rustix::process::geteuid().as_raw())
        })
        .unwrap_or_else(|| PathBuf::from("/"))
}

/// The home directory of a user in the text of passwd(5).
fn home_from_passwd(users: &str, uid: u32) -> Option<PathBuf> {
    users.lines().find_map(|line| {
        let mut fields = line.split(':').skip(2);
        let theirs = fields.next()? == uid.to_string();
        let home = PathBuf::from(fields.nth(2)?);
        (theirs && home.is_absolute()).then_some(home)
    })
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// FNV-1a, 64 bits: stable over versions, and sufficient to distinguish directories.
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

    fn env(pairs: &[(&str, &str)]) -> ProcessEnv {
        pairs.iter().copied().collect()
    }

    #[test]
    fn relative_directories_of_the_environment_do_not_count() {
        let env = env(&[("XDG_RUNTIME_DIR", "here"), ("TMPDIR", "there")]);
        assert_eq!(temp_dir(&env), Path::new("/tmp"));
        assert!(runtime_base(&env).is_absolute());
    }

    #[test]
    fn without_home_the_user_database_says_where_it_is() {
        let users = "root:x:0:0:root:/root:/bin/sh\nada:x:7:7:Ada,,:/home/ada:/bin/sh\nbad\n";
        assert_eq!(home_from_passwd(users, 7), Some(PathBuf::from("/home/ada")));
        assert_eq!(home_from_passwd(users, 0), Some(PathBuf::from("/root")));
        assert_eq!(home_from_passwd(users, 8), None);
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
}
