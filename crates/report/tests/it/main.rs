//! Tests of the public interface.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod diagnostics;
mod hostile;
mod support;
mod test_results;
mod writers;
