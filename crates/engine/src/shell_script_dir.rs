//! The directories of the shell integration scripts, which `shell` writes.

use std::io;
use std::path::Path;

use ostler_model::{ByteString, ShellKind};

/// The directory of the scripts, below the state directory.
pub(crate) const SCRIPT_DIRECTORY: &str = "shell";

/// The directory of the scripts for one kind of shell.
///
/// # Errors
/// When the state directory is relative and the working directory does not exist.
pub(crate) fn script_dir(state_dir: &Path, kind: ShellKind) -> io::Result<ByteString> {
    let state_dir = std::path::absolute(state_dir)?;
    Ok(ByteString::from(
        state_dir.join(SCRIPT_DIRECTORY).join(kind.as_str()),
    ))
}
