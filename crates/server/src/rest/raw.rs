//! Output as it was printed, one JSON frame per line; with `follow` as it comes.
//!
//! Frames are made when the connection has room for them: a slow client waits for itself
//! alone, and reads from the files when it comes back.

use axum::body::Body as HttpBody;
use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::stream::{self, Stream};
use ostler_engine::{Follower, read_in_turn};
use ostler_journal::{BytePage, ByteQuery, Chunk, Journal, ReadError, StreamSet};
use ostler_model::{Caller, Cursor, Text};

use super::answer::Answer;
use super::caller::Asking;
use super::extract::Execution;
use super::query::{Asked, CURSOR, STREAM, cursor, streams};
use super::state::RestState;
use crate::params::{Kind, Parameter};
use crate::wire::{Frame, GapBody, InfoBody, Problem};

/// Bytes of output in one piece of the answer.
const PIECE_BYTES: u64 = 256 * 1024;

const RAW: &[Parameter] = &[
    CURSOR,
    STREAM,
    Parameter::optional("follow", Kind::Flag, "Go on until it has ended").or_flag(false),
    Parameter::optional(
        "lossless",
        Kind::Flag,
        "With follow: where the disk is full, the command waits for this reader rather than lose \
         output",
    )
    .or_flag(false),
];

/// `GET /api/v1/executions/{id}/raw`.
pub(super) async fn raw(
    State(state): State<RestState>,
    Asking(caller): Asking,
    Execution(id): Execution,
    asked: Asked,
) -> Answer<Response> {
    let mut arguments = asked.check(RAW)?;
    let from = cursor(&mut arguments)?.unwrap_or(Cursor::START);
    let streams = streams(&mut arguments)?;
    let lossless = arguments.flag("lossless");
    let source = if arguments.flag("follow") {
        let follower = state.engine.follow(&caller, &id, from)?;
        let follower = follower.streams(streams);
        Source::Following(Box::new(if lossless {
            follower.lossless()
        } else {
            follower
        }))
    } else {
        let journal = state.engine.journal(&caller, &id)?;
        Source::Reading(journal, from, streams)
    };
    let pages = Pages {
        source,
        next: from,
        state,
        caller,
        id,
    };
    let body = HttpBody::from_stream(frames(pages));
    Ok(([(header::CONTENT_TYPE, "application/x-ndjson")], body).into_response())
}

/// Where pages come from.
enum Source {
    Following(Box<Follower>),
    Reading(Journal, Cursor, StreamSet),
    Over,
}

struct Pages {
    source: Source,
    next: Cursor,
    state: RestState,
    caller: Caller,
    id: String,
}

fn frames(pages: Pages) -> impl Stream<Item = Result<Bytes, std::convert::Infallible>> {
    stream::unfold(pages, |mut pages| async move {
        let piece = pages.piece().await?;
        Some((Ok(piece), pages))
    })
}

impl Pages {
    /// The next piece of the answer; none when it is complete.
    async fn piece(&mut self) -> Option<Bytes> {
        let page = match &mut self.source {
            Source::Over => return None,
            Source::Following(follower) => {
                let page = self.state.unless_leaving(follower.next()).await;
                page.and_then(|page| page.map_err(Problem::from))
            }
            Source::Reading(journal, from, streams) => {
                let read = read_in_turn(|| read(journal, from, *streams));
                read.await.map_err(Problem::from)
            }
        };
        let mut piece = Vec::new();
        match page {
            Ok(Some(page)) => {
                self.next = page.next;
                if let Some(gap) = page.gap {
                    self.spell_gap(&mut piece, (gap.from, gap.to));
                }
                spell_chunks(&mut piece, page.chunks);
            }
            Ok(None) => {
                self.source = Source::Over;
                self.spell_end(&mut piece);
            }
            Err(problem) => {
                self.source = Source::Over;
                let problem = Box::new(problem);
                spell(&mut piece, &Frame::Problem { problem });
            }
        }
        Some(Bytes::from(piece))
    }

    fn spell_gap(&self, piece: &mut Vec<u8>, (from, to): (u64, u64)) {
        match self.state.engine.info(&self.caller, &self.id) {
            Ok(info) => {
                let gap = GapBody::of(&info.state, from, to);
                spell(piece, &Frame::Gap { gap });
            }
            Err(error) => {
                let problem = Box::new(Problem::from(error));
                spell(piece, &Frame::Problem { problem });
            }
        }
    }

    fn spell_end(&mut self, piece: &mut Vec<u8>) {
        let info = match self.state.engine.info(&self.caller, &self.id) {
            Ok(info) => info,
            Err(error) => {
                let problem = Box::new(Problem::from(error));
                return spell(piece, &Frame::Problem { problem });
            }
        };
        let from = self.next.offset;
        if info.state.is_finished() && from < info.output_end {
            // What was printed at the end and no file holds.
            let to = info.output_end;
            let gap = GapBody::of(&info.state, from, to);
            spell(piece, &Frame::Gap { gap });
            self.next.offset = to;
        }
        let end = Frame::End {
            end: Box::new(InfoBody::from(&info)),
            next: self.next,
        };
        spell(piece, &end);
    }
}

/// The next page with anything in it; none at the end of what is there now.
fn read(
    journal: &Journal,
    from: &mut Cursor,
    streams: StreamSet,
) -> Result<Option<BytePage>, ReadError> {
    loop {
        let page = journal.read(&ByteQuery {
            streams,
            max_bytes: PIECE_BYTES,
            ..ByteQuery::from(*from)
        })?;
        let stuck = page.next == *from;
        *from = page.next;
        if !page.chunks.is_empty() || page.gap.is_some() {
            return Ok(Some(page));
        }
        if !page.more || stuck {
            return Ok(None);
        }
    }
}

fn spell_chunks(piece: &mut Vec<u8>, chunks: Vec<Chunk>) {
    for chunk in chunks {
        let frame = Frame::Data {
            stream: chunk.stream,
            at: chunk.at,
            offset: chunk.offset,
            data: Text::from(chunk.bytes),
        };
        spell(piece, &frame);
    }
}

fn spell(piece: &mut Vec<u8>, frame: &Frame) {
    if serde_json::to_writer(&mut *piece, frame).is_ok() {
        piece.push(b'\n');
    }
}
