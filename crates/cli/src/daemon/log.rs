//! The daemon's log on standard error, which may be on a full disk or closed.

use std::io::{self, Write};
use std::sync::atomic::{AtomicU64, Ordering};

use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::MakeWriter;

use crate::output::StderrWriter;

/// The filter if the configured one is invalid.
const FALLBACK_FILTER: &str = "info";
/// The number of lines that could not be written and are not reported in the log yet.
static LOST_LINES: AtomicU64 = AtomicU64::new(0);

/// Starts logging with this filter. Lines that cannot be written are counted; the count is logged
/// before the next line that can be written.
pub(super) fn start(filter: &str) {
    let parsed = EnvFilter::try_new(filter);
    let filter_error = parsed.as_ref().err().map(ToString::to_string);
    let log = tracing_subscriber::fmt()
        .with_env_filter(parsed.unwrap_or_else(|_| EnvFilter::new(FALLBACK_FILTER)))
        // The library would use `eprintln!`, which panics if standard error fails too.
        .log_internal_errors(false)
        .with_ansi(false);
    // A second subscriber in one process (tests) is no reason to fail.
    drop(log.with_writer(LogWriter(StderrWriter::new)).try_init());
    if let Some(error) = filter_error {
        tracing::warn!(filter, error, "the log filter cannot be read");
    }
}

/// Writes lines to what the function opens; never fails.
#[derive(Debug, Clone, Copy)]
struct LogWriter<F>(F);

impl<F: Fn() -> W, W: Write> MakeWriter<'_> for LogWriter<F> {
    type Writer = LineWriter<W>;

    fn make_writer(&self) -> Self::Writer {
        LineWriter((self.0)(), &LOST_LINES)
    }
}

/// Receives one whole line in each write.
#[derive(Debug)]
struct LineWriter<W>(W, &'static AtomicU64);

impl<W: Write> Write for LineWriter<W> {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let lost = self.1.load(Ordering::Relaxed);
        if lost > 0 {
            // A partly written line is terminated first.
            let message = format!("\n{lost} log lines could not be written\n");
            if self.0.write_all(message.as_bytes()).is_ok() {
                self.1.fetch_sub(lost, Ordering::Relaxed);
            }
        }
        if self.0.write_all(line).is_err() {
            self.1.fetch_add(1, Ordering::Relaxed);
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A simulated disk that accepts this many bytes.
    struct Disk {
        text: Vec<u8>,
        room: usize,
    }

    impl Write for &mut Disk {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let taken = bytes.len().min(self.room);
            if taken == 0 {
                return Err(io::ErrorKind::StorageFull.into());
            }
            self.room -= taken;
            self.text.extend_from_slice(&bytes[..taken]);
            Ok(taken)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn lines_that_cannot_be_written_are_counted_and_reported_later() {
        static LOST: AtomicU64 = AtomicU64::new(0);
        let mut disk = Disk {
            text: Vec::new(),
            room: 10,
        };
        for line in ["one\n", "two two two\n", "three\n"] {
            LineWriter(&mut disk, &LOST)
                .write_all(line.as_bytes())
                .unwrap();
        }
        assert_eq!(disk.text, b"one\ntwo tw");
        disk.room = 1_000;
        LineWriter(&mut disk, &LOST).write_all(b"four\n").unwrap();
        let expected = "one\ntwo tw\n2 log lines could not be written\nfour\n";
        assert_eq!(String::from_utf8(disk.text).unwrap(), expected);
    }
}
