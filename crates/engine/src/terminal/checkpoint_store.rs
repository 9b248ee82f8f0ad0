//! Checkpoints of screens on disk: derived data, each replaceable by a parse of the journal.

use std::fs::File;
use std::io::{self, BufReader, BufWriter};
use std::path::Path;

use ostler_journal::atomic_file::{AtomicFile, PRIVATE_MODE};
use ostler_terminal::Checkpoint;

/// The checkpoint file in an execution's directory.
pub(crate) const CHECKPOINT_FILE: &str = "screen";

/// The checkpoint of this execution; none where it is absent or unreadable.
pub(super) fn read(dir: &Path) -> Option<Checkpoint> {
    let file = File::open(dir.join(CHECKPOINT_FILE)).ok()?;
    let read = serde_json::from_reader(BufReader::new(file));
    read.inspect_err(|error| tracing::debug!(dir = %dir.display(), %error, "no checkpoint"))
        .ok()
}

/// Replaces the checkpoint of this execution.
pub(super) fn write(dir: &Path, checkpoint: &Checkpoint) -> io::Result<()> {
    let file = AtomicFile::create(&dir.join(CHECKPOINT_FILE), PRIVATE_MODE)?;
    let mut file = BufWriter::new(file);
    serde_json::to_writer(&mut file, checkpoint)?;
    file.into_inner()?.commit()
}
