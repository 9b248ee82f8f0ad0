//! Export of journals to other formats. The segments on disk stay authoritative.

mod asciicast;
mod avro;
mod entry;
mod formats;
mod jsonl;
mod merge;
mod yaml;

pub use formats::{ExportError, ExportSubject, Format, UnknownFormat, export};

pub(crate) use avro::AvroSink;
pub(crate) use entry::{EntrySink, ExportEntry};
pub(crate) use jsonl::JsonlSink;
pub(crate) use merge::EntryMerge;
pub(crate) use yaml::YamlSink;
