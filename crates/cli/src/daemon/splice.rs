//! Lets a conversation go on that began with an earlier daemon.
//!
//! A client of the handshake era says `initialize` once, to a daemon that may be dead by its
//! next request. The first daemon therefore tells the front what the client said
//! ([`Note::Initialize`]); the front repeats it in the hello to the next daemon, which says
//! it to its own MCP service before the client's bytes and swallows the answer. A line that
//! died half read or half written with the earlier daemon is dropped or ended.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::mpsc;

use crate::hello::{Note, Resume};

/// The longest line that is looked at for an `initialize`.
const HANDSHAKE_BYTES: usize = 1024 * 1024;
/// An `initialize` is among the first lines, or never comes.
const HANDSHAKE_LINES: u32 = 8;
/// The longest line a client may have been in the middle of.
const LINE_BYTES: usize = 64 * 1024 * 1024;
const PIECE_BYTES: usize = 16 * 1024;
const INITIALIZED: &[u8] = br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;

/// What the client sends, with what it said to an earlier daemon before it.
#[derive(Debug)]
pub(crate) struct ClientInput<R> {
    inner: R,
    /// Bytes to be read before those of `inner`.
    ahead: Vec<u8>,
    /// How many of them were read.
    taken: usize,
    stage: Stage,
    notes: mpsc::Sender<Note>,
}

#[derive(Debug)]
enum Stage {
    /// The first line may be the end of one an earlier daemon began to read.
    Resync(Vec<u8>),
    /// One of the first lines may be the handshake.
    Watch { line: Vec<u8>, lines: u32 },
    /// Bytes pass.
    Through,
}

#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(borrow, default)]
    method: Option<std::borrow::Cow<'a, str>>,
    jsonrpc: std::borrow::Cow<'a, str>,
}

impl<R> ClientInput<R> {
    /// Reads from `inner`; handshakes go to `notes`.
    pub(crate) fn new(inner: R, resume: Option<&Resume>, notes: mpsc::Sender<Note>) -> Self {
        let ahead = resume
            .and_then(|resume| resume.initialize.as_deref())
            .map_or_else(Vec::new, handshake);
        let stage = match resume {
            Some(_) => Stage::Resync(Vec::new()),
            None => Stage::watch(),
        };
        Self {
            inner,
            ahead,
            taken: 0,
            stage,
            notes,
        }
    }

    fn serve_ahead(&mut self, buffer: &mut ReadBuf<'_>) -> bool {
        let left = &self.ahead[self.taken..];
        if left.is_empty() {
            return false;
        }
        let count = left.len().min(buffer.remaining());
        buffer.put_slice(&left[..count]);
        self.taken += count;
        if self.taken == self.ahead.len() {
            (self.ahead, self.taken) = (Vec::new(), 0);
        }
        true
    }

    fn watch(&mut self, bytes: &[u8]) {
        let Stage::Watch { line, lines } = &mut self.stage else {
            return;
        };
        for piece in bytes.split_inclusive(|&byte| byte == b'\n') {
            line.extend_from_slice(piece);
            if !piece.ends_with(b"\n") {
                break;
            }
            *lines += 1;
            if let Some(request) = initialize(line) {
                // A full queue means a front that does not read; then it cannot resume.
                drop(self.notes.try_send(Note::Initialize(request)));
                self.stage = Stage::Through;
                return;
            }
            line.clear();
        }
        if *lines >= HANDSHAKE_LINES || line.len() > HANDSHAKE_BYTES {
            self.stage = Stage::Through;
        }
    }
}

impl Stage {
    const fn watch() -> Self {
        Self::Watch {
            line: Vec::new(),
            lines: 0,
        }
    }
}

/// What is said to our own service in the client's stead.
fn handshake(initialize: &RawValue) -> Vec<u8> {
    [initialize.get().as_bytes(), b"\n", INITIALIZED, b"\n"].concat()
}

/// The line as JSON, where it is an `initialize` request.
fn initialize(line: &[u8]) -> Option<Box<RawValue>> {
    let envelope: Envelope<'_> = serde_json::from_slice(line).ok()?;
    if envelope.method.as_deref() != Some("initialize") {
        return None;
    }
    serde_json::from_slice(line).ok()
}

/// Whether a line is a message, and not the end of one: the end of a JSON object has a
/// brace too many.
fn is_message(line: &[u8]) -> bool {
    serde_json::from_slice::<Envelope<'_>>(line).is_ok_and(|envelope| envelope.jsonrpc == "2.0")
        || serde_json::from_slice::<Vec<Envelope<'_>>>(line).is_ok()
}

impl<R: AsyncRead + Unpin> ClientInput<R> {
    /// Reads up to the end of the first line, and keeps it where it is a message.
    fn resync(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Stage::Resync(held) = &mut self.stage else {
            return Poll::Ready(Ok(()));
        };
        loop {
            let mut piece = [0; PIECE_BYTES];
            let mut buffer = ReadBuf::new(&mut piece);
            ready!(Pin::new(&mut self.inner).poll_read(context, &mut buffer))?;
            let read = buffer.filled();
            held.extend_from_slice(read);
            let end = held.iter().position(|&byte| byte == b'\n');
            if end.is_none() && !read.is_empty() && held.len() <= LINE_BYTES {
                continue;
            }
            let mut kept = std::mem::take(held);
            let first = end.map_or(kept.len(), |end| end + 1);
            if !is_message(&kept[..first]) {
                tracing::info!(
                    bytes = first,
                    "dropped the rest of a line an earlier daemon read"
                );
                kept.drain(..first);
            }
            self.stage = Stage::watch();
            self.watch(&kept);
            (self.ahead, self.taken) = (kept, 0);
            return Poll::Ready(Ok(()));
        }
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for ClientInput<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        if this.serve_ahead(buffer) {
            return Poll::Ready(Ok(()));
        }
        ready!(this.resync(context))?;
        if this.serve_ahead(buffer) {
            return Poll::Ready(Ok(()));
        }
        let before = buffer.filled().len();
        ready!(Pin::new(&mut this.inner).poll_read(context, buffer))?;
        this.watch(&buffer.filled()[before..]);
        Poll::Ready(Ok(()))
    }
}

/// What the client is sent, without the answer to a handshake it did not make now.
#[derive(Debug)]
pub(crate) struct ClientOutput<W> {
    inner: W,
    /// Whether the first line is still to be swallowed.
    swallow: bool,
    /// Whether a line an earlier daemon began is still to be ended.
    end_line: bool,
    /// Whether a line is half written.
    torn: bool,
    notes: mpsc::Sender<Note>,
}

impl<W> ClientOutput<W> {
    /// Writes to `inner`; half written lines are told to `notes`.
    pub(crate) fn new(inner: W, resume: Option<&Resume>, notes: mpsc::Sender<Note>) -> Self {
        let torn = resume.is_some_and(|resume| resume.torn);
        Self {
            inner,
            swallow: resume.is_some_and(|resume| resume.initialize.is_some()),
            end_line: torn,
            torn,
            notes,
        }
    }

    fn wrote(&mut self, written: &[u8]) {
        let torn = match written.last() {
            Some(&last) => last != b'\n',
            None => self.torn,
        };
        if torn != self.torn {
            self.torn = torn;
            drop(self.notes.try_send(Note::Torn(torn)));
        }
    }
}

impl<W: AsyncWrite + Unpin> AsyncWrite for ClientOutput<W> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = &mut *self;
        if this.swallow {
            let end = bytes.iter().position(|&byte| byte == b'\n');
            this.swallow = end.is_none();
            return Poll::Ready(Ok(end.map_or(bytes.len(), |end| end + 1)));
        }
        if this.end_line {
            ready!(Pin::new(&mut this.inner).poll_write(context, b"\n"))?;
            this.end_line = false;
            this.wrote(b"\n");
        }
        let count = ready!(Pin::new(&mut this.inner).poll_write(context, bytes))?;
        this.wrote(&bytes[..count]);
        Poll::Ready(Ok(count))
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(context)
    }
}

#[cfg(test)]
#[path = "splice_tests.rs"]
mod tests;
