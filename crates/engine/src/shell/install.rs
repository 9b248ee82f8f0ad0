//! Installs the shell integration scripts where shells find them.

use std::fs::Permissions;
use std::io::{self, Write as _};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use ostler_journal::AtomicFile;
use ostler_model::ByteString;
use ostler_terminal::shell::SCRIPTS;

use crate::error::Error;
use crate::shell_script_dir::scripts_dir;

/// Readable, inside a private directory: in a sandbox another user reads the scripts, and sees
/// nothing else of the directory.
const DIRECTORY_MODE: u32 = 0o755;
/// The mode of the scripts.
const FILE_MODE: u32 = 0o644;

/// Writes missing or outdated scripts; returns their directory.
pub(super) fn install(state_dir: &Path) -> Result<ByteString, Error> {
    let directory = scripts_dir(state_dir).map_err(storage_error(state_dir))?;
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

/// Atomically: a shell may be reading the file, and another daemon replacing it.
fn write(path: &Path, text: &str) -> io::Result<()> {
    let mut file = AtomicFile::create_unique(path, FILE_MODE)?;
    let whatever_the_umask = Permissions::from_mode(FILE_MODE);
    file.file().set_permissions(whatever_the_umask)?;
    file.write_all(text.as_bytes())?;
    file.commit()
}

/// Sets the modes of the directory of one shell and of its parent.
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
}
