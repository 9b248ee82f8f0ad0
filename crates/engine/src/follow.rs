//! Following the output of one execution.

use std::time::Duration;

use ostler_journal::follow::JournalFollower as Reader;
use ostler_journal::{BytePage, StreamSet};
use ostler_model::Cursor;
use tokio::time::Instant;

use crate::error::Error;
use crate::execution::{LosslessReader, OutputWatchGuard};
use crate::fd_shortage::{READ_WAIT_MS, is_out_of_fds, wait_for_free_fds};

/// A stream of output pages. While it exists, the execution's driver watches output; otherwise
/// output wakes no task.
#[derive(Debug)]
pub struct OutputFollower {
    reader: Reader,
    lossless: Option<LosslessReader>,
    watch_guard: OutputWatchGuard,
}

impl OutputFollower {
    pub(crate) const fn new(reader: Reader, watching: OutputWatchGuard) -> Self {
        Self {
            reader,
            lossless: None,
            watch_guard: watching,
        }
    }

    /// Makes the follower lossless: where the disk is full, the command waits for this reader, as
    /// for that of a pipe, so that unread output is not dropped.
    #[must_use]
    pub fn lossless(mut self) -> Self {
        let offset = self.reader.cursor().offset;
        self.lossless = Some(LosslessReader::new(&self.watch_guard.0, offset));
        self
    }

    /// Limits the follower to these streams; the default is what the command printed.
    #[must_use]
    pub fn streams(mut self, streams: StreamSet) -> Self {
        self.reader = self.reader.streams(streams);
        self
    }

    /// Limits a page to this many bytes; a value above the reader's own limit changes nothing.
    #[must_use]
    pub fn page_bytes(mut self, bytes: u64) -> Self {
        self.reader = self.reader.page_bytes(bytes);
        self
    }

    /// The next page with bytes or a gap in it; waits for one. None once the execution has finished
    /// and everything is read. Cancel safe.
    ///
    /// # Errors
    /// [`Error::Output`] when the files cannot be read.
    pub async fn next(&mut self) -> Result<Option<BytePage>, Error> {
        if let Some(lossless) = &self.lossless {
            lossless.set_read_offset(self.reader.cursor().offset);
        }
        let mut deadline = None;
        loop {
            match self.reader.next().await {
                Err(error) if is_out_of_fds(&error) => {
                    let timeout = Duration::from_millis(READ_WAIT_MS);
                    let deadline = *deadline.get_or_insert_with(|| Instant::now() + timeout);
                    if Instant::now() >= deadline {
                        return Err(error.into());
                    }
                }
                page => return Ok(page?),
            }
            wait_for_free_fds().await;
        }
    }

    /// The position at which the next page begins.
    #[must_use]
    pub fn cursor(&self) -> Cursor {
        self.reader.cursor()
    }
}
