//! How much of an output a report can hold. What is beyond a limit is counted or cut, never an
//! error.

/// Bytes of a line that are examined; what a tool reports is at the beginning of a line.
pub const LINE_BYTES: usize = 8 * 1024;
/// Diagnostics that are kept.
pub const DIAGNOSTICS: usize = 10_000;
/// Diagnostics of severity error that are kept when [`DIAGNOSTICS`] are there.
pub const MORE_ERRORS: usize = 10_000;
/// Bytes of the name of a test, a suite or a file.
pub const NAME_BYTES: usize = 1024;
/// Bytes of a message in one line.
pub const MESSAGE_BYTES: usize = 1024;
/// Bytes of all texts in a report.
pub const REPORT_BYTES: usize = 16 * 1024 * 1024;

/// The beginning of `text` in at most `bytes` bytes.
pub(crate) fn cut(text: &str, bytes: usize) -> &str {
    &text[..text.floor_char_boundary(bytes)]
}
