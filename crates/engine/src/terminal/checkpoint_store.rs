//! Checkpoints of screens on disk: derived data, each replaceable by a parse of the journal.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufReader, BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use ostler_terminal::Checkpoint;

/// The checkpoint file in an execution's directory.
pub(crate) const CHECKPOINT_FILE: &str = "screen";
/// Its temporary name during a write.
const UNFINISHED_FILE: &str = "screen.new";
const PRIVATE: u32 = 0o600;

/// The checkpoint of this execution; none where it is absent or unreadable.
pub(super) fn read(dir: &Path) -> Option<Checkpoint> {
    let file = File::open(dir.join(CHECKPOINT_FILE)).ok()?;
    let read = serde_json::from_reader(BufReader::new(file));
    read.inspect_err(|error| tracing::debug!(dir = %dir.display(), %error, "no checkpoint"))
        .ok()
}

/// Replaces the checkpoint of this execution.
pub(super) fn write(dir: &Path, checkpoint: &Checkpoint) -> io::Result<()> {
    let unfinished = dir.join(UNFINISHED_FILE);
    let file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(PRIVATE)
        .open(&unfinished)?;
    let mut file = BufWriter::new(file);
    serde_json::to_writer(&mut file, checkpoint)?;
    file.flush()?;
    fs::rename(&unfinished, dir.join(CHECKPOINT_FILE))
}
