//! One file of tokens.

use std::fs;
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;

use ostler_journal::atomic_file::{AtomicFile, PRIVATE_MODE};
use ostler_sys::regular_file;
use serde::{Deserialize, Serialize};

use super::{AccessToken, TokenError};

const WRITABLE_BY_OTHERS: u32 = 0o022;

/// A token as stored. One that this version does not understand, a scope in it for example, lets
/// nobody in and stays in the file: it does not keep the others from being used.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub(super) enum StoredToken {
    Known(AccessToken),
    Unknown(serde_json::Value),
}

impl StoredToken {
    pub(super) fn name(&self) -> &str {
        match self {
            Self::Known(token) => &token.name,
            Self::Unknown(value) => value["name"].as_str().unwrap_or_default(),
        }
    }

    pub(super) fn into_known(self) -> Option<AccessToken> {
        match self {
            Self::Known(token) => Some(token),
            Self::Unknown(_) => None,
        }
    }
}

/// Inode, size, and change time.
pub(super) type TokenFileStamp = (u64, u64, i64, i64);

/// A file that holds a list of tokens; it need not exist.
#[derive(Debug)]
pub(super) struct TokenFile {
    pub(super) path: PathBuf,
}

impl TokenFile {
    /// The stamp of the file; none where there is none.
    ///
    /// # Errors
    /// When others could have written it.
    pub(super) fn stamp(&self) -> Result<Option<TokenFileStamp>, TokenError> {
        let meta = match fs::metadata(&self.path) {
            Ok(meta) => meta,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(self.io("read", error)),
        };
        let own = meta.uid() == rustix::process::geteuid().as_raw() || meta.uid() == 0;
        if !own || meta.mode() & WRITABLE_BY_OTHERS != 0 {
            return Err(TokenError::Exposed(self.path.clone()));
        }
        Ok(Some((
            meta.ino(),
            meta.size(),
            meta.mtime(),
            meta.mtime_nsec(),
        )))
    }

    /// The tokens in it, oldest first.
    ///
    /// # Errors
    /// When it cannot be read, is no list, or others could have written it.
    pub(super) fn read(&self) -> Result<Vec<StoredToken>, TokenError> {
        if self.stamp()?.is_none() {
            return Ok(Vec::new());
        }
        let mut bytes = Vec::new();
        regular_file::open(&self.path)
            .and_then(|mut file| file.read_to_end(&mut bytes))
            .map_err(|error| self.io("read", error))?;
        let tokens = serde_json::from_slice(&bytes).map_err(|source| TokenError::Format {
            path: self.path.clone(),
            source,
        })?;
        Ok(tokens)
    }

    /// Replaces the file atomically and durably.
    ///
    /// # Errors
    /// When it cannot be written.
    pub(super) fn write(&self, tokens: &[StoredToken]) -> Result<(), TokenError> {
        let write = || {
            let mut file = AtomicFile::create(&self.path, PRIVATE_MODE)?;
            serde_json::to_writer_pretty(&mut file, tokens)?;
            file.write_all(b"\n")?;
            file.commit_durably()
        };
        write().map_err(|error| self.io("written", error))
    }

    pub(super) fn io(&self, what: &'static str, source: io::Error) -> TokenError {
        TokenError::Io {
            what,
            path: self.path.clone(),
            source,
        }
    }
}
