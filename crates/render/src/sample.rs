//! Rows for tests.

use ostler_model::{StreamName, Timestamp};

use super::row::OutputRow;

/// A row of standard output for each of these texts, one line each.
pub(super) fn sample_rows<T: AsRef<str>>(texts: &[T]) -> Vec<OutputRow> {
    let mut offset = 0;
    let mut rows = Vec::new();
    for text in texts {
        let text = text.as_ref();
        let bytes = text.len() as u64 + 1;
        rows.push(OutputRow {
            at: Timestamp::UNIX_EPOCH,
            stream: StreamName::Stdout,
            offset,
            lines: 1,
            repeats: 1,
            bytes,
            binary: false,
            is_cut: false,
            text: text.to_owned(),
        });
        offset += bytes;
    }
    rows
}
