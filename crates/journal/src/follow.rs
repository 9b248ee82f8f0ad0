//! Following a journal without polling: the observer of the writer wakes followers.

use ostler_model::Cursor;
use tokio::sync::watch;

use crate::error::ReadError;
use crate::journal::Journal;
use crate::query::{BytePage, ByteQuery, Gap, PAGE_BYTES, StreamSet};

/// How far the writer is known to have written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct JournalEnd {
    /// The journal's end.
    pub end: u64,
    /// Whether nothing will follow.
    pub finished: bool,
}

/// Reads a journal as it grows, each follower with its own cursor. While nothing is printed, it
/// makes no system call and is not woken.
#[derive(Debug)]
pub struct JournalFollower {
    journal: Journal,
    end_rx: watch::Receiver<JournalEnd>,
    query: ByteQuery,
    /// Whether everything was read: the files are not read again before there is more.
    caught_up: bool,
    done: bool,
}

impl JournalFollower {
    /// Follows what the command prints from `starting_at` on.
    #[must_use]
    pub const fn new(journal: Journal, from: Cursor, end_rx: watch::Receiver<JournalEnd>) -> Self {
        Self {
            journal,
            end_rx,
            query: ByteQuery::starting_at(from),
            caught_up: false,
            done: false,
        }
    }

    /// Restricts the output to these streams.
    #[must_use]
    pub const fn streams(mut self, streams: StreamSet) -> Self {
        self.query.streams = streams;
        self
    }

    /// The most bytes in a page; [`PAGE_BYTES`] otherwise.
    #[must_use]
    pub const fn page_bytes(mut self, bytes: u64) -> Self {
        self.query.max_bytes = if bytes < PAGE_BYTES {
            bytes
        } else {
            PAGE_BYTES
        };
        self
    }

    /// Where the next page begins.
    #[must_use]
    pub const fn cursor(&self) -> Cursor {
        self.query.from
    }

    /// The next page with bytes or a gap in it; waits for one. None once the journal is finished
    /// and read, once the observer of its writer is gone, or where the files are damaged. Cancel
    /// safe.
    ///
    /// # Errors
    /// When the files cannot be read.
    pub async fn next(&mut self) -> Result<Option<BytePage>, ReadError> {
        while !self.done {
            if self.caught_up && !self.wait_for_more().await {
                self.done = true;
                break;
            }
            // The end is taken before reading: the bytes before it are on disk then.
            let journal_end = *self.end_rx.borrow_and_update();
            let mut page = self.journal.read(&self.query)?;
            self.done = page.damaged.is_some() || (journal_end.finished && !page.more);
            if self.done && page.chunks.is_empty() {
                append_final_gap(&mut page, journal_end.end);
            } else if self.done && page.next.offset < journal_end.end {
                // The gap comes in a page of its own, after these chunks.
                self.done = false;
            }
            self.query.from = page.next;
            self.caught_up = !page.more && !journal_end.finished;
            if !page.chunks.is_empty() || page.gap.is_some() {
                return Ok(Some(page));
            }
        }
        Ok(None)
    }

    /// Waits until there is more after the cursor; false when the writer is no longer observed.
    async fn wait_for_more(&mut self) -> bool {
        let offset = self.query.from.offset;
        let result = self
            .end_rx
            .wait_for(|mark| mark.finished || mark.end > offset);
        result.await.is_ok()
    }
}

/// Reports bytes that the writer counted and no file holds, at the end of a finished journal.
fn append_final_gap(page: &mut BytePage, end: u64) {
    if page.next.offset < end {
        let from = page.gap.map_or(page.next.offset, |gap| gap.from);
        page.gap = Some(Gap { from, to: end });
        page.next.offset = end;
    }
}
