//! Output streams: one JSON frame on each line.

use bytes::{Buf as _, BytesMut};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use ostler_api::OutputFrame;
use ostler_model::ErrorCode;
use tokio::task::JoinSet;

use super::http::{DaemonResponse, connection_error};
use crate::error::CommandError;

/// The longest frame in bytes.
const FRAME_BYTES: usize = 16 * 1024 * 1024;

/// The frames of a stream.
#[derive(Debug)]
pub(crate) struct OutputFrames {
    body: Incoming,
    buffer: BytesMut,
    /// The length of the buffer's prefix that is known to hold no newline.
    scanned: usize,
    /// The task that feeds the body; aborted on drop.
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
    /// Waits for the next frame; none at the end of the stream.
    ///
    /// # Errors
    /// When the connection broke or a line is not a frame.
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

    /// The next frame that is already received completely.
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
