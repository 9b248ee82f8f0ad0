//! The read side of one execution's journal.

use std::io::ErrorKind;
use std::ops::Range;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;

use ostler_model::{StreamName, Timestamp};

use crate::error::{ReadError, WriteError};
use crate::memory_ring::MemorySlot;
use crate::numbered::{self, LineSearch, NumberedPage, NumberedQuery, OutputShape, SearchPage};
use crate::open_files::OpenFiles;
use crate::query::{BytePage, ByteQuery, Gap, LinePage, LineQuery, TrimmedRange, stream_code};
use crate::segment::SegmentError;
use crate::snapshot::{JournalSnapshot, with_snapshot};
use crate::{files, gaps, lines, read, retention};

/// A cheap handle to the journal of one execution. Readers need no lock: they tolerate a writer,
/// a trim and a compression at every instant. Each call reads the files as they are at that time.
#[derive(Debug, Clone)]
pub struct Journal {
    dir: Arc<OwnedFd>,
    memory: MemorySlot,
    open_files: Option<Arc<OpenFiles>>,
}

/// How much one stream printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StreamStats {
    /// Bytes, trimmed ones included. Bytes lost to a full disk are not known by stream.
    pub bytes: u64,
    /// The number of newlines, trimmed ones included.
    pub newlines: u64,
    /// Whether its last line has no newline yet.
    pub open_line: bool,
}

/// The size of a journal.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Stats {
    /// The share of each stream, in the order stdout, stderr, pty, stdin; see [`Stats::for_stream`].
    pub streams: [StreamStats; 4],
    /// The valid end as an offset.
    pub end: u64,
    /// The offset of the oldest byte kept.
    pub start: u64,
    /// The bytes of `0..end` that are readable.
    pub kept_bytes: u64,
    /// The bytes of `0..end` that are gone.
    pub dropped_bytes: u64,
    /// When the newest byte was read from the command.
    pub last_at: Option<Timestamp>,
}

impl Stats {
    /// The share of one stream.
    #[must_use]
    pub const fn for_stream(&self, stream: StreamName) -> StreamStats {
        self.streams[stream_code(stream) as usize]
    }
}

impl Journal {
    /// Opens the journal of the execution in `dir`. There need not be any output yet.
    ///
    /// # Errors
    /// When the directory does not exist.
    pub fn open(dir: &Path) -> Result<Self, ReadError> {
        let path = || dir.display().to_string();
        let opened = files::open_dir(dir).map_err(|error| {
            let kind = error.kind();
            if kind == ErrorKind::NotFound || kind == ErrorKind::NotADirectory {
                return ReadError::Missing { dir: path() };
            }
            ReadError::io("open", path(), error)
        })?;
        Ok(Self {
            dir: Arc::new(opened),
            memory: MemorySlot::default(),
            open_files: None,
        })
    }

    /// This journal, with the files of its newest segment kept open from one call to the next: two
    /// descriptors, shared by the clones of this handle, until [`Journal::close_files`] or until
    /// the last clone is dropped. Results are those of the files as they are all the same.
    #[must_use]
    pub fn with_open_files(self) -> Self {
        Self {
            open_files: Some(Arc::default()),
            ..self
        }
    }

    /// Closes the files kept open; the next call opens them anew. To be called after output was
    /// dropped: the space of a file is freed only once no process has it open.
    pub fn close_files(&self) {
        if let Some(open) = &self.open_files {
            open.close();
        }
    }

    /// This journal, continued by the memory file of a [`MemorySegment`](crate::MemorySegment). A
    /// file of another format changes nothing.
    #[must_use]
    pub fn with_memory(self, memory: OwnedFd) -> Self {
        let slot = MemorySlot::default();
        slot.set(memory);
        self.with_memory_slot(slot)
    }

    /// This journal, continued by the memory segment that is in `slot` at the time of a read.
    #[must_use]
    pub fn with_memory_slot(self, slot: MemorySlot) -> Self {
        Self {
            memory: slot,
            ..self
        }
    }

    /// The valid end as an offset. The newest records are verified; damage further back is found
    /// when it is read, and reported as `invalid_data` in the result.
    ///
    /// # Errors
    /// When the files cannot be read.
    pub fn end(&self) -> Result<u64, ReadError> {
        self.view(|view| Ok(view.end))
    }

    /// The offset of the oldest byte kept.
    ///
    /// # Errors
    /// When the files cannot be read.
    pub fn start(&self) -> Result<u64, ReadError> {
        self.view(|view| view.start())
    }

    /// The oldest byte kept and the valid end, at one moment.
    ///
    /// # Errors
    /// When the files cannot be read.
    pub fn extent(&self) -> Result<Range<u64>, ReadError> {
        self.view(|view| Ok(view.start()?..view.end))
    }

    /// The ranges that no segment holds before the valid end, in order.
    ///
    /// # Errors
    /// When the files cannot be read.
    pub fn gaps(&self) -> Result<Vec<Gap>, ReadError> {
        self.view(gaps::between_segments)
    }

    /// The gaps in a range of offsets, in order: what no segment holds, the damaged chunks in the
    /// first and the last mebibyte of the range, and those that readers have `found`.
    ///
    /// # Errors
    /// When the files cannot be read.
    pub fn gaps_within(&self, range: Range<u64>, found: &[Gap]) -> Result<Vec<Gap>, ReadError> {
        self.view(|view| gaps::within(view, range.clone(), found))
    }

    /// The size of the journal.
    ///
    /// # Errors
    /// When the files cannot be read.
    pub fn stats(&self) -> Result<Stats, ReadError> {
        self.view(stats)
    }

    /// Reads raw chunks from a cursor on.
    ///
    /// # Errors
    /// When the files cannot be read.
    pub fn read(&self, query: &ByteQuery) -> Result<BytePage, ReadError> {
        self.view(|view| read::page(view, query))
    }

    /// Reads lines.
    ///
    /// A line belongs to one stream. It is *in* a page when its last byte is at or after the page's
    /// beginning; within a page, lines are in the order of their first bytes. So a line that other
    /// streams' bytes split in two is returned whole, once, in the page in which it ends, and
    /// continuing at `next_record` yields each terminated line exactly once, also while the writer
    /// is in the middle of one.
    ///
    /// A last line without a newline is returned as [`unfinished`](crate::query::OpenLineMode)
    /// requires: not before it ends, as a preview that is repeated later, or finally; after that
    /// `next_record` is one beyond the end, so that a further call yields nothing. Where bytes are
    /// missing, the lines they cut are returned as they are, unterminated, and the page ends there;
    /// the next one begins after the gap.
    ///
    /// # Errors
    /// When the files cannot be read, or a backtracking pattern exceeds its budget.
    pub fn lines(&self, query: &LineQuery) -> Result<LinePage, ReadError> {
        self.view(|view| lines::page(view, query))
    }

    /// Reads lines of all output streams by their numbers.
    ///
    /// # Errors
    /// When the files cannot be read.
    pub fn numbered_lines(&self, query: &NumberedQuery) -> Result<NumberedPage, ReadError> {
        self.view(|view| numbered::page(view, query))
    }

    /// Searches a part of the output for lines with a match, in either direction.
    ///
    /// # Errors
    /// When the files cannot be read, or the pattern exceeds its budget.
    pub fn search_lines(&self, search: &LineSearch) -> Result<SearchPage, ReadError> {
        self.view(|view| numbered::search(view, search))
    }

    /// How many lines were printed when, in `buckets` slices of time. Reads the index only.
    ///
    /// # Errors
    /// When the files cannot be read.
    pub fn shape(&self, buckets: usize) -> Result<OutputShape, ReadError> {
        self.view(|view| numbered::shape(view, buckets))
    }

    /// Drops all present output, also while a writer appends. Line numbers and offsets continue.
    ///
    /// # Errors
    /// When the truncation point cannot be written or segments cannot be removed.
    pub fn clear(&self) -> Result<TrimmedRange, WriteError> {
        let (from, floor) = self.view(|view| Ok((view.start()?, view.as_floor()?)))?;
        retention::clear_below(self.dir.as_fd(), floor)?;
        Ok(TrimmedRange {
            from,
            to: floor.offset,
        })
    }

    /// The end of the output that was cleared, as an offset; 0 where none was.
    ///
    /// # Errors
    /// When the truncation point cannot be read.
    pub fn cleared_to(&self) -> Result<u64, ReadError> {
        let floor = files::read_floor(self.dir.as_fd());
        let floor = floor.map_err(|error| ReadError::io("read", files::FLOOR, error))?;
        Ok(floor.offset)
    }

    fn view<T>(
        &self,
        query: impl Fn(&JournalSnapshot<'_>) -> Result<T, SegmentError>,
    ) -> Result<T, ReadError> {
        let (memory, open) = (self.memory.get(), self.open_files.as_deref());
        with_snapshot(&self.dir, memory.as_deref(), open, query)
    }
}

fn stats(view: &JournalSnapshot<'_>) -> Result<Stats, SegmentError> {
    let start = view.start()?;
    let mut stats = Stats {
        end: view.end,
        start,
        ..Stats::default()
    };
    for slot in 0..view.len() {
        if let Some(segment) = view.valid_segment(slot)? {
            stats.kept_bytes += segment.end()?.saturating_sub(segment.base.max(view.floor));
        }
    }
    stats.dropped_bytes = stats.end.saturating_sub(stats.kept_bytes);
    let counters = view.as_floor()?.tallies;
    for (stream, counter) in stats.streams.iter_mut().zip(counters) {
        *stream = StreamStats {
            bytes: counter.bytes,
            newlines: counter.newlines,
            open_line: counter.open,
        };
    }
    if let Some(last) = view.len().checked_sub(1)
        && let Some(segment) = view.valid_segment(last)?
        && let Some(index) = segment.count.checked_sub(1)
    {
        let newest = segment.record(index)?;
        stats.last_at = newest.map(|record| read::timestamp(record.at_ns));
    }
    Ok(stats)
}
