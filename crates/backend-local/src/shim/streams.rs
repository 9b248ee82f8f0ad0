//! The streams of a command: output is read and passed through the redactor to the sink; input that
//! was written is recorded there, too, where that is requested.

use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use ostler_backend::output_sink::OutputSink;
use ostler_backend::redact::{HOLD_BACK_MS, MASK, Redactor, SecretFinder};
use ostler_model::StreamName;
use rustix::io::Errno;

use super::output_source::OutputSource;
use crate::sys::time;

/// The size of a read in bytes, and the size a pipe is enlarged to when its reader falls behind.
pub(crate) const READ_BYTES: usize = 256 * 1024;
/// A pipe's default capacity; a read of this many bytes means that it was full.
const PIPE_BYTES: usize = 64 * 1024;
/// Bytes per read while output goes to memory, which is small.
const MEMORY_READ_BYTES: usize = 64 * 1024;
/// The most that is read at the leader's end: more than any pipe holds.
const DRAIN_BYTES: usize = 4 * 1024 * 1024;

/// One stream of the command.
#[derive(Debug)]
struct OutputStream {
    name: StreamName,
    source: OutputSource,
    redactor: Redactor,
    flush_at: Option<Instant>,
    enlarged: bool,
}

/// Both streams, or the terminal.
#[derive(Debug)]
pub(crate) struct OutputStreams {
    streams: Vec<OutputStream>,
    secrets: Option<SecretFinder>,
    /// Redacts the recorded input; none where input is not recorded.
    input: Option<Redactor>,
}

impl OutputStreams {
    /// The streams read from these descriptors, which must not block.
    pub(crate) fn new(
        sources: impl IntoIterator<Item = (StreamName, OwnedFd)>,
        secrets: Option<SecretFinder>,
    ) -> Self {
        let stream = |(name, source)| OutputStream {
            name,
            source: OutputSource::Open(source),
            redactor: Redactor::default(),
            flush_at: None,
            enlarged: name == StreamName::Pty,
        };
        Self {
            streams: sources.into_iter().map(stream).collect(),
            secrets,
            input: None,
        }
    }

    /// The same, recording input or not.
    pub(crate) fn with_input_record(mut self, is_recorded: bool) -> Self {
        self.input = is_recorded.then(Redactor::default);
        self
    }

    /// Whether input is recorded.
    pub(crate) const fn records_input(&self) -> bool {
        self.input.is_some()
    }

    /// Records bytes that were written as input, where that is requested. What may become a secret
    /// is held back until more is written: keys arrive one by one.
    pub(crate) fn record_input(&mut self, bytes: &[u8], sink: &mut OutputSink) {
        let Some(redactor) = &mut self.input else {
            return;
        };
        let clean = match &self.secrets {
            Some(secrets) => redactor.push(secrets, bytes),
            None => bytes,
        };
        sink.append(time::now_ns(), StreamName::Stdin, clean);
    }

    /// Records what is held back of the input at its end; the mask instead, where that is more than
    /// the first few bytes of a secret.
    fn flush_input(&mut self, sink: &mut OutputSink) {
        if let (Some(redactor), Some(secrets)) = (&mut self.input, &self.secrets)
            && redactor.has_pending()
        {
            let is_short = redactor.needs_release();
            let rest = redactor.flush(secrets);
            let rest = if is_short { rest } else { MASK };
            sink.append(time::now_ns(), StreamName::Stdin, rest);
        }
    }

    /// The descriptors to poll, with their indices.
    pub(crate) fn polled(&self) -> impl Iterator<Item = (usize, &OwnedFd)> {
        self.streams
            .iter()
            .enumerate()
            .filter_map(|(place, stream)| Some((place, stream.source.polled()?)))
    }

    /// Whether no process has the other ends open now. Those of a terminal may be opened again.
    pub(crate) fn are_closed(&self) -> bool {
        self.streams.iter().all(|stream| !stream.source.is_open())
    }

    /// The terminal's descriptor, where there is one.
    pub(crate) fn terminal(&self) -> Option<&OwnedFd> {
        let terminal = self
            .streams
            .iter()
            .find(|stream| stream.name == StreamName::Pty)?;
        terminal.source.descriptor()
    }

    /// When held-back output must be flushed.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.streams
            .iter()
            .filter_map(|stream| stream.flush_at)
            .min()
    }

    /// Reads once from the stream at `index` and returns the number of bytes.
    pub(crate) fn read(&mut self, index: usize, buffer: &mut [u8], sink: &mut OutputSink) -> usize {
        let stream = &mut self.streams[index];
        stream.source.clear_events();
        let Some(source) = stream.source.descriptor() else {
            return 0;
        };
        let limit = if sink.is_in_memory() {
            MEMORY_READ_BYTES.min(buffer.len())
        } else {
            buffer.len()
        };
        let buffer = &mut buffer[..limit];
        match rustix::io::retry_on_intr(|| rustix::io::read(source, &mut *buffer)) {
            Ok(0) | Err(Errno::IO) => {
                stream.source.mark_closed(stream.name == StreamName::Pty);
                stream.flush(self.secrets.as_ref(), sink);
                0
            }
            Ok(len) => {
                if len >= PIPE_BYTES && !stream.enlarged && !sink.is_in_memory() {
                    stream.enlarged = true;
                    let _refused = rustix::pipe::fcntl_setpipe_size(source, READ_BYTES);
                }
                stream.source.mark_open();
                stream.push(self.secrets.as_ref(), &buffer[..len], sink);
                len
            }
            Err(Errno::AGAIN) => {
                stream.source.mark_open();
                0
            }
            Err(_) => 0,
        }
    }

    /// Reads everything available now and returns the number of bytes.
    pub(crate) fn drain(&mut self, buffer: &mut [u8], sink: &mut OutputSink) -> usize {
        let mut total = 0;
        for index in 0..self.streams.len() {
            let mut from_this = 0;
            while from_this < DRAIN_BYTES {
                let bytes = self.read(index, buffer, sink);
                if bytes == 0 {
                    break;
                }
                from_this += bytes;
            }
            total += from_this;
        }
        total
    }

    /// Appends the bytes whose retention time is over, or all retained bytes.
    pub(crate) fn flush(&mut self, due: Option<Instant>, sink: &mut OutputSink) {
        if due.is_none() {
            self.flush_input(sink);
        }
        let secrets = self.secrets.as_ref();
        for stream in &mut self.streams {
            match (stream.flush_at, due) {
                (Some(at), Some(now)) if now >= at => stream.release(secrets, sink),
                (Some(_) | None, Some(_)) => {}
                (_, None) => stream.flush(secrets, sink),
            }
        }
    }
}

impl OutputStream {
    fn push(&mut self, secrets: Option<&SecretFinder>, bytes: &[u8], sink: &mut OutputSink) {
        let now = time::now_ns();
        let Some(secrets) = secrets else {
            return sink.append(now, self.name, bytes);
        };
        sink.append(now, self.name, self.redactor.push(secrets, bytes));
        self.flush_at = if self.redactor.needs_release() {
            let hold = || Instant::now() + Duration::from_millis(HOLD_BACK_MS);
            Some(self.flush_at.unwrap_or_else(hold))
        } else {
            None
        };
    }

    fn release(&mut self, secrets: Option<&SecretFinder>, sink: &mut OutputSink) {
        self.flush_at = None;
        if let Some(secrets) = secrets {
            sink.append(
                time::now_ns(),
                self.name,
                self.redactor.release_pending(secrets),
            );
        }
    }

    fn flush(&mut self, secrets: Option<&SecretFinder>, sink: &mut OutputSink) {
        self.flush_at = None;
        if let Some(secrets) = secrets {
            sink.append(time::now_ns(), self.name, self.redactor.flush(secrets));
        }
    }
}
