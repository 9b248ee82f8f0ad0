//! What is exported: an execution, as a sequence of entries.

use ostler_journal::{Chunk, Gap};
use ostler_model::{ByteString, EventRecord, ExecutionId, Spec, Timestamp};
use serde::Serialize;

use crate::error::ExportError;

/// The execution to be exported.
#[derive(Debug, Clone, Copy)]
pub struct ExportSubject<'a> {
    /// Its id.
    pub id: ExecutionId,
    /// Its specification, where it is known.
    pub spec: Option<&'a Spec>,
    /// Its events.
    pub events: &'a [EventRecord],
}

/// One entry of an export, in chronological order.
#[derive(Debug, Clone, Copy)]
pub(crate) enum ExportEntry<'a> {
    /// The specification of the execution; the first entry.
    Execution {
        id: ExecutionId,
        spec: Option<&'a Spec>,
    },
    /// An event.
    Event(&'a EventRecord),
    /// A chunk of output.
    Output(&'a Chunk),
    /// A range of output that is gone.
    Gap(Gap),
}

pub(crate) trait EntrySink {
    fn entry(&mut self, entry: &ExportEntry<'_>) -> Result<(), ExportError>;
}

/// An entry as JSON spells it; YAML uses the same fields.
#[derive(Debug, Serialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub(crate) enum EntryJson<'a> {
    Execution {
        id: ExecutionId,
        #[serde(skip_serializing_if = "Option::is_none")]
        spec: Option<&'a Spec>,
    },
    Event(&'a EventRecord),
    Output {
        at: Timestamp,
        stream: ostler_model::StreamName,
        offset: u64,
        /// A string where the bytes are UTF-8, otherwise `{"base64": …}`.
        data: ByteString,
    },
    Gap {
        from: u64,
        to: u64,
    },
}

impl<'a> From<&ExportEntry<'a>> for EntryJson<'a> {
    fn from(entry: &ExportEntry<'a>) -> Self {
        match *entry {
            ExportEntry::Execution { id, spec } => Self::Execution { id, spec },
            ExportEntry::Event(record) => Self::Event(record),
            ExportEntry::Gap(gap) => Self::Gap {
                from: gap.from,
                to: gap.to,
            },
            ExportEntry::Output(chunk) => Self::Output {
                at: chunk.at,
                stream: chunk.stream,
                offset: chunk.offset,
                data: ByteString::from(chunk.bytes.as_slice()),
            },
        }
    }
}
