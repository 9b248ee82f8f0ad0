//! The directories of the shell integration scripts, which `shell` writes.

use std::io;
use std::path::{Path, PathBuf};

use ostler_model::{ByteString, ShellKind};

/// The directory of the scripts, below the state directory.
const SCRIPT_DIRECTORY: &str = "shell";

/// The directory of all scripts.
///
/// # Errors
/// When the state directory is relative and the working directory does not exist.
pub(crate) fn scripts_dir(state_dir: &Path) -> io::Result<PathBuf> {
    // A shell changes its working directory: the path must be absolute.
    Ok(std::path::absolute(state_dir)?.join(SCRIPT_DIRECTORY))
}

/// The directory of the scripts for one kind of shell.
///
/// # Errors
/// As [`scripts_dir`].
pub(crate) fn script_dir(state_dir: &Path, kind: ShellKind) -> io::Result<ByteString> {
    scripts_dir(state_dir).map(|dir| ByteString::from(dir.join(kind.as_str())))
}
