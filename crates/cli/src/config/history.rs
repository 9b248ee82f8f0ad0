//! Where the history is.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use ostler_store::{PasswordSource, PostgresSettings};

use super::load::Config;
use super::secrets::read_private_file;

/// The most bytes of a password.
const PASSWORD_BYTES_MAX: u64 = 64 * 1024;

impl Config {
    /// Whether the history is in a server.
    pub(crate) fn has_history_server(&self) -> bool {
        self.text("history.database").is_some()
    }

    /// The server that the history of a ledger is in; none where it is in a file.
    pub(crate) fn history_server(&self, ledger: String) -> Option<PostgresSettings> {
        let address = self.text("history.database")?.parse().ok()?;
        let schema = self.text("history.schema")?.parse().ok()?;
        let password = self.history_password_file().map(PasswordFile);
        Some(PostgresSettings {
            address,
            schema,
            ledger,
            password: password.map(|file| Arc::new(file) as Arc<dyn PasswordSource>),
        })
    }

    /// The file with the password for that server.
    pub(super) fn history_password_file(&self) -> Option<PathBuf> {
        self.text("history.password_file").map(PathBuf::from)
    }
}

/// A file that holds a password, read again for each connection: a change applies to the next one.
#[derive(Debug)]
struct PasswordFile(PathBuf);

impl PasswordSource for PasswordFile {
    fn password(&self) -> Result<Vec<u8>, String> {
        read_password(&self.0)
            .map_err(|problem| format!("the file of its password {} {problem}", self.0.display()))
    }
}

/// The first line of the file. Errors never contain a part of it.
fn read_password(path: &Path) -> Result<Vec<u8>, String> {
    let bytes = read_private_file(path, PASSWORD_BYTES_MAX)?;
    let line = bytes.split(|&byte| byte == b'\n').next();
    let password = line.unwrap_or_default().trim_ascii_end().to_vec();
    if password.is_empty() {
        return Err("is empty".to_owned());
    }
    Ok(password)
}
