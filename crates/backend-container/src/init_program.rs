//! The static program that is the first process of our containers: embedded, and written to where
//! the engine mounts it from.

use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use crate::identity::hash;

/// The program.
static PROGRAM: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/init"));
/// What the names of its files begin with; the hash of its content follows.
const NAME_PREFIX: &str = "init-";
/// Read and execute, for whichever user a container runs as.
const MODE: u32 = 0o555;

/// The program in the state directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct InitProgram {
    /// Its path.
    pub(crate) path: PathBuf,
    /// The hash of its content.
    pub(crate) hash: String,
}

impl InitProgram {
    /// Writes the embedded program into this directory, unless it is there.
    ///
    /// # Errors
    /// When the directory cannot be written.
    pub(crate) fn install(dir: &Path) -> io::Result<Self> {
        Self::install_content(dir, PROGRAM)
    }

    fn install_content(dir: &Path, content: &[u8]) -> io::Result<Self> {
        let hash = hash(content);
        let path = dir.join(format!("{NAME_PREFIX}{hash}"));
        // Compared, and not only by its length: a crash may have left its blocks unwritten.
        if fs::read(&path).is_ok_and(|found| found == content) {
            return Ok(Self { path, hash });
        }
        let unfinished = path.with_extension("new");
        let _absent = fs::remove_file(&unfinished);
        let mut options = fs::OpenOptions::new();
        let mut file = options
            .write(true)
            .create_new(true)
            .mode(MODE)
            .open(&unfinished)?;
        // The umask may have taken permissions away.
        file.set_permissions(fs::Permissions::from_mode(MODE))?;
        file.write_all(content)?;
        drop(file);
        fs::rename(&unfinished, &path)?;
        Ok(Self { path, hash })
    }

    /// Removes programs of other versions, but those with these hashes, which containers run.
    pub(crate) fn remove_others(&self, dir: &Path, used: &[String]) {
        for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
            let name = entry.file_name();
            let hash = name
                .to_str()
                .and_then(|name| name.strip_prefix(NAME_PREFIX));
            let is_used = |hash: &str| hash == self.hash || used.iter().any(|it| it == hash);
            if hash.is_none_or(is_used) {
                continue;
            }
            if let Err(error) = fs::remove_file(entry.path()) {
                tracing::debug!(path = %entry.path().display(), %error, "an old init stays");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_written_once_repaired_and_others_are_removed() {
        let dir = tempfile::tempdir().expect("a directory");
        let old = InitProgram::install_content(dir.path(), b"old").expect("written");
        let used = InitProgram::install_content(dir.path(), b"used").expect("written");
        let new = InitProgram::install_content(dir.path(), b"new").expect("written");
        let metadata = fs::metadata(&new.path).expect("there");
        assert_eq!(metadata.permissions().mode() & 0o777, MODE);
        fs::remove_file(&new.path).expect("removed");
        fs::write(&new.path, b"ne").expect("damaged");
        let again = InitProgram::install_content(dir.path(), b"new").expect("written");
        assert_eq!(again, new);
        assert_eq!(fs::read(&new.path).expect("there"), b"new");
        new.remove_others(dir.path(), std::slice::from_ref(&used.hash));
        let stays = [&old, &used, &new].map(|it| it.path.exists());
        assert_eq!(stays, [false, true, true]);
    }
}
