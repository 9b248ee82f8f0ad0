//! The static program that is the first process of our containers: embedded, and written to where
//! the engine mounts it from.

use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use miniz_oxide::inflate::decompress_to_vec;
use parking_lot::Mutex;

/// The program, compressed.
static PROGRAM: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/init.deflate"));
/// The hash of its content.
const HASH: &str = env!("OSTLER_CONTAINER_INIT_HASH");
/// What the names of its files begin with; the hash follows.
const NAME_PREFIX: &str = "init-";
/// Read and execute, for whichever user a container runs as.
const MODE: u32 = 0o555;

/// Held while it is written: containers start at the same time, and with one temporary file for all,
/// one of them renamed what another one had not finished. A state directory has one daemon.
static WRITER: Mutex<()> = Mutex::new(());

/// The program in the state directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct InitProgram {
    /// Its path.
    pub(crate) path: PathBuf,
    /// The hash of its content.
    pub(crate) hash: String,
}

impl InitProgram {
    /// The program in this directory, where [`install`](Self::install) puts it.
    pub(crate) fn at(dir: &Path) -> Self {
        Self {
            path: dir.join(format!("{NAME_PREFIX}{HASH}")),
            hash: HASH.to_owned(),
        }
    }

    /// Writes the embedded program, unless it is there.
    ///
    /// # Errors
    /// When the directory cannot be written.
    pub(crate) fn install(&self) -> io::Result<()> {
        let content = decompress_to_vec(PROGRAM);
        let content = content.map_err(|error| io::Error::other(error.to_string()))?;
        self.install_content(&content)
    }

    fn install_content(&self, content: &[u8]) -> io::Result<()> {
        let _writer = WRITER.lock();
        // Compared, and not only by its length: a crash may have left its blocks unwritten.
        if fs::read(&self.path).is_ok_and(|found| found == content) {
            return Ok(());
        }
        let unfinished = self.path.with_extension("new");
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
        fs::rename(&unfinished, &self.path)
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

    fn named(dir: &Path, hash: &str) -> InitProgram {
        InitProgram {
            path: dir.join(format!("{NAME_PREFIX}{hash}")),
            hash: hash.to_owned(),
        }
    }

    #[test]
    fn it_is_a_static_program_of_its_hash() {
        let dir = tempfile::tempdir().expect("a directory");
        let program = InitProgram::at(dir.path());
        program.install().expect("written");
        let content = fs::read(&program.path).expect("there");
        assert_eq!(crate::identity::hash(&content), program.hash);
        assert!(content.starts_with(b"\x7fELF"));
        let interpreter = content.windows(9).any(|it| it == b"/ld-linux");
        assert!(!interpreter, "it is linked statically");
    }

    #[test]
    fn starts_at_the_same_time_find_it_whole() {
        let dir = tempfile::tempdir().expect("a directory");
        let program = named(dir.path(), "new");
        let content = vec![7; 1024 * 1024];
        for _ in 0..20 {
            std::thread::scope(|scope| {
                for _ in 0..4 {
                    scope.spawn(|| {
                        program.install_content(&content).expect("written");
                        assert!(fs::read(&program.path).expect("there") == content);
                    });
                }
            });
            fs::remove_file(&program.path).expect("removed");
        }
    }

    #[test]
    fn it_is_written_once_repaired_and_others_are_removed() {
        let dir = tempfile::tempdir().expect("a directory");
        let programs = ["old", "used", "new"].map(|hash| named(dir.path(), hash));
        for program in &programs {
            program.install_content(b"content").expect("written");
        }
        let [old, used, new] = &programs;
        let metadata = fs::metadata(&new.path).expect("there");
        assert_eq!(metadata.permissions().mode() & 0o777, MODE);
        fs::remove_file(&new.path).expect("removed");
        fs::write(&new.path, b"conten").expect("damaged");
        new.install_content(b"content").expect("written");
        assert_eq!(fs::read(&new.path).expect("there"), b"content");
        new.remove_others(dir.path(), std::slice::from_ref(&used.hash));
        let stays = [old, used, new].map(|it| it.path.exists());
        assert_eq!(stays, [false, true, true]);
    }
}
