//! How much of an output a report can hold. What is beyond a limit is counted or cut, never an
//! error.

/// Bytes of a line that are examined; what a tool reports is at the beginning of a line.
pub const LINE_BYTES: usize = 8 * 1024;
/// Diagnostics that are kept.
pub const DIAGNOSTICS: usize = 10_000;
/// Diagnostics of severity error that are kept when [`DIAGNOSTICS`] are there.
pub const MORE_ERRORS: usize = 10_000;
/// Tests that are kept.
pub const TESTS: usize = 50_000;
/// Tests that failed that are kept when [`TESTS`] are there.
pub const MORE_FAILED_TESTS: usize = 10_000;
/// Attempts of one test that are kept; the last one replaces the one before it.
pub const ATTEMPTS: usize = 16;
/// Bytes of the name of a test, a suite or a file.
pub const NAME_BYTES: usize = 1024;
/// Bytes of a message in one line.
pub const MESSAGE_BYTES: usize = 1024;
/// Bytes of the text of a failed test: its panic, its assertion, its traceback.
pub const DETAILS_BYTES: usize = 4 * 1024;
/// Bytes of all texts in a report.
pub const REPORT_BYTES: usize = 16 * 1024 * 1024;
/// Entries that a parser keeps until it knows where they belong: tests whose package is named
/// after them, failures whose test is.
pub const PENDING: usize = 10_000;

/// The beginning of `text` in at most `bytes` bytes.
pub(crate) fn cut(text: &str, bytes: usize) -> &str {
    &text[..text.floor_char_boundary(bytes)]
}
