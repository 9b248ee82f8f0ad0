//! Secrets as files, in memory, of one execution.

use std::fs;
use std::io::Write;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use ostler_model::ByteString;
use ostler_model::container::CONTAINER_SECRETS;
use ostler_sys::errno::errno_of;
use rustix::io::Errno;

use crate::launch_error::LaunchError;

/// The step at which a secret's file could not be written.
const STEP_SECRETS: &str = "secrets";

/// The files of one execution. Dropping them removes those that no later execution has replaced.
#[derive(Debug, Default)]
pub(crate) struct SecretFiles(Vec<SecretFile>);

#[derive(Debug)]
struct SecretFile {
    path: PathBuf,
    inode: u64,
}

impl SecretFiles {
    /// Writes each secret to a file that only the container's user reads.
    pub(crate) fn write(secrets: &[(ByteString, ByteString)]) -> Result<Self, LaunchError> {
        Self::write_to(Path::new(CONTAINER_SECRETS), secrets)
    }

    fn write_to(
        directory: &Path,
        secrets: &[(ByteString, ByteString)],
    ) -> Result<Self, LaunchError> {
        let mut files = Self::default();
        for (name, value) in secrets {
            let failed = |errno| LaunchError {
                step: STEP_SECRETS,
                errno,
                message: Some(format!(
                    "cannot write the secret {} to {}: {}",
                    name.to_string_lossy(),
                    directory.display(),
                    std::io::Error::from(errno)
                )),
            };
            if name.is_empty() || name.as_bytes().contains(&b'/') {
                return Err(failed(Errno::INVAL));
            }
            let path = directory.join(name.as_path());
            let inode = replace(&path, value.as_bytes());
            let inode = inode.map_err(|error| failed(errno_of(&error)))?;
            files.0.push(SecretFile { path, inode });
        }
        Ok(files)
    }
}

impl Drop for SecretFiles {
    fn drop(&mut self) {
        for SecretFile { path, inode } in &self.0 {
            if fs::symlink_metadata(path).is_ok_and(|found| found.ino() == *inode) {
                let _gone = fs::remove_file(path);
            }
        }
    }
}

/// Removes every file of secrets: what runners left that were killed.
pub(crate) fn remove_all() {
    let entries = fs::read_dir(CONTAINER_SECRETS).into_iter().flatten();
    for entry in entries.flatten() {
        let _gone = fs::remove_file(entry.path());
    }
}

/// Writes a private file whole, and returns its inode: a command that reads the one before keeps it.
fn replace(file: &Path, content: &[u8]) -> std::io::Result<u64> {
    let mut new = file.as_os_str().to_owned();
    new.push(format!(".{}", std::process::id()));
    let _absent = fs::remove_file(&new);
    let mut opened = fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o400)
        .open(&new)?;
    opened.write_all(content)?;
    fs::rename(&new, file)?;
    Ok(opened.metadata()?.ino())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn secret(value: &str) -> [(ByteString, ByteString); 1] {
        [("TOKEN".into(), value.into())]
    }

    #[test]
    fn a_secret_is_replaced_whole_and_private() {
        let dir = tempfile::TempDir::new().expect("a directory");
        let file = dir.path().join("TOKEN");
        let first = SecretFiles::write_to(dir.path(), &secret("first")).expect("written");
        let second = SecretFiles::write_to(dir.path(), &secret("second")).expect("replaced");
        drop(first);
        assert_eq!(fs::read(&file).expect("the later one stays"), b"second");
        let mode = fs::metadata(&file).expect("there").permissions().mode();
        assert_eq!(mode & 0o777, 0o400);
        drop(second);
        assert_eq!(fs::read_dir(dir.path()).expect("readable").count(), 0);
    }

    #[test]
    fn a_secret_s_name_is_no_path() {
        let escaping = [("../etc/passwd".into(), "x".into())];
        let refused = SecretFiles::write(&escaping).expect_err("a path");
        assert_eq!((refused.step, refused.errno), (STEP_SECRETS, Errno::INVAL));
    }
}
