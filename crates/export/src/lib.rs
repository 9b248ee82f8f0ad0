//! Journals in formats of other programs: a whole one ([`export()`]), or a copy that is kept up to
//! date ([`Mirror`]); and what tools reported in them ([`read_report`]). The segments on disk stay
//! authoritative.
//!
//! Must never know of the engine, processes or HTTP.
#![forbid(unsafe_code)]

mod asciicast;
mod avro;
mod entry;
mod error;
mod export;
mod extent;
mod format;
mod jsonl;
mod merge;
mod mirror;
mod report;
mod yaml;

pub use entry::ExportSubject;
pub use error::ExportError;
pub use export::export;
pub use format::{Format, UnknownFormat};
pub use mirror::Mirror;
pub use report::{JournalReport, read_report};
