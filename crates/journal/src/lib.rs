//! Journals and the ledger on disk: the append-only log of one execution (output and events),
//! and the append-only, hash-chained log of every request.
//!
//! The write side ([`OutputWriter`], [`MemorySegment`], and [`FallbackWriter`], which switches from
//! one to the other and back) is synchronous, single-threaded and does not allocate per append: it
//! runs in shims. [`EventWriter`] and [`Ledger`] belong to the daemon. The read side is
//! [`Journal`], a cheap handle whose every result carries the [`Cursor`](ostler_model::Cursor) at
//! which the next one continues.
//!
//! Byte layouts are described in `docs/design/001-journal-format.md`. This crate must never know
//! of processes or HTTP, and of tokio only in [`follow`].
#![forbid(unsafe_code)]

mod active_segment;
pub mod atomic_file;
mod compress;
pub mod decode;
mod disk_checks;
pub mod durability;
pub mod error;
pub mod events;
pub mod fallback;
mod files;
mod filter;
pub mod follow;
mod gaps;
mod index;
pub mod journal;
pub mod ledger;
mod line_range;
mod line_start;
mod lines;
mod little_endian;
pub mod memory_ring;
pub mod numbered;
mod open_files;
mod open_line;
mod page_builder;
pub mod pattern;
pub mod query;
mod reach;
mod read;
mod record_iter;
mod regular_file;
mod repair;
mod restore;
pub mod retention;
mod ring_snapshot;
mod scan;
mod segment;
mod snapshot;
mod tail;
#[cfg(test)]
mod test_disk;
mod write_progress;
pub mod writer;

pub use atomic_file::AtomicFile;
pub use decode::{Decoder, Encoding, UnknownEncoding, encoding_for_label};
pub use durability::Durability;
pub use error::{ReadError, WriteError};
pub use events::{EVENTS_FILE, EventWriter, read_events};
pub use fallback::FallbackWriter;
pub use follow::{JournalEnd, JournalFollower};
pub use journal::{Journal, Stats, StreamStats};
pub use ledger::{
    AuditFinding, AuditReport, HeadKey, HeadWriter, Ledger, LedgerCursor, LedgerEntry, LedgerPage,
    LedgerReader, LedgerRecord,
};
pub use memory_ring::{MemorySegment, MemorySlot};
pub use numbered::{
    LinePosition, LineSearch, NumberedLine, NumberedPage, NumberedQuery, OutputShape, SearchPage,
    SearchedLines, ShapeBucket,
};
pub use pattern::{BudgetExceeded, Pattern, PatternError, PlainText};
pub use query::{
    BytePage, ByteQuery, Chunk, Gap, GrepMode, JournalLine, LinePage, LineQuery, OpenLineMode,
    StreamSet, TrimmedRange,
};
pub use writer::{OutputWriter, SegmentLimits};
