//! The file of secrets: TOML, `NAME = "value"`, readable by its owner only.

use std::fs;
use std::io::{self, Read as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use ostler_engine::SecretSource;
use ostler_model::{ByteString, ErrorCode, line_number};
use ostler_sys::regular_file;

use crate::error::CommandError;

/// Its default name, in the directory of the configuration file.
pub(crate) const SECRETS_FILE: &str = "secrets.toml";
/// The size limit in bytes.
const FILE_BYTES: u64 = 1024 * 1024;
const GROUP_AND_OTHERS: u32 = 0o077;

/// A file of secrets, read again for each request: a change applies to the next start.
#[derive(Debug)]
pub(crate) struct SecretsFile {
    path: PathBuf,
}

impl SecretsFile {
    pub(crate) const fn new(path: PathBuf) -> Self {
        Self { path }
    }
}

impl SecretSource for SecretsFile {
    fn value(&self, name: &str) -> Option<ByteString> {
        match read_file(&self.path) {
            Ok(table) => table.get(name)?.as_str().map(ByteString::from),
            Err(problem) => {
                tracing::warn!(file = %self.path.display(), problem, "no secrets are read");
                None
            }
        }
    }

    fn problem(&self) -> Option<String> {
        let problem = read_file(&self.path).err()?;
        Some(format!("{} {problem}", self.path.display()))
    }
}

/// Checks that the file can be used; a missing file is valid.
///
/// # Errors
/// When others can read it, it belongs to another user, or is not TOML of strings.
pub(crate) fn check_file(path: &Path) -> Result<(), CommandError> {
    read_file(path).map(drop).map_err(|problem| {
        CommandError::new(
            ErrorCode::Environment,
            format!("the file of secrets {} {problem}", path.display()),
        )
        .with_hint(format!(
            "it holds lines such as TOKEN = \"value\" and is yours alone: chmod 600 {}",
            path.display()
        ))
    })
}

/// Reads its table. Errors never contain a part of the file.
fn read_file(path: &Path) -> Result<toml::Table, String> {
    let mut file = match regular_file::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(toml::Table::new()),
        Err(error) => return Err(format!("cannot be read: {error}")),
    };
    check_private(
        &file
            .metadata()
            .map_err(|error| format!("cannot be read: {error}"))?,
    )?;
    let mut text = String::new();
    let read = file.by_ref().take(FILE_BYTES + 1).read_to_string(&mut text);
    match read {
        Ok(bytes) if bytes as u64 > FILE_BYTES => {
            return Err(format!("is larger than {FILE_BYTES} bytes"));
        }
        Ok(_) => {}
        Err(error) => return Err(format!("cannot be read: {error}")),
    }
    let table: toml::Table = text.parse().map_err(|error: toml::de::Error| {
        let line = line_number(&text, error.span().map_or(0, |span| span.start));
        format!("is no TOML: line {line}")
    })?;
    match table.iter().find(|(_, value)| !value.is_str()) {
        Some((name, _)) => Err(format!("has no text as the value of {name}")),
        None => Ok(table),
    }
}

/// Why a file is not private, as a part of a sentence.
///
/// # Errors
/// When others can read it, or it belongs to another user.
fn check_private(meta: &fs::Metadata) -> Result<(), String> {
    let us = rustix::process::geteuid().as_raw();
    if meta.uid() != us && meta.uid() != 0 {
        return Err(format!("belongs to user {}, not to user {us}", meta.uid()));
    }
    if meta.mode() & GROUP_AND_OTHERS != 0 {
        let mode = meta.mode() & 0o7777;
        return Err(format!("can be read by others (mode {mode:04o})"));
    }
    Ok(())
}

/// The content of a file that holds a secret and is its owner's alone. Errors are what is wrong with
/// the file, and never contain a part of it.
pub(super) fn read_private_file(path: &Path, max_bytes: u64) -> Result<Vec<u8>, String> {
    let unreadable = |error: io::Error| format!("cannot be read: {error}");
    let file = regular_file::open(path).map_err(unreadable)?;
    check_private(&file.metadata().map_err(unreadable)?)?;
    let mut bytes = Vec::new();
    let mut limited = file.take(max_bytes + 1);
    limited.read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() as u64 > max_bytes {
        return Err(format!("is larger than {max_bytes} bytes"));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    fn file(text: &str, mode: u32) -> (tempfile::TempDir, PathBuf) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join(SECRETS_FILE);
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        (directory, path)
    }

    #[test]
    fn values_are_read_by_name_and_anew() {
        let (_directory, path) = file("TOKEN = \"abcdef\"\n", 0o600);
        let source = SecretsFile::new(path.clone());
        assert_eq!(source.value("TOKEN"), Some(ByteString::from("abcdef")));
        assert_eq!(source.value("OTHER"), None);
        fs::write(&path, "TOKEN = \"ghijkl\"\n").unwrap();
        assert_eq!(source.value("TOKEN"), Some(ByteString::from("ghijkl")));
        fs::remove_file(&path).unwrap();
        assert_eq!(source.value("TOKEN"), None);
        assert!(check_file(&path).is_ok());
    }

    #[test]
    fn a_file_others_can_read_is_refused_with_the_remedy() {
        let (_directory, path) = file("TOKEN = \"abcdef\"\n", 0o640);
        let message = check_file(&path).unwrap_err().to_string();
        assert!(
            message.contains("can be read by others (mode 0640)"),
            "{message}"
        );
        assert!(message.contains("chmod 600"), "{message}");
        assert_eq!(SecretsFile::new(path).value("TOKEN"), None);
    }

    #[test]
    fn problems_tell_no_secret() {
        for text in [
            "TOKEN = hunter2hunter2\n",
            "A = \"x\"\nTOKEN = \"hunter2\n",
            "N = 12345\n",
        ] {
            let (_directory, path) = file(text, 0o600);
            let message = check_file(&path).unwrap_err().to_string();
            assert!(
                !message.contains("hunter2") && !message.contains("12345"),
                "{message}"
            );
        }
    }
}
