//! Raw output, one JSON frame per line; with `follow` as it comes.
//!
//! Frames are produced when the connection can take them: a slow client delays only itself, and
//! reads from the files when it continues.

use axum::Extension;
use axum::body::Body as HttpBody;
use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::stream::{self, Stream};
use ostler_api::OutputFrame;
use ostler_engine::{OutputFollower, read_with_free_fds};
use ostler_journal::{BytePage, ByteQuery, Chunk, Gap, Journal, ReadError, StreamSet};
use ostler_model::{ByteString, Caller, Cursor};

use super::caller::RequestCaller;
use super::extract::ExecutionPathId;
use super::query::{CURSOR, QueryString, STREAM, cursor, stream_set};
use super::response::RestResult;
use super::state::RestState;
use ostler_interface::convert::{execution_body, gap_body};
use ostler_interface::cursor_argument::{CURSOR_PARAMETER, check_cursor};
use ostler_interface::http::HttpProblem;
use ostler_interface::params::{Parameter, ParameterKind};

/// The most bytes of output in one chunk of the body.
const PIECE_BYTES: u64 = 256 * 1024;

const RAW: &[Parameter] = &[
    CURSOR,
    STREAM,
    Parameter::optional("follow", ParameterKind::Flag, "Go on until it has ended")
        .with_default_flag(false),
    Parameter::optional(
        "lossless",
        ParameterKind::Flag,
        "With follow: where the disk is full, the command waits for this reader rather than lose \
         output",
    )
    .with_default_flag(false),
];

/// An extension of a response whose body is lines of [`OutputFrame`].
#[derive(Debug, Clone, Copy)]
pub(crate) struct OutputFrameBody;

/// `GET /api/v1/executions/{id}/raw`: raw output, one JSON frame per line; with `follow` as it
/// comes.
pub(super) async fn raw(
    State(state): State<RestState>,
    RequestCaller(caller): RequestCaller,
    ExecutionPathId(id): ExecutionPathId,
    query_string: QueryString,
) -> RestResult<Response> {
    let mut arguments = query_string.check(RAW)?;
    let cursor = cursor(&mut arguments)?;
    let streams = stream_set(&mut arguments)?;
    let info = state.engine.info(&caller, &id)?;
    check_cursor(&info, CURSOR_PARAMETER, cursor)?;
    let from = cursor.unwrap_or(Cursor::START);
    let lossless = arguments.flag("lossless");
    let source = if arguments.flag("follow") {
        let follower = state.engine.follow(&caller, &id, from)?;
        let follower = follower.streams(streams);
        FrameSource::Follow(Box::new(if lossless {
            follower.lossless()
        } else {
            follower
        }))
    } else {
        let journal = state.engine.journal(&caller, &id)?;
        FrameSource::Read(journal, from, streams)
    };
    let pages = FrameStream {
        source,
        next: from,
        state,
        caller,
        id,
    };
    let body = HttpBody::from_stream(frames(pages));
    let headers = [(header::CONTENT_TYPE, "application/x-ndjson")];
    Ok((Extension(OutputFrameBody), headers, body).into_response())
}

/// The source of pages.
enum FrameSource {
    Follow(Box<OutputFollower>),
    Read(Journal, Cursor, StreamSet),
    Done,
}

struct FrameStream {
    source: FrameSource,
    next: Cursor,
    state: RestState,
    caller: Caller,
    id: String,
}

fn frames(pages: FrameStream) -> impl Stream<Item = Result<Bytes, std::convert::Infallible>> {
    stream::unfold(pages, |mut pages| async move {
        let piece = pages.next_chunk().await?;
        Some((Ok(piece), pages))
    })
}

impl FrameSource {
    /// Up to where it has read; none once it is done.
    fn position(&self) -> Option<Cursor> {
        match self {
            Self::Follow(follower) => Some(follower.cursor()),
            Self::Read(_, from, _) => Some(*from),
            Self::Done => None,
        }
    }
}

impl FrameStream {
    /// The next chunk of the body; none when it is complete.
    async fn next_chunk(&mut self) -> Option<Bytes> {
        let page = match &mut self.source {
            FrameSource::Done => return None,
            FrameSource::Follow(follower) => {
                let page = self.state.unless_shutting_down(follower.next()).await;
                page.and_then(|page| page.map_err(HttpProblem::from))
            }
            FrameSource::Read(journal, from, streams) => {
                let read = read_with_free_fds(|| read_page(journal, from, *streams));
                read.await.map_err(HttpProblem::from)
            }
        };
        let mut piece = Vec::new();
        match page {
            Ok(Some(page)) => {
                self.next = page.next;
                if let Some(gap) = page.gap {
                    self.write_gap(&mut piece, gap);
                }
                write_chunks(&mut piece, page.chunks);
            }
            Ok(None) => {
                // Beyond the last page, there may be bytes of streams that were not requested.
                self.next = self.source.position().unwrap_or(self.next);
                self.source = FrameSource::Done;
                self.write_end(&mut piece);
            }
            Err(problem) => {
                self.source = FrameSource::Done;
                let problem = Box::new(problem.0);
                write_frame(&mut piece, &OutputFrame::Problem { problem });
            }
        }
        Some(Bytes::from(piece))
    }

    /// Of an execution that was removed meanwhile, the end of the stream tells.
    fn write_gap(&self, piece: &mut Vec<u8>, gap: Gap) {
        if let Ok(info) = self.state.engine.info(&self.caller, &self.id) {
            let gap = gap_body(&info, gap);
            write_frame(piece, &OutputFrame::Gap { gap });
        }
    }

    fn write_end(&mut self, piece: &mut Vec<u8>) {
        let info = match self.state.engine.info(&self.caller, &self.id) {
            Ok(info) => info,
            Err(error) => {
                let problem = Box::new(HttpProblem::from(error).0);
                return write_frame(piece, &OutputFrame::Problem { problem });
            }
        };
        let from = self.next.offset;
        if info.state.is_finished() && from < info.output_end {
            // Output at the end that no file holds.
            let to = info.output_end;
            let gap = gap_body(&info, Gap { from, to });
            write_frame(piece, &OutputFrame::Gap { gap });
            self.next.offset = to;
        }
        let end = OutputFrame::End {
            end: Box::new(execution_body(&info)),
            next: self.next,
        };
        write_frame(piece, &end);
    }
}

/// The next page that is not empty; none at the current end.
fn read_page(
    journal: &Journal,
    from: &mut Cursor,
    streams: StreamSet,
) -> Result<Option<BytePage>, ReadError> {
    loop {
        let mut page = journal.read(&ByteQuery {
            streams,
            max_bytes: PIECE_BYTES,
            ..ByteQuery::starting_at(*from)
        })?;
        if page.damaged.is_some() && page.chunks.is_empty() {
            skip_damage(&mut page, journal.end()?);
        }
        let is_stuck = page.next == *from;
        *from = page.next;
        if !page.chunks.is_empty() || page.gap.is_some() {
            return Ok(Some(page));
        }
        if !page.more || is_stuck {
            return Ok(None);
        }
    }
}

/// Makes what cannot be read a gap.
fn skip_damage(page: &mut BytePage, end: u64) {
    if page.next.offset < end {
        let from = page.gap.map_or(page.next.offset, |gap| gap.from);
        page.gap = Some(Gap { from, to: end });
        page.next.offset = end;
    }
}

fn write_chunks(piece: &mut Vec<u8>, chunks: Vec<Chunk>) {
    for chunk in chunks {
        let frame = OutputFrame::Data {
            stream: chunk.stream,
            at: chunk.at,
            offset: chunk.offset,
            data: ByteString::from(chunk.bytes),
        };
        write_frame(piece, &frame);
    }
}

fn write_frame(piece: &mut Vec<u8>, frame: &OutputFrame) {
    if serde_json::to_writer(&mut *piece, frame).is_ok() {
        piece.push(b'\n');
    }
}
