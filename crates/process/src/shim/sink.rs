//! Where output goes: the journal on disk, and a memory file when the disk refuses.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use ostler_journal::{MemorySegment, OutputWriter, SegmentLimits, WriteError};
use ostler_model::StreamName;

/// The output of one execution on its way to its files. Never fails: what cannot be kept is
/// counted.
#[derive(Debug)]
pub(crate) struct Sink {
    disk: Option<OutputWriter>,
    memory: Option<MemorySegment>,
    error: Option<String>,
    dropped_bytes: u64,
}

/// The moment the disk first refused.
#[derive(Debug)]
pub(crate) struct Refusal {
    pub(crate) detail: String,
    /// The offset at which the memory file begins, where one could be had.
    pub(crate) base: Option<u64>,
}

impl Sink {
    /// Opens the journal in `dir`; a later attempt goes on where the last one ended.
    pub(crate) fn open(dir: BorrowedFd<'_>, attempt: u32) -> Self {
        let limits = SegmentLimits::default();
        let opened = if attempt <= 1 {
            OutputWriter::create(dir, limits)
        } else {
            OutputWriter::resume(dir, limits)
        };
        let (disk, error) = match opened {
            Ok(disk) => (Some(disk), None),
            Err(error) => (None, Some(error.to_string())),
        };
        Self {
            disk,
            memory: None,
            error,
            dropped_bytes: 0,
        }
    }

    /// Appends; tells when the disk refused for the first time.
    pub(crate) fn append(
        &mut self,
        at_ns: i64,
        stream: StreamName,
        bytes: &[u8],
    ) -> Option<Refusal> {
        if bytes.is_empty() {
            return None;
        }
        if let Some(memory) = &mut self.memory {
            if memory.append(at_ns, stream, bytes).is_err() {
                self.dropped_bytes += bytes.len() as u64;
            }
            return None;
        }
        let Some(disk) = &mut self.disk else {
            self.dropped_bytes += bytes.len() as u64;
            return None;
        };
        match disk.append(at_ns, stream, bytes) {
            Ok(_) => None,
            Err(error) => Some(self.go_on_in_memory(&error, (at_ns, stream, bytes))),
        }
    }

    fn go_on_in_memory(
        &mut self,
        error: &WriteError,
        (at_ns, stream, bytes): (i64, StreamName, &[u8]),
    ) -> Refusal {
        let detail = error.to_string();
        self.error = Some(detail.clone());
        self.memory = self
            .disk
            .as_ref()
            .and_then(|disk| MemorySegment::after(disk).ok());
        match &mut self.memory {
            Some(memory) => {
                if memory.append(at_ns, stream, bytes).is_err() {
                    self.dropped_bytes += bytes.len() as u64;
                }
            }
            None => {
                self.disk = None;
                self.dropped_bytes += bytes.len() as u64;
            }
        }
        let base = self.memory.as_ref().map(MemorySegment::base);
        Refusal { detail, base }
    }

    /// The journal's end.
    pub(crate) fn end(&self) -> u64 {
        match (&self.memory, &self.disk) {
            (Some(memory), _) => memory.end(),
            (None, Some(disk)) => disk.end(),
            (None, None) => 0,
        }
    }

    /// Why output could not be written, where it could not.
    pub(crate) fn error(&self) -> Option<&str> {
        self.error.as_deref()
    }

    /// Output bytes that are on no disk.
    pub(crate) fn lost_bytes(&self) -> u64 {
        let in_memory = self
            .memory
            .as_ref()
            .map_or(0, |memory| memory.end() - memory.base());
        self.dropped_bytes + in_memory
    }

    /// The memory file and the offset it begins at, once output goes there.
    pub(crate) fn memory(&self) -> Option<(u64, OwnedFd)> {
        let memory = self.memory.as_ref()?;
        let descriptor = memory.as_fd().as_fd().try_clone_to_owned().ok()?;
        Some((memory.base(), descriptor))
    }
}
