//! Follows an execution to its end, across daemon restarts.

use hyper::Method;
use ostler_api::{ExecutionBody, GapBody, OutputFrame};
use ostler_model::Cursor;

use super::ids;
use crate::client::{DaemonClient, OutputFrames, RequestBody, RetryLimit, is_daemon_exiting};
use crate::error::CommandError;

/// The next item of an execution's output.
#[derive(Debug)]
pub(crate) enum TailEvent {
    /// Bytes, or a gap.
    Output(OutputPiece),
    /// The execution ended.
    End(Box<ExecutionBody>),
}

/// A piece of output.
#[derive(Debug)]
pub(crate) enum OutputPiece {
    /// Bytes of one stream.
    Bytes(ostler_model::StreamName, Vec<u8>),
    /// A range of bytes that are gone.
    Gap(GapBody),
}

/// Which output is wanted.
#[derive(Debug, Clone, Default)]
pub(crate) struct TailQuery {
    /// Whether the stream goes on until the command ends.
    pub(crate) follow: bool,
    /// Whether the command waits for this reader rather than lose output.
    pub(crate) lossless: bool,
    /// The parameters that name streams, each with `&`; all streams without any.
    pub(crate) streams: String,
}

impl TailQuery {
    fn to_parameters(&self) -> String {
        let follow = if self.follow { "&follow=true" } else { "" };
        let lossless = if self.lossless { "&lossless=true" } else { "" };
        format!("{}{follow}{lossless}", self.streams)
    }
}

/// A stream of raw output that survives daemon restarts.
#[derive(Debug)]
pub(crate) struct OutputTail {
    client: DaemonClient,
    id: String,
    query: TailQuery,
    cursor: Cursor,
    frames: Option<OutputFrames>,
    attempts: RetryLimit,
}

impl OutputTail {
    /// The output of `id` from `cursor` on.
    pub(crate) fn new(client: DaemonClient, id: &str, query: TailQuery, cursor: Cursor) -> Self {
        Self {
            client,
            id: id.to_owned(),
            query,
            cursor,
            frames: None,
            attempts: RetryLimit::new(),
        }
    }

    /// Waits for the next item.
    ///
    /// # Errors
    /// When the output cannot be read, or no daemon can be reached any more.
    pub(crate) async fn next(&mut self) -> Result<TailEvent, CommandError> {
        loop {
            match self.next_frame().await {
                Ok(frame) => match self.event_of(frame) {
                    Err(error) if is_disconnect(&error) || is_daemon_exiting(&error) => {
                        self.reconnect(error)?;
                    }
                    event => {
                        self.attempts.reset();
                        return event;
                    }
                },
                Err(error) if is_disconnect(&error) => self.reconnect(error)?,
                Err(error) => return Err(error),
            }
        }
    }

    fn reconnect(&mut self, error: CommandError) -> Result<(), CommandError> {
        self.frames = None;
        self.attempts.allow_retry(error)
    }

    async fn next_frame(&mut self) -> Result<OutputFrame, CommandError> {
        let frames = match &mut self.frames {
            Some(frames) => frames,
            None => {
                let rest = format!("/raw?cursor={}{}", self.cursor, self.query.to_parameters());
                let path = ids::path(&self.id, &rest);
                let response = self
                    .client
                    .request(Method::GET, &path, RequestBody::None)
                    .await?;
                self.frames.insert(OutputFrames::from(response))
            }
        };
        let frame = frames.next().await?;
        frame.ok_or_else(|| CommandError::Disconnected("the stream ended early".to_owned()))
    }

    fn event_of(&mut self, frame: OutputFrame) -> Result<TailEvent, CommandError> {
        match frame {
            OutputFrame::Data {
                stream,
                offset,
                data,
                ..
            } => {
                let bytes = data.into_bytes();
                self.cursor.offset = offset + bytes.len() as u64;
                Ok(TailEvent::Output(OutputPiece::Bytes(stream, bytes)))
            }
            OutputFrame::Gap { gap } => {
                self.cursor.offset = gap.to;
                Ok(TailEvent::Output(OutputPiece::Gap(gap)))
            }
            OutputFrame::Problem { problem } => Err((*problem).into()),
            OutputFrame::End { end, .. } if self.query.follow && !end.is_finished() => {
                Err(CommandError::Disconnected("the daemon ended".to_owned()))
            }
            OutputFrame::End { end, next } => {
                self.cursor = next;
                Ok(TailEvent::End(end))
            }
        }
    }
}

/// Whether an error means that the connection broke.
const fn is_disconnect(error: &CommandError) -> bool {
    matches!(error, CommandError::Disconnected(_))
}
