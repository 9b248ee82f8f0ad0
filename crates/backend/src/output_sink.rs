//! The destination of output: the journal on disk, or a memory file while the disk refuses. The
//! only writer of an execution's segments and index.

use std::os::fd::{BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use ostler_journal::memory_ring::MEMORY_BYTES;
use ostler_journal::{FallbackWriter, Gap, SegmentLimits, WriteError};
use ostler_model::StreamName;

/// Bytes of the memory file that stay free for what a command leaves in its pipes when it ends: two
/// enlarged pipes, one read of each, and the records of both.
const MEMORY_RESERVE_BYTES: u64 = 704 * 1024;
/// The least time between a write error and the next attempt to return to the disk, in
/// milliseconds; doubled with each further error.
const RETRY_MIN_MS: u64 = 250;
/// The greatest such time, in milliseconds. A disk without errors for this long resets it.
const RETRY_MAX_MS: u64 = 8_000;

/// Writes the output of one execution to its files. Never fails: what cannot be kept is counted.
#[derive(Debug)]
pub struct OutputSink {
    writer: FallbackWriter,
    retry: DiskRetry,
    /// The text of the last disk error.
    error: Option<String>,
    /// Events the daemon was not sent yet, in order.
    events: Vec<SinkEvent>,
    /// Whether the start announced a reader that must receive every byte.
    lossless_reader: bool,
    /// The lowest offset that a lossless reader has yet to read.
    retained_from: Option<u64>,
}

/// A change of where output goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SinkEvent {
    /// The disk refused: output goes to memory from now on.
    Refused {
        /// The text of the error.
        detail: String,
    },
    /// Output goes to disk again.
    Returned {
        /// Lost ranges, start inclusive and end exclusive, in the order of offsets.
        missing: Vec<(u64, u64)>,
    },
}

/// When a disk that failed is tried again. There is no timer here: an attempt becomes due and is
/// made at the next other event.
#[derive(Debug, Clone, Copy)]
struct DiskRetry {
    interval: Duration,
    due: Option<Instant>,
    recovered_at: Option<Instant>,
}

impl DiskRetry {
    const fn new() -> Self {
        Self {
            interval: Duration::from_millis(RETRY_MIN_MS),
            due: None,
            recovered_at: None,
        }
    }

    fn on_refused(&mut self, now: Instant) {
        let longest = Duration::from_millis(RETRY_MAX_MS);
        if self
            .recovered_at
            .take()
            .is_some_and(|at| now.saturating_duration_since(at) >= longest)
        {
            self.interval = Duration::from_millis(RETRY_MIN_MS);
        }
        self.due = now.checked_add(self.interval);
        self.interval = (self.interval * 2).min(longest);
    }

    const fn on_recovered(&mut self, now: Instant) {
        self.due = None;
        self.recovered_at = Some(now);
    }

    fn is_due(&self, now: Instant) -> bool {
        self.due.is_some_and(|due| now >= due)
    }
}

impl OutputSink {
    /// Opens the journal in `dir`; a later attempt continues where the last one ended, and no
    /// earlier than at `from`. With `lossless_reader` everything is retained until the daemon
    /// reports the position of that reader.
    pub fn open(dir: BorrowedFd<'_>, attempt: u32, from: u64, lossless_reader: bool) -> Self {
        let limits = SegmentLimits::default();
        let (writer, error) = if attempt <= 1 {
            FallbackWriter::create(dir, limits)
        } else {
            FallbackWriter::resume_after(dir, limits, from)
        };
        let mut sink = Self {
            writer,
            retry: DiskRetry::new(),
            error: None,
            events: Vec::new(),
            lossless_reader,
            retained_from: lossless_reader.then_some(0),
        };
        if let Some(error) = error {
            sink.on_refused(&error);
        }
        sink
    }

    /// Appends a chunk of output.
    pub fn append(&mut self, at_ns: i64, stream: StreamName, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        self.retry_disk_if_due();
        if let Some(missing) = self.writer.try_return_to_disk(at_ns, bytes.len()) {
            self.on_recovered(missing);
        }
        if let Err(error) = self.writer.append(at_ns, stream, bytes) {
            self.on_refused(&error);
        }
    }

    fn on_refused(&mut self, error: &WriteError) {
        let detail = error.to_string();
        self.retry.on_refused(Instant::now());
        self.error = Some(detail.clone());
        self.events.push(SinkEvent::Refused { detail });
    }

    /// Goes back to the disk, if that is worth a try by now.
    pub fn retry_disk_if_due(&mut self) {
        if self.retry.is_due(Instant::now()) {
            self.return_to_disk();
        }
    }

    /// Goes back to the disk, if it takes what memory holds.
    pub fn return_to_disk(&mut self) {
        if self.writer.is_on_disk() {
            return;
        }
        match self.writer.return_to_disk() {
            Ok(missing) => self.on_recovered(missing),
            Err(error) => {
                self.retry.on_refused(Instant::now());
                self.error = Some(error.to_string());
            }
        }
    }

    fn on_recovered(&mut self, missing: Vec<Gap>) {
        self.retry.on_recovered(Instant::now());
        // As at the beginning: the daemon sends the positions of readers again.
        self.retained_from = self.lossless_reader.then_some(0);
        let missing = missing.into_iter().map(|gap| (gap.from, gap.to)).collect();
        self.events.push(SinkEvent::Returned { missing });
    }

    /// The exit record is written, and with it where output ends.
    pub fn mark_end_recorded(&self) {
        self.writer.remove_extent_file();
    }

    /// The storage events since the last call.
    pub fn take_events(&mut self) -> Vec<SinkEvent> {
        std::mem::take(&mut self.events)
    }

    /// From where on a reader still reads that must miss nothing, where there is one.
    pub fn retain(&mut self, from: Option<u64>) {
        self.retained_from = from;
    }

    /// Whether output goes to memory.
    pub fn is_in_memory(&self) -> bool {
        self.writer.memory().is_some()
    }

    /// Whether more output would overwrite what a reader waits for: the command waits, as
    /// with a pipe that is full.
    pub fn must_pause_reads(&self) -> bool {
        let Some((memory, from)) = self.writer.memory().zip(self.retained_from) else {
            return false;
        };
        let unread = memory.end().saturating_sub(from.max(memory.base()));
        unread > MEMORY_BYTES - MEMORY_RESERVE_BYTES
    }

    /// The journal's end, including dropped output.
    pub fn end(&self) -> u64 {
        self.writer.end()
    }

    /// Why output is not on disk, where some is not.
    pub fn error(&self) -> Option<&str> {
        let whole = self.writer.is_on_disk() && self.lost_bytes() == 0;
        self.error.as_deref().filter(|_| !whole)
    }

    /// Output bytes that are on no disk.
    pub fn lost_bytes(&self) -> u64 {
        self.writer.lost_bytes()
    }

    /// The memory file and the offset it begins at, while output goes there.
    pub fn memory(&self) -> Option<(u64, OwnedFd)> {
        let memory = self.writer.memory()?;
        let descriptor = memory.as_fd().try_clone_to_owned().ok()?;
        Some((memory.base(), descriptor))
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    use ostler_journal::MemorySegment;

    use super::*;

    /// A sink whose disk fails, because its directory was removed.
    fn in_memory(lossless_reader: bool) -> OutputSink {
        let dir = tempfile::tempdir().expect("a directory");
        let handle = std::fs::File::open(dir.path()).expect("the directory");
        let mut sink = OutputSink::open(handle.as_fd(), 1, 0, lossless_reader);
        drop(dir);
        sink.append(1, StreamName::Stdout, b"refused\n");
        assert!(matches!(
            sink.take_events().as_slice(),
            [SinkEvent::Refused { .. }]
        ));
        sink
    }

    fn overwritten(sink: &OutputSink) -> u64 {
        sink.writer.memory().map_or(0, MemorySegment::lost_bytes)
    }

    #[test]
    fn memory_waits_for_its_reader_with_room_for_what_the_pipes_hold() {
        let mut sink = in_memory(true);
        let piece = vec![b'x'; 64 * 1024];
        let mut pieces = 0;
        while !sink.must_pause_reads() {
            sink.append(2, StreamName::Stdout, &piece);
            pieces += 1;
        }
        let (base, _) = sink.memory().expect("a memory file");
        assert!(pieces >= 4, "{pieces}");
        // The last piece was one stream's read: a read of the other one and two enlarged pipes
        // still fit.
        for _ in 0..9 {
            sink.append(3, StreamName::Stderr, &piece);
        }
        assert_eq!(overwritten(&sink), 0, "nothing unread was overwritten");
        sink.retain(Some(sink.end()));
        assert!(!sink.must_pause_reads(), "everything was read");
        sink.retain(Some(base));
        assert!(sink.must_pause_reads());
        sink.retain(None);
        assert!(!sink.must_pause_reads(), "nobody reads");
    }

    #[test]
    fn a_command_waits_only_for_a_reader_that_was_announced() {
        let mut sink = in_memory(false);
        let (base, _) = sink.memory().expect("a memory file");
        let piece = vec![b'x'; 64 * 1024];
        for _ in 0..32 {
            assert!(!sink.must_pause_reads(), "nobody reads");
            sink.append(2, StreamName::Stdout, &piece);
        }
        assert!(overwritten(&sink) > 0);
        sink.retain(Some(base));
        assert!(sink.must_pause_reads(), "somebody came");
    }

    #[test]
    fn a_later_attempt_begins_no_earlier_than_its_plan_says() {
        let dir = tempfile::tempdir().expect("a directory");
        let handle = std::fs::File::open(dir.path()).expect("the directory");
        let mut first = OutputSink::open(handle.as_fd(), 1, 0, false);
        first.append(1, StreamName::Stdout, b"on disk\n");
        for (from, begin) in [(0, 8), (500, 500)] {
            let second = OutputSink::open(handle.as_fd(), 2, from, false);
            assert_eq!(second.end(), begin);
        }
    }

    #[test]
    fn the_disk_is_tried_ever_less_often_while_it_refuses() {
        let mut returns = DiskRetry::new();
        let mut now = Instant::now();
        assert!(!returns.is_due(now), "it was not refused");
        let mut pauses = Vec::new();
        for _ in 0..8 {
            returns.on_refused(now);
            let due = returns.due.expect("a time");
            assert!(!returns.is_due(now) && returns.is_due(due));
            pauses.push((due - now).as_millis());
            now = due;
        }
        assert_eq!(pauses, [250, 500, 1_000, 2_000, 4_000, 8_000, 8_000, 8_000]);
        returns.on_recovered(now);
        assert!(!returns.is_due(now + Duration::from_secs(60)));
        returns.on_refused(now + Duration::from_secs(1));
        assert_eq!(
            returns.due,
            Some(now + Duration::from_secs(9)),
            "refused at once"
        );
        returns.on_recovered(now);
        returns.on_refused(now + Duration::from_secs(8));
        assert_eq!(
            returns.due,
            Some(now + Duration::from_millis(8_250)),
            "taken for long"
        );
    }
}
