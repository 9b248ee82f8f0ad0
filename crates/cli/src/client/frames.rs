//! Streams of output: one JSON frame per line.

use bytes::{Buf as _, BytesMut};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use ostler_model::ErrorCode;
use ostler_server::wire::OutputFrame;
use tokio::task::JoinSet;

use super::http::{DaemonResponse, connection_error};
use crate::error::CommandError;

/// The longest line that is taken for a frame.
const FRAME_BYTES: usize = 16 * 1024 * 1024;

/// Frames as they come.
#[derive(Debug)]
pub(crate) struct OutputFrames {
    body: Incoming,
    buffer: BytesMut,
    /// How much of the buffer is known to hold no end of line.
    scanned: usize,
    /// Feeds the body while this lives.
    _connection: JoinSet<()>,
}

impl From<DaemonResponse> for OutputFrames {
    fn from(answer: DaemonResponse) -> Self {
        let (body, connection) = answer.into_parts();
        Self {
            body,
            buffer: BytesMut::new(),
            scanned: 0,
            _connection: connection,
        }
    }
}

impl OutputFrames {
    /// The next frame; none at the end of the stream.
    ///
    /// # Errors
    /// When the connection broke or a line is no frame.
    pub(crate) async fn next(&mut self) -> Result<Option<OutputFrame>, CommandError> {
        loop {
            if let Some(frame) = self.next_buffered()? {
                return Ok(Some(frame));
            }
            let Some(chunk) = self.body.frame().await else {
                return Ok(None);
            };
            let piece = chunk.map_err(|error| connection_error(&error))?;
            if let Ok(data) = piece.into_data() {
                self.buffer.extend_from_slice(&data);
            }
        }
    }

    /// The next frame that is already here whole.
    pub(crate) fn next_buffered(&mut self) -> Result<Option<OutputFrame>, CommandError> {
        let fresh = &self.buffer[self.scanned..];
        let Some(end) = fresh.iter().position(|&byte| byte == b'\n') else {
            self.scanned = self.buffer.len();
            return if self.scanned > FRAME_BYTES {
                Err(unreadable("a frame is too long"))
            } else {
                Ok(None)
            };
        };
        let line = self.buffer.split_to(self.scanned + end);
        self.buffer.advance(1);
        self.scanned = 0;
        serde_json::from_slice(&line)
            .map(Some)
            .map_err(|error| unreadable(&error.to_string()))
    }
}

fn unreadable(what: &str) -> CommandError {
    CommandError::new(
        ErrorCode::Internal,
        format!("the daemon's stream is not understood: {what}"),
    )
}
