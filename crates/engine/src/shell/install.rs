//! Installs the shell integration scripts where shells find them.

use std::fs::{File, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use ostler_model::ByteString;
use ostler_terminal::shell::SCRIPTS;
use rustix::rand::{GetRandomFlags, getrandom};

use crate::error::Error;
use crate::shell_script_dir::SCRIPT_DIRECTORY;

/// Random bytes of a nonce.
const NONCE_BYTES: usize = 16;
/// Readable within a private directory: in a sandbox the scripts are read by another user, who sees
/// nothing else of it.
const DIRECTORY_MODE: u32 = 0o755;
/// The same for files.
const FILE_MODE: u32 = 0o644;

/// Writes what is missing or not as it should be; answers where it is.
pub(super) fn install(state_dir: &Path) -> Result<ByteString, Error> {
    // Shells go to other directories: they need an absolute path.
    let state_dir = std::path::absolute(state_dir).map_err(storage_error(state_dir))?;
    let directory = state_dir.join(SCRIPT_DIRECTORY);
    for file in SCRIPTS {
        let path = directory.join(file.path);
        let parent = path.parent().map_or(Ok(()), make_readable);
        parent.map_err(storage_error(&path))?;
        if !is_current(&path, file.text) {
            write(&path, file.text).map_err(storage_error(&path))?;
        }
    }
    Ok(ByteString::from(directory))
}

fn storage_error(path: &Path) -> impl FnOnce(io::Error) -> Error {
    let path = path.to_owned();
    move |source| Error::Storage {
        what: "cannot write",
        path,
        source,
    }
}

fn is_current(path: &Path, text: &str) -> bool {
    let mode = std::fs::metadata(path).map(|meta| meta.permissions().mode());
    mode.is_ok_and(|mode| mode & 0o777 == FILE_MODE)
        && std::fs::read(path).is_ok_and(|found| found == text.as_bytes())
}

/// Whole or not at all: a shell may read it right now.
fn write(path: &Path, text: &str) -> io::Result<()> {
    let mut temp_path = PathBuf::from(path).into_os_string();
    temp_path.push(format!(".{}", nonce().map_err(io::Error::other)?));
    let mut file = File::create_new(&temp_path)?;
    file.set_permissions(Permissions::from_mode(FILE_MODE))?;
    file.write_all(text.as_bytes())?;
    std::fs::rename(&temp_path, path)
}

/// The directory of one shell, and the one that it lies in.
fn make_readable(directory: &Path) -> io::Result<()> {
    let directories = [directory.parent(), Some(directory)];
    for directory in directories.into_iter().flatten() {
        std::fs::create_dir_all(directory)?;
        let mode = std::fs::metadata(directory)?.permissions().mode();
        if mode & 0o777 != DIRECTORY_MODE {
            std::fs::set_permissions(directory, Permissions::from_mode(DIRECTORY_MODE))?;
        }
    }
    Ok(())
}

/// Letters and digits that nobody can guess.
pub(super) fn nonce() -> Result<String, Error> {
    let mut bytes = [0_u8; NONCE_BYTES];
    let filled = getrandom(&mut bytes[..], GetRandomFlags::empty());
    filled.map_err(|error| Error::Storage {
        what: "cannot read random bytes from",
        path: "/dev/urandom".into(),
        source: error.into(),
    })?;
    let digit = |nibble: u8| char::from_digit(u32::from(nibble), 16).unwrap_or('0');
    let digits = bytes.iter().flat_map(|byte| [byte >> 4, byte & 0xf]);
    Ok(digits.map(digit).collect())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn scripts_are_written_once_and_put_right() {
        let state = tempfile::TempDir::new().expect("a directory");
        let directory = install(state.path()).expect("written");
        let one = directory.as_path().join("bash/rc.bash");
        let mode = |path: &Path| std::fs::metadata(path).expect("there").permissions().mode();
        assert_eq!(mode(directory.as_path()) & 0o777, DIRECTORY_MODE);
        assert_eq!(mode(&one) & 0o777, FILE_MODE);
        let before = std::fs::metadata(&one).expect("there").modified().ok();
        install(state.path()).expect("written");
        let after = std::fs::metadata(&one).expect("there").modified().ok();
        assert_eq!(before, after);
        std::fs::write(&one, "echo something else").expect("writable");
        install(state.path()).expect("written");
        let text = std::fs::read_to_string(&one).expect("readable");
        assert!(text.contains("__ostler_first"));
        let names = std::fs::read_dir(directory.as_path().join("bash")).expect("readable");
        assert_eq!(names.count(), 1);
    }

    #[test]
    fn nonces_are_letters_and_digits_and_differ() {
        let (one, other) = (nonce().expect("random"), nonce().expect("random"));
        assert_eq!(one.len(), 2 * NONCE_BYTES);
        assert!(one.chars().all(|c| c.is_ascii_alphanumeric()));
        assert_ne!(one, other);
    }
}
