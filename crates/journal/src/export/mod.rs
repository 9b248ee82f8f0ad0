//! Export of journals to other formats. The segments on disk stay authoritative.

mod asciicast;
mod avro;
mod entry;
mod formats;
mod jsonl;
mod merge;
mod yaml;

pub use formats::{ExportError, Format, Subject, UnknownFormat, export};

pub(crate) use avro::AvroSink;
pub(crate) use entry::{EntrySink, ExportEntry};
pub(crate) use jsonl::JsonlSink;
pub(crate) use merge::Merge;
pub(crate) use yaml::YamlSink;
