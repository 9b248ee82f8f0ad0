//! Following the output of one execution.

use ostler_journal::follow::Follower as Reader;
use ostler_journal::{BytePage, StreamSet};
use ostler_model::Cursor;

use crate::entry::Watching;
use crate::error::Error;

/// Output as it comes. While it lives, the execution's driver is told of output; nobody else
/// is woken.
#[derive(Debug)]
pub struct Follower {
    reader: Reader,
    _watching: Watching,
}

impl Follower {
    pub(crate) const fn new(reader: Reader, watching: Watching) -> Self {
        Self {
            reader,
            _watching: watching,
        }
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
        Ok(self.reader.next().await?)
    }

    /// Where the next page begins.
    #[must_use]
    pub fn cursor(&self) -> Cursor {
        self.reader.cursor()
    }
}
