//! The records of an overlay, next to its layers: a version byte, a checksum, then the record.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::Path;

use ostler_model::OverlayChanges;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::baseline::Baseline;
use super::compare::OverlayEdit;
use super::error::OverlayError;

/// The state of the workspace at the start.
pub(super) const BASELINE: &str = "baseline";
/// The record of a started commit.
pub(super) const INTENT: &str = "intent";
/// The progress of that commit.
pub(super) const LOG: &str = "intent.log";
/// The decision to commit or discard.
pub(super) const DECISION: &str = "fate";
/// The modes of directories that were closed.
pub(super) const CLOSED: &str = "closed";
/// The lock file held during an operation.
pub(super) const LOCK: &str = "lock";

/// The version byte of the records.
const VERSION: u8 = 1;
/// The bytes of version and checksum.
const HEADER_BYTES: usize = 5;
/// One entry of the log: step and inode.
const ENTRY_BYTES: usize = 12;

/// The record [`BASELINE`].
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct BaselineRecord {
    /// The absolute path of the workspace.
    pub(super) workspace: Vec<u8>,
    /// Relative paths that are never written.
    pub(super) protect: Vec<Vec<u8>>,
    pub(super) baseline: Baseline,
}

/// The record [`INTENT`].
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct CommitIntent {
    /// Part of the names of staged files.
    pub(super) tag: u64,
    pub(super) edits: Vec<OverlayEdit>,
}

/// The record [`DECISION`]: contains JSON, the form in which changes are reported elsewhere.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct OverlayDecision {
    pub(super) changes: OverlayChanges,
}

impl OverlayDecision {
    pub(super) fn load(dir: &Path) -> Result<Option<Self>, OverlayError> {
        let Some(json) = load::<Vec<u8>>(dir, DECISION)? else {
            return Ok(None);
        };
        let decision = serde_json::from_slice(&json);
        decision
            .map(Some)
            .map_err(|_| OverlayError::Damaged { name: DECISION })
    }

    pub(super) fn save(&self, dir: &Path) -> Result<(), OverlayError> {
        let json =
            serde_json::to_vec(self).map_err(|_| OverlayError::Damaged { name: DECISION })?;
        save(dir, DECISION, &json)
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
        Err(source) => return Err(io_error("cannot read", &dir.join(name), source)),
    };
    let damaged = || OverlayError::Damaged { name };
    let (header, body) = bytes.split_at_checked(HEADER_BYTES).ok_or_else(damaged)?;
    if header[0] != VERSION || header[1..] != crc32fast::hash(body).to_le_bytes() {
        return Err(damaged());
    }
    postcard::from_bytes(body).map(Some).map_err(|_| damaged())
}

/// Writes a record atomically.
pub(super) fn save<T: Serialize>(
    dir: &Path,
    name: &'static str,
    record: &T,
) -> Result<(), OverlayError> {
    let path = dir.join(name);
    let body = postcard::to_stdvec(record).map_err(|_| OverlayError::Damaged { name })?;
    let temporary = dir.join(format!("{name}.new"));
    let written = File::create(&temporary).and_then(|mut file| {
        let mut header = vec![VERSION];
        header.extend(crc32fast::hash(&body).to_le_bytes());
        file.write_all(&header)?;
        file.write_all(&body)?;
        fs::rename(&temporary, &path)
    });
    written.map_err(|source| {
        // It may be what fills the disk. One that cannot be removed is replaced the next time.
        drop(fs::remove_file(&temporary));
        io_error("cannot write", &path, source)
    })
}

/// The progress of a commit: each step is logged with the inode that is about to be moved into
/// place.
#[derive(Debug)]
pub(super) struct CommitLog {
    file: File,
    pub(super) inodes: StepInodes,
    resumed: bool,
}

/// The inodes of the steps in a [`CommitLog`].
#[derive(Debug, Default)]
pub(super) struct StepInodes(HashMap<u32, u64>);

impl StepInodes {
    /// Reads the log; empty where there is none.
    pub(super) fn load(dir: &Path) -> Result<Self, OverlayError> {
        match fs::read(dir.join(LOG)) {
            Ok(bytes) => Ok(Self::parse(&bytes)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Self::default()),
            Err(source) => Err(io_error("cannot read", &dir.join(LOG), source)),
        }
    }

    /// A torn last entry was never acted on.
    fn parse(bytes: &[u8]) -> Self {
        Self(bytes.chunks_exact(ENTRY_BYTES).map(parse_entry).collect())
    }

    pub(super) fn get(&self, step: u32) -> Option<u64> {
        self.0.get(&step).copied()
    }
}

impl CommitLog {
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
        // The next entry follows the last whole one.
        file.set_len(whole as u64)?;
        Ok(Self {
            file,
            inodes: StepInodes::parse(&bytes),
            resumed,
        })
    }

    /// Whether an earlier process began it.
    pub(super) const fn is_resumed(&self) -> bool {
        self.resumed
    }

    pub(super) fn append(&mut self, step: u32, ino: u64) -> io::Result<()> {
        let mut bytes = [0; ENTRY_BYTES];
        bytes[..4].copy_from_slice(&step.to_le_bytes());
        bytes[4..].copy_from_slice(&ino.to_le_bytes());
        self.file.write_all(&bytes)?;
        self.inodes.0.insert(step, ino);
        Ok(())
    }
}

fn parse_entry(bytes: &[u8]) -> (u32, u64) {
    let (mut step, mut ino) = ([0; 4], [0; 8]);
    step.copy_from_slice(&bytes[..4]);
    ino.copy_from_slice(&bytes[4..ENTRY_BYTES]);
    (u32::from_le_bytes(step), u64::from_le_bytes(ino))
}

/// An error at one of our paths.
pub(super) fn io_error(what: &'static str, path: &Path, source: io::Error) -> OverlayError {
    OverlayError::Io {
        what,
        path: path.into(),
        source,
    }
}
