//! The log of one connection: every request is in it before it is handled, every response before it
//! is written. Where it is a file (a memfd of the client's proxy), it outlives this process, and
//! the next daemon continues from it.
//!
//! Two facts are committed by the kernel in the same system call as the effect they are about, so
//! that a SIGKILL cannot come between them: the amount written to the client is the file's own
//! offset, which sendfile(2) advances; and data read from a pipe is in the file, because splice(2)
//! moves it there.

use std::io;
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use parking_lot::Mutex;
use rustix::fs::{FallocateFlags, SeekFrom, fallocate, fstat, ftruncate, seek};
use rustix::io::{pread, pwrite};

use super::lines::InputLine;
use super::record::{HEADER_BYTES, LogRecord, OutputKind};
use super::state::{ConnectionState, PendingLine};

/// The file's magic number: format and version.
const MAGIC: [u8; 8] = *b"ostlrl\0\x01";
/// The magic number, then the offset of the first valid record.
const PREAMBLE_BYTES: u64 = 16;
/// A log is compacted when this many bytes were added to its unfinished part.
const COMPACT_BYTES: u64 = 256 * 1024;
/// What stays of the part that no longer counts, in bytes: a pipe shares the file's pages until
/// they are read, and holds at most this much.
const SHARED_BYTES: u64 = 1024 * 1024;
/// The most bytes of one read.
const READ_BYTES: usize = 64 * 1024;
/// What a read may bring until one has filled its buffer: more than most requests.
const FIRST_READ_BYTES: usize = 4 * 1024;

/// A log; in memory only where it has no file.
#[derive(Debug)]
pub(crate) struct ConnectionLog {
    file: Option<OwnedFd>,
    state: Mutex<LogState>,
}

#[derive(Debug)]
struct LogState {
    backlog: ConnectionState,
    /// Where the next record goes.
    end: u64,
    /// The size at which the log is compacted.
    compact_at: u64,
    /// Up to where the file's memory was freed.
    freed: u64,
    /// Whether reading has stopped.
    sealed: bool,
    /// The read buffer, which grows when a read fills it.
    buffer: Vec<u8>,
}

/// The result of one read.
#[derive(Debug)]
pub(crate) enum ReadOutcome {
    Lines(Vec<(u64, InputLine)>),
    /// The client has closed its side.
    End,
    /// Reading has stopped.
    Sealed,
}

impl ConnectionLog {
    /// A log that ends with this process.
    pub(crate) fn in_memory() -> Self {
        Self::new(None, ConnectionState::default(), 0)
    }

    const fn new(file: Option<OwnedFd>, backlog: ConnectionState, end: u64) -> Self {
        let state = LogState {
            backlog,
            end,
            compact_at: end + COMPACT_BYTES,
            freed: 0,
            sealed: false,
            buffer: Vec::new(),
        };
        Self {
            file,
            state: Mutex::new(state),
        }
    }

    /// Continues the log in `file`, or creates one there. Also returns the ranges still to be
    /// written to the client.
    ///
    /// # Errors
    /// When the file cannot be read or written, or has other content.
    pub(crate) fn open(file: OwnedFd) -> io::Result<(Self, Vec<Range<u64>>)> {
        let size = fstat(&file)?.st_size.cast_unsigned();
        let mut unsent = Vec::new();
        let mut backlog = ConnectionState::default();
        let mut end = PREAMBLE_BYTES;
        if size < PREAMBLE_BYTES {
            write_at(file.as_fd(), &preamble(PREAMBLE_BYTES), 0)?;
        } else {
            let start = first_record(file.as_fd())?;
            if start > size {
                return Err(not_a_log());
            }
            let bytes = read_range(file.as_fd(), start..size)?;
            let sent = seek(&file, SeekFrom::Current(0))?;
            (backlog, end, unsent) = replay_records(&bytes, start, sent);
            // A truncated record would be taken for the end of a shorter one.
            ftruncate(&file, end)?;
        }
        let log = Self::new(Some(file), backlog, end);
        log.append(&LogRecord::Attached)?;
        Ok((log, unsent))
    }

    /// The file, where it has one.
    pub(crate) fn file(&self) -> Option<BorrowedFd<'_>> {
        self.file.as_ref().map(AsFd::as_fd)
    }

    /// Accesses the fold of unfinished work.
    pub(crate) fn with_state<T>(&self, access: impl FnOnce(&mut ConnectionState) -> T) -> T {
        access(&mut self.state.lock().backlog)
    }

    /// Reads once, and logs the input before it is used.
    ///
    /// # Errors
    /// As the reading itself, and when the log cannot be written.
    pub(crate) fn read_into(
        &self,
        read: impl FnOnce(&mut [u8]) -> io::Result<usize>,
    ) -> io::Result<ReadOutcome> {
        let mut state = self.state.lock();
        if state.sealed {
            return Ok(ReadOutcome::Sealed);
        }
        let mut buffer = std::mem::take(&mut state.buffer);
        if buffer.is_empty() {
            buffer.resize(FIRST_READ_BYTES, 0);
        }
        let filled = read(&mut buffer).and_then(|count| {
            let filled = self.add_input_to(&mut state, &buffer[..count]);
            if count == buffer.len() {
                buffer.resize(READ_BYTES, 0);
            }
            filled
        });
        state.buffer = buffer;
        filled
    }

    /// Adds input that was read already.
    ///
    /// # Errors
    /// When the log cannot be written.
    pub(crate) fn add_input(&self, bytes: &[u8]) -> io::Result<ReadOutcome> {
        let mut state = self.state.lock();
        if state.sealed {
            return Ok(ReadOutcome::Sealed);
        }
        self.add_input_to(&mut state, bytes)
    }

    fn add_input_to(&self, state: &mut LogState, bytes: &[u8]) -> io::Result<ReadOutcome> {
        if bytes.is_empty() {
            return Ok(ReadOutcome::End);
        }
        self.append_to(state, &LogRecord::Input(bytes))
            .map(ReadOutcome::Lines)
    }

    /// Adds a record.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub(crate) fn append(&self, record: &LogRecord<'_>) -> io::Result<()> {
        self.append_to(&mut self.state.lock(), record).map(drop)
    }

    /// Adds a line for the client; returns its range in the file, if there is one.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub(crate) fn add_output(&self, output: OutputKind, text: &[u8]) -> io::Result<Range<u64>> {
        let mut state = self.state.lock();
        self.append_to(&mut state, &LogRecord::Output { output, text })?;
        Ok(state.end.saturating_sub(text.len() as u64)..state.end)
    }

    fn append_to(
        &self,
        state: &mut LogState,
        record: &LogRecord<'_>,
    ) -> io::Result<Vec<(u64, InputLine)>> {
        if let Some(file) = &self.file {
            let bytes = record.encode();
            write_at(file.as_fd(), &bytes, state.end)?;
            state.end += bytes.len() as u64;
        }
        Ok(state.backlog.apply(record))
    }

    /// Stops reading; returns the unanswered lines.
    pub(crate) fn seal(&self) -> Vec<(u64, PendingLine)> {
        let mut state = self.state.lock();
        state.sealed = true;
        let live = state.backlog.unanswered().iter();
        live.map(|(line, pending)| (*line, pending.clone()))
            .collect()
    }

    /// Frees the memory of records that no longer count, once there is enough of them. Only while
    /// everything written has reached the client.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub(crate) fn compact(&self) -> io::Result<()> {
        let Some(file) = &self.file else {
            return Ok(());
        };
        let mut state = self.state.lock();
        if state.end < state.compact_at {
            return Ok(());
        }
        let (start, snapshot) = (state.end, state.backlog.snapshot());
        write_at(file.as_fd(), &snapshot, start)?;
        write_at(file.as_fd(), &preamble(start), 0)?;
        state.end += snapshot.len() as u64;
        state.compact_at = state.end + COMPACT_BYTES.max(snapshot.len() as u64);
        let until = start.saturating_sub(SHARED_BYTES) & !(PAGE_BYTES - 1);
        let from = state.freed.max(PAGE_BYTES);
        if until > from {
            let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
            fallocate(file, flags, from, until - from)?;
            state.freed = until;
        }
        Ok(())
    }
}

/// Holes are punched in multiples of this size.
const PAGE_BYTES: u64 = 64 * 1024;

fn preamble(start: u64) -> Vec<u8> {
    [&MAGIC[..], &start.to_le_bytes()].concat()
}

fn not_a_log() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "it is no log of a connection")
}

fn first_record(file: BorrowedFd<'_>) -> io::Result<u64> {
    let bytes = read_range(file, 0..PREAMBLE_BYTES)?;
    let (magic, start) = bytes.split_first_chunk::<8>().ok_or_else(not_a_log)?;
    let start = start.first_chunk::<8>().ok_or_else(not_a_log)?;
    if *magic != MAGIC {
        return Err(not_a_log());
    }
    Ok(u64::from_le_bytes(*start))
}

/// The state after these records, the end of the last one, and the output the client does not have.
/// A truncated record was never acted upon.
fn replay_records(bytes: &[u8], start: u64, sent: u64) -> (ConnectionState, u64, Vec<Range<u64>>) {
    let mut backlog = ConnectionState::default();
    let mut unsent = Vec::new();
    let mut offset = 0;
    while let Some((record, length)) = LogRecord::decode(&bytes[offset..]) {
        backlog.apply(&record);
        if let LogRecord::Output { .. } = record {
            let begin = start + (offset + HEADER_BYTES) as u64;
            let end = start + (offset + length) as u64;
            if end > sent {
                unsent.push(begin.max(sent)..end);
            }
        }
        offset += length;
    }
    (backlog, start + offset as u64, unsent)
}

fn write_at(file: BorrowedFd<'_>, mut bytes: &[u8], mut offset: u64) -> io::Result<()> {
    while !bytes.is_empty() {
        let count = rustix::io::retry_on_intr(|| pwrite(file, bytes, offset))?;
        bytes = &bytes[count..];
        offset += count as u64;
    }
    Ok(())
}

fn read_range(file: BorrowedFd<'_>, range: Range<u64>) -> io::Result<Vec<u8>> {
    let length = usize::try_from(range.end.saturating_sub(range.start)).unwrap_or(0);
    let mut bytes = vec![0; length];
    let mut filled = 0;
    while filled < length {
        let offset = range.start + filled as u64;
        match rustix::io::retry_on_intr(|| pread(file, &mut bytes[filled..], offset))? {
            0 => break,
            count => filled += count,
        }
    }
    bytes.truncate(filled);
    Ok(bytes)
}

#[cfg(test)]
#[path = "log_tests.rs"]
mod tests;
