//! The JSON lines format: one JSON object on each line.

use std::io::Write;

use crate::entry::{EntryJson, EntrySink, ExportEntry};
use crate::error::ExportError;

/// Writes entries as lines.
pub(crate) struct JsonlSink<W: Write>(pub(crate) W);

impl<W: Write> EntrySink for JsonlSink<W> {
    fn entry(&mut self, entry: &ExportEntry<'_>) -> Result<(), ExportError> {
        let mut line = serde_json::to_vec(&EntryJson::from(entry))?;
        line.push(b'\n');
        Ok(self.0.write_all(&line)?)
    }
}
