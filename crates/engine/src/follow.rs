//! Following the output of one execution.

use std::time::Duration;

use ostler_journal::follow::Follower as Reader;
use ostler_journal::{BytePage, StreamSet};
use ostler_model::Cursor;
use tokio::time::Instant;

use crate::entry::{Lossless, Watching};
use crate::error::Error;
use crate::short::{READ_WAIT_MS, is_none_left, room_to_read};

/// Output as it comes. While it lives, the execution's driver is told of output; nobody else
/// is woken.
#[derive(Debug)]
pub struct Follower {
    reader: Reader,
    lossless: Option<Lossless>,
    watching: Watching,
}

impl Follower {
    pub(crate) const fn new(reader: Reader, watching: Watching) -> Self {
        Self {
            reader,
            lossless: None,
            watching,
        }
    }

    /// Misses nothing: where the disk is full, the command waits for this reader, as for that
    /// of a pipe, rather than that what it has not read yet is dropped.
    #[must_use]
    pub fn lossless(mut self) -> Self {
        let offset = self.reader.cursor().offset;
        self.lossless = Some(Lossless::new(&self.watching.0, offset));
        self
    }

    /// Only these streams; the default is what the command printed.
    #[must_use]
    pub fn streams(mut self, streams: StreamSet) -> Self {
        self.reader = self.reader.streams(streams);
        self
    }

    /// At most this many bytes in a page; more than the reader's own limit changes nothing.
    #[must_use]
    pub fn page_bytes(mut self, bytes: u64) -> Self {
        self.reader = self.reader.page_bytes(bytes);
        self
    }

    /// The next page with bytes or a gap in it; waits for one. None once the execution has
    /// finished and everything is read. Cancel safe.
    ///
    /// # Errors
    /// [`Error::Output`] when the files cannot be read.
    pub async fn next(&mut self) -> Result<Option<BytePage>, Error> {
        if let Some(lossless) = &self.lossless {
            lossless.read_to(self.reader.cursor().offset);
        }
        let mut patience = None;
        loop {
            match self.reader.next().await {
                Err(error) if is_none_left(&error) => {
                    let wait = Duration::from_millis(READ_WAIT_MS);
                    let until = *patience.get_or_insert_with(|| Instant::now() + wait);
                    if Instant::now() >= until {
                        return Err(error.into());
                    }
                }
                page => return Ok(page?),
            }
            room_to_read().await;
        }
    }

    /// Where the next page begins.
    #[must_use]
    pub fn cursor(&self) -> Cursor {
        self.reader.cursor()
    }
}
