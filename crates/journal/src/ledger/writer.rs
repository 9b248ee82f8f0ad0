//! The writer of the ledger.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ostler_model::Timestamp;

use super::entry::LedgerEntry;
use super::hash_chain::{self, GENESIS, LedgerSegment, SegmentContent, SegmentHeader};
use super::heads::{HeadWriter, LedgerHead};
use super::reader::LedgerReader;
use crate::durability::Durability;
use crate::error::WriteError;

/// Readable by the owner only: entries reveal requests.
const SEGMENT_MODE: u32 = 0o600;

/// The size in bytes at which a segment is closed and the next one begins.
pub const LEDGER_SEGMENT_BYTES: u64 = 4 * 1024 * 1024;
/// Bytes of disk space reserved ahead for entries, so that what happens while the disk is full is
/// recorded too.
const RESERVE_BYTES: u64 = 256 * 1024;
/// The default retention of entries, in days.
pub const LEDGER_KEEP_DAYS: u64 = 90;
/// The age in seconds at which a segment is closed and the next one begins, so that expiry can
/// remove whole segments: one day.
const SEGMENT_SPAN_S: i64 = 24 * 60 * 60;

/// The ledger, opened by its only writer.
#[derive(Debug)]
pub struct Ledger {
    dir: PathBuf,
    /// The directory, locked for as long as the ledger is open.
    locked_dir: File,
    current: Option<CurrentSegment>,
    next_number: u64,
    end: u64,
    last_hash: String,
    /// Where heads are recorded.
    heads: Option<HeadWriter>,
    /// How long entries are kept; none keeps them for ever.
    keep: Option<Duration>,
    durability: Durability,
    /// The readers of this ledger share what they know of its files.
    reader: LedgerReader,
}

/// The segment being appended to.
#[derive(Debug)]
struct CurrentSegment {
    file: File,
    name: String,
    bytes: u64,
    /// The offset up to which disk space is reserved, as far as that was possible.
    reserved: u64,
    first_at: Option<Timestamp>,
}

impl Ledger {
    /// Opens or creates the ledger in `dir` (`<state>/ledger`) and locks it; a torn tail is cut.
    ///
    /// # Errors
    /// When another process holds the lock, the file system refuses, or an entry that is not a torn
    /// tail does not fit the chain: [`LedgerReader::verify`] finds it.
    pub fn open(dir: &Path) -> Result<Self, WriteError> {
        let path = || dir.display().to_string();
        std::fs::create_dir_all(dir).map_err(|error| WriteError::io("create", path(), error))?;
        let lock = File::open(dir).map_err(|error| WriteError::io("open", path(), error))?;
        lock.try_lock().map_err(|error| match error {
            std::fs::TryLockError::WouldBlock => WriteError::Locked { file: path() },
            std::fs::TryLockError::Error(error) => WriteError::io("lock", path(), error),
        })?;
        let mut ledger = Self {
            dir: dir.to_owned(),
            locked_dir: lock,
            current: None,
            next_number: 0,
            end: 0,
            last_hash: GENESIS.to_owned(),
            heads: None,
            keep: None,
            durability: Durability::PageCache,
            reader: LedgerReader::open(dir),
        };
        ledger.recover()?;
        Ok(ledger)
    }

    /// Appends one entry and returns its number.
    ///
    /// # Errors
    /// When the file system refuses; then the entry was not appended.
    pub fn append(&mut self, entry: &LedgerEntry) -> Result<u64, WriteError> {
        let seq = self.end;
        let (line, hash) = hash_chain::encode_line(seq, entry, &self.last_hash)?;
        if self
            .current
            .as_ref()
            .is_none_or(|current| current.is_full(entry.at))
        {
            let next = self.begin_segment()?;
            if let Some(full) = self.current.replace(next) {
                full.release_reserved();
            }
            if let Some(keep) = self.keep {
                // What cannot be removed is tried again with the next segment.
                let _kept = self.expire(entry.at, keep);
            }
        }
        if let Some(current) = &mut self.current {
            current.append(&line, self.durability)?;
            current.first_at.get_or_insert(entry.at);
        }
        self.end = seq + 1;
        self.last_hash = hash;
        if self
            .heads
            .as_ref()
            .is_some_and(|heads| heads.is_due(self.end))
        {
            // A full disk: the next entry tries again.
            let _unwritten = self.record_head(entry.at);
        }
        Ok(seq)
    }

    /// Sets what entries survive that are appended from now on. With [`Durability::Fsync`] an entry
    /// whose sync the file system refuses counts as not appended.
    pub const fn set_durability(&mut self, durability: Durability) {
        self.durability = durability;
    }

    /// Records heads from now on, the first one at once if entries have come since the last one.
    ///
    /// # Errors
    /// When that head cannot be written, or the file of earlier ones was damaged; later ones are
    /// recorded nevertheless.
    pub fn record_heads(&mut self, heads: HeadWriter, now: Timestamp) -> Result<(), WriteError> {
        let damage = heads.damage();
        self.heads = Some(heads);
        self.record_head(now)?;
        damage.map_or(Ok(()), Err)
    }

    /// Records the head, unless the last one covers all entries.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn record_head(&mut self, now: Timestamp) -> Result<(), WriteError> {
        let count = self.end;
        let head = LedgerHead {
            at: now,
            count,
            hash: self.last_hash.clone(),
        };
        match &mut self.heads {
            Some(heads) if heads.is_behind(count) => heads.append(&head),
            Some(_) | None => Ok(()),
        }
    }

    /// The number of entries so far, expired ones included.
    #[must_use]
    pub const fn end(&self) -> u64 {
        self.end
    }

    /// A reader of this ledger; any number of them, also in other processes.
    #[must_use]
    pub fn reader(&self) -> LedgerReader {
        self.reader.clone()
    }

    /// Keeps entries for this long: removes older ones now, and whenever a segment begins.
    ///
    /// # Errors
    /// As [`Self::expire`]; later ones are removed nevertheless.
    pub fn keep_for(&mut self, keep: Duration, now: Timestamp) -> Result<u64, WriteError> {
        self.keep = Some(keep);
        self.expire(now, keep)
    }

    /// Removes whole segments whose newest entry is older than `keep` at `now`, never the newest
    /// segment: the chain stays verifiable from the first segment kept. Returns the number of
    /// entries removed.
    ///
    /// # Errors
    /// When a segment cannot be read or removed.
    pub fn expire(&mut self, now: Timestamp, keep: Duration) -> Result<u64, WriteError> {
        let mut segments = hash_chain::list_segments(&self.dir)?;
        segments.pop();
        let mut removed = 0;
        for (number, path) in segments {
            let age = newest_time(number, &path)?.map(|newest| now.duration_since(newest));
            if age.is_some_and(|age| age.unsigned_abs() <= keep || age.is_negative()) {
                break;
            }
            std::fs::remove_file(&path)
                .map_err(|error| WriteError::io("remove", path.display().to_string(), error))?;
            removed += 1;
        }
        Ok(removed)
    }

    /// Finds the end of the chain and cuts a torn tail after it.
    fn recover(&mut self) -> Result<(), WriteError> {
        let mut segments = hash_chain::list_segments(&self.dir)?;
        self.next_number = segments.last().map_or(0, |(number, _)| number + 1);
        // Lines of newer segments of which no entry can be read.
        let mut damaged = 0;
        while let Some((number, path)) = segments.pop() {
            match hash_chain::read_segment(number, &path)? {
                SegmentContent::Entries(segment) => {
                    self.resume(number, &path, &segment)?;
                    if number + 1 < self.next_number {
                        self.current = None;
                    }
                    self.end += damaged;
                    return Ok(());
                }
                SegmentContent::Missing => {}
                SegmentContent::Torn => {
                    let path_text = path.display().to_string();
                    std::fs::remove_file(&path)
                        .map_err(|error| WriteError::io("remove", path_text, error))?;
                    if number + 1 == self.next_number {
                        self.next_number = number;
                    }
                }
                // Kept as evidence: the chain continues in a new segment.
                SegmentContent::DamagedHeader => {
                    let Some(start) = hash_chain::first_position(number, &path)? else {
                        continue;
                    };
                    let read = hash_chain::read_from(&path, start, |_| true)?;
                    damaged += read.damaged;
                    if read.position.is_known() {
                        self.end = read.position.seq + damaged;
                        self.last_hash = read.position.hash;
                        return Ok(());
                    }
                }
            }
        }
        self.end = damaged;
        Ok(())
    }

    fn resume(
        &mut self,
        number: u64,
        path: &Path,
        segment: &LedgerSegment,
    ) -> Result<(), WriteError> {
        let name = hash_chain::file_name(number);
        let failed = |action| {
            let name = name.clone();
            move |error| WriteError::io(action, name, error)
        };
        let file = OpenOptions::new()
            .append(true)
            .open(path)
            .map_err(failed("open"))?;
        let bytes = file.metadata().map_err(failed("measure"))?.len();
        if bytes > segment.end.offset {
            if !segment.is_complete {
                // A whole line that does not fit is not a torn tail: it is kept as evidence. What
                // can be read after it keeps its number, and the chain continues in a new segment.
                let read = hash_chain::read_from(path, segment.end.clone(), |_| true)?;
                self.end = read.position.seq + read.damaged;
                self.last_hash = read.position.hash;
                return Ok(());
            }
            file.set_len(segment.end.offset).map_err(failed("cut"))?;
        }
        self.end = segment.end.seq;
        self.last_hash.clone_from(&segment.end.hash);
        self.current = Some(CurrentSegment {
            file,
            name,
            bytes: segment.end.offset,
            reserved: 0,
            first_at: segment.records.first().map(|record| record.entry.at),
        });
        Ok(())
    }

    fn begin_segment(&mut self) -> Result<CurrentSegment, WriteError> {
        let name = hash_chain::file_name(self.next_number);
        let header = SegmentHeader::new(self.end, self.last_hash.clone());
        let mut line = serde_json::to_vec(&header)?;
        line.push(b'\n');
        let path = self.dir.join(&name);
        let file = OpenOptions::new()
            .append(true)
            .create_new(true)
            .mode(SEGMENT_MODE)
            .open(&path);
        let file = file.map_err(|error| WriteError::io("create", name.clone(), error))?;
        let mut current = CurrentSegment {
            file,
            name,
            bytes: 0,
            reserved: 0,
            first_at: None,
        };
        let written = current
            .append(&line, self.durability)
            .and_then(|()| self.sync_directory());
        if let Err(error) = written {
            // Without its header it is not a segment; its number is free again.
            drop(std::fs::remove_file(&path));
            return Err(error);
        }
        self.next_number += 1;
        Ok(current)
    }

    /// Makes the name of a new segment as durable as its entries.
    fn sync_directory(&self) -> Result<(), WriteError> {
        match self.durability {
            Durability::Fsync => self
                .locked_dir
                .sync_all()
                .map_err(|error| WriteError::io("sync", self.dir.display().to_string(), error)),
            Durability::PageCache => Ok(()),
        }
    }
}

/// When the newest entry of a segment was made that can be read, or the file was written to; none
/// where the segment does not exist any more.
fn newest_time(number: u64, path: &Path) -> Result<Option<Timestamp>, WriteError> {
    let mut newest = None;
    if let Some(start) = hash_chain::first_position(number, path)? {
        hash_chain::read_from(path, start, |record| {
            newest = newest.max(Some(record.entry.at));
            true
        })?;
    }
    if newest.is_some() {
        return Ok(newest);
    }
    match path.metadata().and_then(|metadata| metadata.modified()) {
        Ok(modified) => Ok(Timestamp::try_from(modified).ok()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(WriteError::io("stat", path.display().to_string(), error)),
    }
}

impl CurrentSegment {
    fn is_full(&self, now: Timestamp) -> bool {
        let old = self
            .first_at
            .is_some_and(|first| now.duration_since(first).as_secs() >= SEGMENT_SPAN_S);
        self.bytes >= LEDGER_SEGMENT_BYTES || old
    }

    fn append(&mut self, line: &[u8], durability: Durability) -> Result<(), WriteError> {
        self.reserve(line.len() as u64);
        let written = self.file.write_all(line);
        let synced = written.and_then(|()| match durability {
            Durability::Fsync => self.file.sync_data(),
            Durability::PageCache => Ok(()),
        });
        match synced {
            Ok(()) => {
                self.bytes += line.len() as u64;
                Ok(())
            }
            Err(error) => Err(self.append_error(error)),
        }
    }

    /// Reserves space for the next entries. Where that is not possible, a full disk refuses
    /// entries; they are written later.
    fn reserve(&mut self, bytes: u64) {
        if self.bytes + bytes + RESERVE_BYTES / 2 <= self.reserved {
            return;
        }
        let flags = rustix::fs::FallocateFlags::KEEP_SIZE;
        if rustix::fs::fallocate(&self.file, flags, self.bytes, RESERVE_BYTES).is_ok() {
            self.reserved = self.bytes + RESERVE_BYTES;
        }
    }

    /// Releases the reserved space of a segment that is not appended to any more.
    fn release_reserved(self) {
        drop(self.file.set_len(self.bytes));
    }

    /// Cuts what a failed write left; if that fails too, the next writer does it.
    fn append_error(&mut self, error: io::Error) -> WriteError {
        drop(self.file.set_len(self.bytes));
        self.reserved = 0;
        WriteError::io("append to", self.name.clone(), error)
    }
}
