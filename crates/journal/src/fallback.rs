//! A writer that goes to disk, to memory while the disk refuses, and back to disk.

use std::os::fd::BorrowedFd;

use ostler_model::StreamName;

use crate::disk_checks::{DiskChecks, RingFill};
use crate::error::WriteError;
use crate::memory_ring::MemorySegment;
use crate::query::Gap;
use crate::reach::{self, MemoryExtent};
use crate::writer::{OutputWriter, SegmentLimits};

/// Appends the output of one execution, and never fails: bytes that no file takes keep their
/// offsets and read as a gap.
///
/// Offsets are the same wherever a byte is kept. A reader that has the memory segment finds
/// everything that this writer holds at every instant; a reader that was given it earlier finds the
/// same on disk later.
#[derive(Debug)]
pub struct FallbackWriter {
    /// None where the journal could not be opened.
    disk: Option<OutputWriter>,
    /// Where output goes while it does not go to disk.
    memory_output: Option<MemoryOutput>,
    /// The number of bytes lost, those of earlier refusals included.
    missing_bytes: u64,
}

/// The state while output does not go to disk.
#[derive(Debug)]
struct MemoryOutput {
    /// None where the kernel refused the memory.
    memory: Option<MemorySegment>,
    /// The offset where it begins.
    base: u64,
    /// Bytes after the end of the memory segment that were lost. Nothing may be appended to the
    /// segment after them: its offsets would be wrong.
    dropped_bytes: u64,
    checks: DiskChecks,
    reach: MemoryExtent,
}

impl MemoryOutput {
    fn start(memory: Result<MemorySegment, WriteError>, base: u64) -> Self {
        Self {
            memory: memory.ok(),
            base,
            dropped_bytes: 0,
            checks: DiskChecks::default(),
            reach: MemoryExtent::default(),
        }
    }

    /// The fill level of memory before `bytes` more are appended; full where there is no memory.
    fn fill(&self, bytes: u64) -> RingFill {
        let fill = self.memory.as_ref().map(|memory| memory.fill(bytes));
        match fill {
            Some(fill) if self.dropped_bytes == 0 => fill,
            Some(_) | None => RingFill {
                written: fill.map_or(0, |fill| fill.written) + self.dropped_bytes,
                has_lost: self.dropped_bytes > 0,
                overwrites: true,
            },
        }
    }

    fn buffered_bytes(&self) -> u64 {
        let memory = self.memory.as_ref();
        memory.map_or(0, MemorySegment::buffered_bytes)
    }

    fn end(&self) -> u64 {
        self.memory.as_ref().map_or(self.base, MemorySegment::end) + self.dropped_bytes
    }

    fn append(&mut self, at_ns: i64, stream: StreamName, bytes: &[u8]) {
        let end = self.end();
        if self.dropped_bytes == 0
            && let Some(memory) = &mut self.memory
            && memory.append(at_ns, stream, bytes).is_ok()
        {
            return;
        }
        let written = self.end() - end;
        self.dropped_bytes += bytes.len() as u64 - written;
    }
}

impl FallbackWriter {
    /// For a new execution, as [`OutputWriter::create`]; in memory where that fails.
    pub fn create(dir: BorrowedFd<'_>, limits: SegmentLimits) -> (Self, Option<WriteError>) {
        Self::with_disk(OutputWriter::create(dir, limits), 0)
    }

    /// For a later attempt, as [`OutputWriter::resume_after`]; in memory, from `at_least` on, where
    /// that fails.
    pub fn resume_after(
        dir: BorrowedFd<'_>,
        limits: SegmentLimits,
        at_least: u64,
    ) -> (Self, Option<WriteError>) {
        match OutputWriter::resume_after(dir, limits, at_least) {
            Ok(disk) => Self::with_disk(Ok(disk), at_least),
            Err(error) => Self::with_disk(Err(error), at_least.max(reach::read(dir))),
        }
    }

    fn with_disk(
        opened: Result<OutputWriter, WriteError>,
        base: u64,
    ) -> (Self, Option<WriteError>) {
        let (disk, away, error) = match opened {
            Ok(disk) => (Some(disk), None, None),
            Err(error) => {
                let away = MemoryOutput::start(MemorySegment::at(base), base);
                (None, Some(away), Some(error))
            }
        };
        let writer = Self {
            disk,
            memory_output: away,
            missing_bytes: 0,
        };
        (writer, error)
    }

    /// Appends to the disk, or to memory while the disk refuses.
    ///
    /// # Errors
    /// When the disk refused just now: all bytes were taken nevertheless, into memory, where output
    /// goes from now on.
    pub fn append(
        &mut self,
        at_ns: i64,
        stream: StreamName,
        bytes: &[u8],
    ) -> Result<(), WriteError> {
        if self.memory_output.is_some() {
            self.append_to_memory(at_ns, stream, bytes);
            return Ok(());
        }
        let Some(disk) = &mut self.disk else {
            return Ok(());
        };
        let before = disk.end();
        let result = disk.append(at_ns, stream, bytes).map(drop);
        if result.is_err() {
            // The disk may have taken whole chunks before it refused.
            let written = usize::try_from(disk.end() - before).unwrap_or(bytes.len());
            // Files that are removed to make room free it only once no process has them open.
            disk.close_segment();
            self.memory_output = Some(MemoryOutput::start(MemorySegment::after(disk), disk.end()));
            self.append_to_memory(at_ns, stream, &bytes[written..]);
        }
        result
    }

    fn append_to_memory(&mut self, at_ns: i64, stream: StreamName, bytes: &[u8]) {
        let Some(away) = &mut self.memory_output else {
            return;
        };
        if let Some(disk) = &self.disk {
            let end = away.end() + bytes.len() as u64;
            away.reach.extend_to(disk.dir(), end);
        }
        away.append(at_ns, stream, bytes);
    }

    /// Declares that the end of output is recorded elsewhere: the next attempt receives it.
    pub fn remove_extent_file(&self) {
        if let (Some(disk), Some(_)) = (&self.disk, &self.memory_output) {
            reach::remove(disk.dir());
        }
    }

    /// Writes what memory holds to disk, and continues there; returns the gaps that remain, in the
    /// order of their offsets. None where output goes to disk already.
    ///
    /// # Errors
    /// When the disk still refuses: nothing has changed.
    pub fn return_to_disk(&mut self) -> Result<Vec<Gap>, WriteError> {
        let (Some(disk), Some(away)) = (&mut self.disk, &self.memory_output) else {
            return Ok(Vec::new());
        };
        let missing = disk.restore(away.memory.as_ref(), away.end())?;
        self.missing_bytes += missing.iter().map(|gap| gap.to - gap.from).sum::<u64>();
        reach::remove(disk.dir());
        self.memory_output = None;
        Ok(missing)
    }

    /// As [`return_to_disk`](Self::return_to_disk), where the disk reports room: to be called
    /// before
    /// `bytes` are appended at `at_ns`. The disk is checked before these would overwrite bytes that
    /// exist nowhere else, and from time to time before that. None: nothing has changed.
    pub fn try_return_to_disk(&mut self, at_ns: i64, bytes: usize) -> Option<Vec<Gap>> {
        if !self.has_disk_room(at_ns, bytes as u64) {
            return None;
        }
        let result = self.return_to_disk();
        if let (Err(_), Some(away)) = (&result, &mut self.memory_output) {
            away.checks.record_refusal();
        }
        result.ok()
    }

    fn has_disk_room(&mut self, at_ns: i64, bytes: u64) -> bool {
        let (Some(disk), Some(away)) = (&self.disk, &mut self.memory_output) else {
            return false;
        };
        let fill = away.fill(bytes);
        if !away.checks.is_due(fill, at_ns) {
            return false;
        }
        let has_room = disk.reports_room(away.buffered_bytes());
        away.checks.record(fill, at_ns, has_room)
    }

    /// Whether output goes to disk.
    #[must_use]
    pub const fn is_on_disk(&self) -> bool {
        self.memory_output.is_none()
    }

    /// The journal's end, lost bytes included.
    #[must_use]
    pub fn end(&self) -> u64 {
        match (&self.memory_output, &self.disk) {
            (Some(away), _) => away.end(),
            (None, Some(disk)) => disk.end(),
            (None, None) => 0,
        }
    }

    /// The number of bytes that are on no disk: lost, or in memory only.
    #[must_use]
    pub fn lost_bytes(&self) -> u64 {
        let away = self
            .memory_output
            .as_ref()
            .map_or(0, |away| away.end() - away.base);
        self.missing_bytes + away
    }

    /// The memory segment, while output goes there.
    #[must_use]
    pub fn memory(&self) -> Option<&MemorySegment> {
        self.memory_output.as_ref()?.memory.as_ref()
    }
}

#[cfg(test)]
#[path = "fallback_tests.rs"]
mod tests;
