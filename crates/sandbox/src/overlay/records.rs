//! What is kept of an overlay beside its layers: one version byte, a checksum, then the record.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::Path;

use ostler_model::Changes;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::baseline::Baseline;
use super::error::OverlayError;
use super::scan::Edit;

/// What the command saw, and where.
pub(super) const BASELINE: &str = "baseline";
/// A commit that was begun.
pub(super) const INTENT: &str = "intent";
/// How far it came.
pub(super) const LOG: &str = "intent.log";
/// What was decided.
pub(super) const FATE: &str = "fate";
/// Held while something is decided.
pub(super) const LOCK: &str = "lock";

/// The version byte of the records.
const VERSION: u8 = 1;
/// Version byte and checksum.
const HEAD_BYTES: usize = 5;
/// One entry of the log: which step, which inode.
const ENTRY_BYTES: usize = 12;

/// The record [`BASELINE`].
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Head {
    /// The absolute path of the workspace.
    pub(super) workspace: Vec<u8>,
    /// Relative paths that are never written.
    pub(super) protect: Vec<Vec<u8>>,
    pub(super) then: Baseline,
}

/// The record [`INTENT`].
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Intent {
    /// Part of the names of files that are still to be moved to their place.
    pub(super) tag: u64,
    pub(super) edits: Vec<Edit>,
}

/// The record [`FATE`]: as JSON within, because changes are written for people elsewhere.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Decision {
    pub(super) changes: Changes,
}

impl Decision {
    pub(super) fn load(dir: &Path) -> Result<Option<Self>, OverlayError> {
        let Some(json) = load::<Vec<u8>>(dir, FATE)? else {
            return Ok(None);
        };
        let decision = serde_json::from_slice(&json);
        decision
            .map(Some)
            .map_err(|_| OverlayError::Damaged { name: FATE })
    }

    pub(super) fn save(&self, dir: &Path) -> Result<(), OverlayError> {
        let json = serde_json::to_vec(self).map_err(|_| OverlayError::Damaged { name: FATE })?;
        save(dir, FATE, &json)
    }
}

/// Reads a record; none where it was never written.
pub(super) fn load<T: DeserializeOwned>(
    dir: &Path,
    name: &'static str,
) -> Result<Option<T>, OverlayError> {
    let bytes = match fs::read(dir.join(name)) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(source) => return Err(failed("cannot read", &dir.join(name), source)),
    };
    let damaged = || OverlayError::Damaged { name };
    let (head, body) = bytes.split_at_checked(HEAD_BYTES).ok_or_else(damaged)?;
    if head[0] != VERSION || head[1..] != crc32fast::hash(body).to_le_bytes() {
        return Err(damaged());
    }
    postcard::from_bytes(body).map(Some).map_err(|_| damaged())
}

/// Writes a record, whole or not at all.
pub(super) fn save<T: Serialize>(
    dir: &Path,
    name: &'static str,
    record: &T,
) -> Result<(), OverlayError> {
    let path = dir.join(name);
    let body = postcard::to_stdvec(record).map_err(|_| OverlayError::Damaged { name })?;
    let beside = dir.join(format!("{name}.new"));
    let written = File::create(&beside).and_then(|mut file| {
        let mut head = vec![VERSION];
        head.extend(crc32fast::hash(&body).to_le_bytes());
        file.write_all(&head)?;
        file.write_all(&body)?;
        fs::rename(&beside, &path)
    });
    written.map_err(|source| failed("cannot write", &path, source))
}

/// How far a commit came: each step is noted with the inode that is about to stand there.
#[derive(Debug)]
pub(super) struct Log {
    file: File,
    noted: HashMap<u32, u64>,
    resumed: bool,
}

impl Log {
    pub(super) fn open(dir: &Path) -> io::Result<Self> {
        let resumed = dir.join(LOG).exists();
        let mut file = File::options()
            .create(true)
            .append(true)
            .read(true)
            .open(dir.join(LOG))?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        let whole = bytes.len() - bytes.len() % ENTRY_BYTES;
        // A torn end is one that was never acted on.
        file.set_len(whole as u64)?;
        let noted = bytes[..whole]
            .chunks_exact(ENTRY_BYTES)
            .map(entry)
            .collect();
        Ok(Self {
            file,
            noted,
            resumed,
        })
    }

    /// Whether an earlier process began.
    pub(super) const fn is_resumed(&self) -> bool {
        self.resumed
    }

    pub(super) fn note(&mut self, step: u32, ino: u64) -> io::Result<()> {
        let mut bytes = [0; ENTRY_BYTES];
        bytes[..4].copy_from_slice(&step.to_le_bytes());
        bytes[4..].copy_from_slice(&ino.to_le_bytes());
        self.file.write_all(&bytes)?;
        self.noted.insert(step, ino);
        Ok(())
    }

    pub(super) fn noted(&self, step: u32) -> Option<u64> {
        self.noted.get(&step).copied()
    }
}

fn entry(bytes: &[u8]) -> (u32, u64) {
    let (mut step, mut ino) = ([0; 4], [0; 8]);
    step.copy_from_slice(&bytes[..4]);
    ino.copy_from_slice(&bytes[4..ENTRY_BYTES]);
    (u32::from_le_bytes(step), u64::from_le_bytes(ino))
}

/// A failure at a path of ours.
pub(super) fn failed(what: &'static str, path: &Path, source: io::Error) -> OverlayError {
    OverlayError::Io {
        what,
        path: path.into(),
        source,
    }
}
