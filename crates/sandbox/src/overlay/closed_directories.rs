//! Directories that the command closed to their owner, this process. Once the command has ended they
//! are opened, so that a review shows what a commit writes. They are not closed again: their modes
//! are recorded before, and count instead of those in the layer.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::error::OverlayError;
use super::records::{CLOSED, io_error};
use crate::openat2::BeneathRoot;

/// What the owner needs to list a directory and to reach what is in it.
const READABLE: u32 = 0o500;
/// The bits of a mode that are not the type of a file.
const PERMISSIONS: u32 = 0o7777;

/// The modes that directories of the upper layer had before they were opened, by path.
#[derive(Debug)]
pub(super) struct ClosedDirectories {
    /// The file of records: each is the mode in octal, a space, the path and a null byte.
    path: PathBuf,
    modes: HashMap<Vec<u8>, u32>,
    /// How many bytes of the file are whole records.
    whole_bytes: u64,
    /// Opened for the first record.
    file: Option<File>,
    /// Whether directories may be opened: the command has ended.
    may_open: bool,
}

impl ClosedDirectories {
    /// Reads the records of an overlay; there may be none.
    pub(super) fn load(dir: &Path, may_open: bool) -> Result<Self, OverlayError> {
        let path = dir.join(CLOSED);
        let bytes = match fs::read(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            Err(source) => return Err(io_error("cannot read", &path, source)),
        };
        // A torn last record was never acted on.
        let whole = bytes.iter().rposition(|it| *it == 0).map_or(0, |at| at + 1);
        let records = bytes[..whole].split(|it| *it == 0);
        Ok(Self {
            modes: records.filter_map(parse_record).collect(),
            whole_bytes: whole as u64,
            file: None,
            may_open: may_open && !rustix::process::geteuid().is_root(),
            path,
        })
    }

    /// Whether what the command closed may be opened.
    pub(super) const fn may_open(&self) -> bool {
        self.may_open
    }

    /// The mode that a directory of the upper layer had when the command ended.
    pub(super) fn original_mode(&self, path: &[u8], mode: u32) -> u32 {
        self.modes.get(path).copied().unwrap_or(mode)
    }

    /// Opens a directory of the upper layer that has this mode, where it is closed.
    pub(super) fn open(&mut self, upper: &BeneathRoot, path: &[u8], mode: u32) -> io::Result<()> {
        let mode = mode & PERMISSIONS;
        if !self.is_to_open(mode) {
            return Ok(());
        }
        self.record(path, mode)?;
        super::staging::chmod(upper, path, mode | READABLE)
    }

    /// Opens the upper layer itself: nothing can be found in it while it is closed.
    pub(super) fn open_top(&mut self, upper: &Path) -> io::Result<()> {
        let mode = rustix::fs::stat(upper)?.st_mode & PERMISSIONS;
        if !self.is_to_open(mode) {
            return Ok(());
        }
        self.record(b"", mode)?;
        let mode = rustix::fs::Mode::from_raw_mode(mode | READABLE);
        Ok(rustix::fs::chmod(upper, mode)?)
    }

    const fn is_to_open(&self, mode: u32) -> bool {
        self.may_open && mode & READABLE != READABLE
    }

    fn record(&mut self, path: &[u8], mode: u32) -> io::Result<()> {
        let file = match &mut self.file {
            Some(file) => file,
            none @ None => {
                let file = File::options().create(true).append(true).open(&self.path)?;
                // The next record follows the last whole one.
                file.set_len(self.whole_bytes)?;
                none.insert(file)
            }
        };
        let mut record = format!("{mode:o} ").into_bytes();
        record.extend_from_slice(path);
        record.push(0);
        file.write_all(&record)?;
        self.modes.insert(path.to_vec(), mode);
        Ok(())
    }
}

fn parse_record(record: &[u8]) -> Option<(Vec<u8>, u32)> {
    let at = record.iter().position(|it| *it == b' ')?;
    let (mode, path) = (&record[..at], &record[at + 1..]);
    let mode = u32::from_str_radix(std::str::from_utf8(mode).ok()?, 8).ok()?;
    Some((path.to_vec(), mode))
}
