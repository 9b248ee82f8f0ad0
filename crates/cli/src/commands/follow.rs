//! Following an execution to its end, over as many daemons as it takes.

use hyper::Method;
use ostler_model::{Cause, Cursor};
use ostler_server::wire::{Frame, GapBody, InfoBody};

use super::ids;
use crate::client::{Attempts, Body, Client, Frames, is_leaving};
use crate::error::CommandError;

/// What a shell shows when a time limit ended a command: as timeout(1).
const EXIT_TIMED_OUT: u8 = 124;
/// What a shell shows when nobody can say how a command ended.
const EXIT_LOST: u8 = 125;

/// What comes out of an execution.
#[derive(Debug)]
pub(crate) enum Event {
    /// Bytes, or the notice that bytes are gone.
    Output(Piece),
    /// It ended.
    End(Box<InfoBody>),
}

/// Output as it comes.
#[derive(Debug)]
pub(crate) enum Piece {
    /// Bytes of one stream.
    Bytes(ostler_model::StreamName, Vec<u8>),
    /// Bytes that are gone.
    Gap(GapBody),
}

/// A stream of raw output that survives its daemon.
#[derive(Debug)]
pub(crate) struct Tail {
    client: Client,
    id: String,
    /// The query after `raw?`, without the cursor.
    query: String,
    cursor: Cursor,
    frames: Option<Frames>,
    attempts: Attempts,
}

impl Tail {
    /// Output of `id` from `cursor` on; `query` narrows it.
    pub(crate) fn new(client: Client, id: &str, query: String, cursor: Cursor) -> Self {
        Self {
            client,
            id: id.to_owned(),
            query,
            cursor,
            frames: None,
            attempts: Attempts::new(),
        }
    }

    /// What comes next; waits for it.
    ///
    /// # Errors
    /// When the output cannot be read, or no daemon can be reached any more.
    pub(crate) async fn next(&mut self) -> Result<Event, CommandError> {
        loop {
            match self.frame().await {
                Ok(frame) => match self.event(frame) {
                    Err(error) if is_break(&error) || is_leaving(&error) => self.again(error)?,
                    event => {
                        self.attempts.reset();
                        return event;
                    }
                },
                Err(error) if is_break(&error) => self.again(error)?,
                Err(error) => return Err(error),
            }
        }
    }

    fn again(&mut self, error: CommandError) -> Result<(), CommandError> {
        self.frames = None;
        self.attempts.next(error)
    }

    async fn frame(&mut self) -> Result<Frame, CommandError> {
        let frames = match &mut self.frames {
            Some(frames) => frames,
            None => {
                let rest = format!("/raw?cursor={}{}", self.cursor, self.query);
                let path = ids::path(&self.id, &rest);
                let answer = self.client.ask(Method::GET, &path, Body::None).await?;
                self.frames.insert(Frames::from(answer))
            }
        };
        let frame = frames.next().await?;
        frame.ok_or_else(|| CommandError::Disconnected("the stream ended early".to_owned()))
    }

    fn follows(&self) -> bool {
        self.query.contains("follow=true")
    }

    fn event(&mut self, frame: Frame) -> Result<Event, CommandError> {
        match frame {
            Frame::Data {
                stream,
                offset,
                data,
                ..
            } => {
                let bytes = data.into_bytes();
                self.cursor.offset = offset + bytes.len() as u64;
                Ok(Event::Output(Piece::Bytes(stream, bytes)))
            }
            Frame::Gap { gap } => {
                self.cursor.offset = gap.to;
                Ok(Event::Output(Piece::Gap(gap)))
            }
            Frame::Problem { problem } => Err((*problem).into()),
            Frame::End { end, .. } if self.follows() && !end.is_finished() => {
                Err(CommandError::Disconnected("the daemon ended".to_owned()))
            }
            Frame::End { end, next } => {
                self.cursor = next;
                Ok(Event::End(end))
            }
        }
    }
}

/// Whether an error says that the connection broke.
const fn is_break(error: &CommandError) -> bool {
    matches!(error, CommandError::Disconnected(_))
}

/// What `run` and `wait` exit with for an execution that ended.
pub(crate) fn exit_code(info: &InfoBody) -> u8 {
    if timed_out(info) {
        return EXIT_TIMED_OUT;
    }
    let status = info
        .shell_status
        .and_then(|status| u8::try_from(status).ok());
    status.unwrap_or(EXIT_LOST)
}

/// Whether a time limit ended it.
fn timed_out(info: &InfoBody) -> bool {
    matches!(info.cause, Some(Cause::TimedOut { .. }))
}
