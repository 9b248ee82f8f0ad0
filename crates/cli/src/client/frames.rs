//! Streams of output: one JSON frame per line.

use bytes::{Buf as _, BytesMut};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use ostler_model::ErrorCode;
use ostler_server::wire::Frame;
use tokio::task::JoinSet;

use super::http::{Answer, broken};
use crate::error::CommandError;

/// The longest line that is taken for a frame.
const FRAME_BYTES: usize = 16 * 1024 * 1024;

/// Frames as they come.
#[derive(Debug)]
pub(crate) struct Frames {
    body: Incoming,
    buffer: BytesMut,
    /// How much of the buffer is known to hold no end of line.
    searched: usize,
    /// Feeds the body while this lives.
    _connection: JoinSet<()>,
}

impl From<Answer> for Frames {
    fn from(answer: Answer) -> Self {
        let (body, connection) = answer.into_parts();
        Self {
            body,
            buffer: BytesMut::new(),
            searched: 0,
            _connection: connection,
        }
    }
}

impl Frames {
    /// The next frame; none at the end of the stream.
    ///
    /// # Errors
    /// When the connection broke or a line is no frame.
    pub(crate) async fn next(&mut self) -> Result<Option<Frame>, CommandError> {
        loop {
            if let Some(frame) = self.ready()? {
                return Ok(Some(frame));
            }
            let Some(piece) = self.body.frame().await else {
                return Ok(None);
            };
            let piece = piece.map_err(|error| broken(&error))?;
            if let Ok(data) = piece.into_data() {
                self.buffer.extend_from_slice(&data);
            }
        }
    }

    /// The next frame that is already here whole.
    pub(crate) fn ready(&mut self) -> Result<Option<Frame>, CommandError> {
        let fresh = &self.buffer[self.searched..];
        let Some(end) = fresh.iter().position(|&byte| byte == b'\n') else {
            self.searched = self.buffer.len();
            return if self.searched > FRAME_BYTES {
                Err(unreadable("a frame is too long"))
            } else {
                Ok(None)
            };
        };
        let line = self.buffer.split_to(self.searched + end);
        self.buffer.advance(1);
        self.searched = 0;
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
