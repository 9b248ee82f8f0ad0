//! What an export consists of.

use ostler_model::{EventRecord, ExecutionId, Spec, Text, Timestamp};
use serde::Serialize;

use super::formats::ExportError;
use crate::query::{Chunk, Gap};

/// One entry of an export, in the order in which things happened.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Entry<'a> {
    /// What was run; the first entry.
    Execution {
        id: ExecutionId,
        spec: Option<&'a Spec>,
    },
    /// What happened.
    Event(&'a EventRecord),
    /// What the command printed.
    Output(&'a Chunk),
    /// Bytes that are gone.
    Gap(Gap),
}

/// Takes entries.
pub(crate) trait EntrySink {
    fn entry(&mut self, entry: &Entry<'_>) -> Result<(), ExportError>;
}

/// An entry as JSON spells it; YAML uses the same fields.
#[derive(Debug, Serialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub(crate) enum Spelled<'a> {
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
        data: Text,
    },
    Gap {
        from: u64,
        to: u64,
    },
}

impl<'a> From<&Entry<'a>> for Spelled<'a> {
    fn from(entry: &Entry<'a>) -> Self {
        match *entry {
            Entry::Execution { id, spec } => Self::Execution { id, spec },
            Entry::Event(record) => Self::Event(record),
            Entry::Gap(gap) => Self::Gap {
                from: gap.from,
                to: gap.to,
            },
            Entry::Output(chunk) => Self::Output {
                at: chunk.at,
                stream: chunk.stream,
                offset: chunk.offset,
                data: Text::from(chunk.bytes.as_slice()),
            },
        }
    }
}
