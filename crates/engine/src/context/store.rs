//! The file of contexts, which outlives the engine.

use std::fs;
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use ostler_journal::Durability;
use ostler_journal::atomic_file::{AtomicFile, PRIVATE_MODE};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use super::record::ContextRecord;
use crate::error::Error;
use crate::json_file;

/// The file within the state directory.
const FILE: &str = "contexts.json";
const VERSION: u8 = 1;

/// Writes the file. Records are never changed in it: it is replaced whole.
#[derive(Debug)]
pub(super) struct ContextStore {
    path: PathBuf,
    /// Held while the file is written, so that a later state is not replaced by an earlier one.
    writing: Mutex<()>,
}

#[derive(Debug, Serialize, Deserialize)]
struct ContextsFile {
    version: u8,
    contexts: Vec<ContextRecord>,
}

impl ContextStore {
    /// Reads the stored contexts. A damaged file is renamed, not overwritten: directories named in
    /// it are left alone.
    ///
    /// # Errors
    /// [`Error::Storage`]; [`Error::NewerFile`] for a file of a newer version.
    pub(super) fn open(state_dir: &Path) -> Result<(Self, Vec<ContextRecord>), Error> {
        let path = state_dir.join(FILE);
        let records = match json_file::read(&path) {
            Ok(bytes) => read(&path, &bytes)?,
            Err(error) if error.kind() == ErrorKind::NotFound => Vec::new(),
            Err(source) => return Err(storage_error("cannot read", &path, source)),
        };
        let writing = Mutex::default();
        Ok((Self { path, writing }, records))
    }

    /// Replaces the file with what `records` returns, atomically.
    ///
    /// # Errors
    /// [`Error::Storage`].
    pub(super) fn write(
        &self,
        durability: Durability,
        records: impl FnOnce() -> Vec<ContextRecord>,
    ) -> Result<(), Error> {
        let _writing = self.writing.lock();
        let failed = |source| storage_error("cannot write", &self.path, source);
        let file = ContextsFile {
            version: VERSION,
            contexts: records(),
        };
        let bytes = serde_json::to_vec(&file).map_err(|error| failed(error.into()))?;
        let mut new = AtomicFile::create(&self.path, PRIVATE_MODE).map_err(failed)?;
        let written = new.write_all(&bytes);
        written
            .and_then(|()| new.commit_with(durability))
            .map_err(failed)
    }
}

fn read(path: &Path, bytes: &[u8]) -> Result<Vec<ContextRecord>, Error> {
    json_file::refuse_newer(path, bytes, VERSION)?;
    match serde_json::from_slice::<ContextsFile>(bytes) {
        Ok(file) => Ok(file.contexts),
        Err(error) => {
            tracing::warn!(path = %path.display(), %error, "cannot be read: set aside");
            fs::rename(path, path.with_extension("json.damaged"))
                .map_err(|source| storage_error("cannot move", path, source))?;
            Ok(Vec::new())
        }
    }
}

fn storage_error(action: &'static str, path: &Path, source: std::io::Error) -> Error {
    Error::Storage {
        what: action,
        path: path.to_owned(),
        source,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file of version 1, with everything that it can hold.
    const VERSION_1: &str = r#"{"version":1,"contexts":[{"id":"ctx-457880e0fac6",
        "owner":{"principal":"uid:7","project":"demo","session":"mine","task":"t"},
        "project":"demo","task":"t","directory":"/var/contexts/ctx-457880e0fac6",
        "created":{"inode":12,"btime_ns":1700000000000000000},"idle_timeout_ms":1800000,
        "options":{"env":[["A","1"]],"secrets":["TOKEN"]},
        "created_at":"2026-01-01T00:00:00Z","used_at":"2026-01-01T00:00:01Z","stage":"ready"},
        {"id":"ctx-000000000001","owner":{"principal":"uid:7"},"project":"/srv",
        "directory":"/srv","idle_timeout_ms":1,"options":{},
        "created_at":"2026-01-01T00:00:00Z","used_at":"2026-01-01T00:00:00Z","stage":"stopping"}]}"#;

    #[test]
    fn a_file_of_version_1_is_read_and_written_as_it_was() {
        let dir = tempfile::tempdir().expect("a directory");
        fs::write(dir.path().join(FILE), VERSION_1).expect("written");
        let (store, records) = ContextStore::open(dir.path()).expect("read");
        assert_eq!(records.len(), 2);
        assert!(
            records
                .iter()
                .all(|it| it.created.is_some() == (it.project == "demo"))
        );
        store
            .write(Durability::Fsync, || records.clone())
            .expect("written");
        let written = fs::read(dir.path().join(FILE)).expect("there");
        let as_value = |bytes: &[u8]| serde_json::from_slice::<serde_json::Value>(bytes).ok();
        assert_eq!(as_value(&written), as_value(VERSION_1.as_bytes()));
    }

    #[test]
    fn damage_is_set_aside_and_a_newer_version_is_refused() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join(FILE);
        fs::write(&path, &VERSION_1[..VERSION_1.len() / 2]).expect("written");
        let (_, records) = ContextStore::open(dir.path()).expect("opened");
        assert!(records.is_empty() && !path.exists());
        assert!(path.with_extension("json.damaged").exists());
        fs::write(&path, r#"{"version":2,"contexts":"elsewhere"}"#).expect("written");
        let error = ContextStore::open(dir.path())
            .expect_err("refused")
            .to_string();
        assert!(error.contains("version 2 is newer"), "{error}");
        assert!(path.exists());
    }
}
