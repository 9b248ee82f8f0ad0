//! The connection of a proxy to the daemon while its streams are served.

use std::io::{self, BufRead as _, BufReader, IoSlice, Read as _, Write as _};
use std::mem::MaybeUninit;
use std::os::fd::BorrowedFd;
use std::os::unix::net::UnixStream;

use ostler_model::ErrorCode;
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};

use crate::error::CommandError;
use crate::stdio_protocol::{self, DESCRIPTORS, EVENT_BYTES, HelloReply, StdioEvent, StdioHello};

/// A connection over which the streams were passed.
#[derive(Debug)]
pub(crate) struct StdioConnection(BufReader<UnixStream>);

impl StdioConnection {
    /// Sends the hello with the streams and the log, and reads the response; none when the daemon
    /// died before it responded.
    ///
    /// # Errors
    /// When the daemon refuses.
    pub(crate) fn open(
        stream: UnixStream,
        hello: &StdioHello,
        descriptors: [BorrowedFd<'_>; DESCRIPTORS],
    ) -> Result<Option<Self>, CommandError> {
        let line = stdio_protocol::encode_line(hello)
            .map_err(|error| CommandError::new(ErrorCode::Internal, error.to_string()))?;
        if send_hello(&stream, &line, descriptors).is_err() {
            return Ok(None);
        }
        let mut control = Self(BufReader::new(stream));
        match control.read_line::<HelloReply>() {
            Some(HelloReply::Ok(_)) => Ok(Some(control)),
            Some(HelloReply::Error(problem)) => Err(problem.into()),
            None => Ok(None),
        }
    }

    /// Waits for the next event; none when the daemon died.
    pub(crate) fn next_event(&mut self) -> Option<StdioEvent> {
        self.read_line()
    }

    fn read_line<T: serde::de::DeserializeOwned>(&mut self) -> Option<T> {
        let mut line = Vec::new();
        let read = self
            .0
            .by_ref()
            .take(EVENT_BYTES)
            .read_until(b'\n', &mut line);
        read.ok().filter(|_| line.ends_with(b"\n"))?;
        serde_json::from_slice(&line).ok()
    }
}

/// Writes the line, with the descriptors attached to its first byte.
fn send_hello(
    mut stream: &UnixStream,
    line: &[u8],
    fds: [BorrowedFd<'_>; DESCRIPTORS],
) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    ancillary.push(SendAncillaryMessage::ScmRights(&fds));
    let sent = rustix::io::retry_on_intr(|| {
        sendmsg(
            stream,
            &[IoSlice::new(line)],
            &mut ancillary,
            SendFlags::NOSIGNAL,
        )
    })?;
    stream.write_all(&line[sent..])
}
