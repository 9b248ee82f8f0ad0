//! Exports a whole journal in another format.

use std::io::{self, BufWriter, Write};

use axum::body::Body as HttpBody;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderName, HeaderValue, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::{StreamExt as _, stream};
use http_body_util::StreamBody;
use hyper::body::Frame;
use ostler_engine::{Engine, ExecutionInfo, lost_bytes, lost_tail};
use ostler_export::{ExportSubject, Format, UnknownFormat, export as export_journal};
use ostler_journal::{Gap, Journal};
use ostler_model::{Caller, ErrorCode, EventRecord};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::caller::RequestCaller;
use super::extract::ExecutionPathId;
use super::query::QueryString;
use super::response::RestResult;
use super::state::RestState;
use ostler_interface::http::HttpProblem;
use ostler_interface::params::{Parameter, ParameterKind};

/// The most bytes of one body chunk.
const PIECE_BYTES: usize = 64 * 1024;
/// Chunks queued for a slow client.
const PIECES: usize = 4;

/// Bytes of output missing in the response because they were lost, for example to a full disk. What
/// was dropped on purpose does not count. The header has those that were lost when the response
/// began; the trailer of the same name those that are missing in it.
pub const LOST_BYTES_HEADER: HeaderName = HeaderName::from_static(LOST_BYTES_TRAILER);
/// Its name.
const LOST_BYTES_TRAILER: &str = "ostler-lost-bytes";
/// The trailer of a body that is incomplete, with the cause as text.
pub const EXPORT_ERROR_TRAILER: HeaderName = HeaderName::from_static("ostler-export-error");
/// The trailers that may follow a body.
const TRAILERS: &str = "ostler-lost-bytes, ostler-export-error";

const EXPORT: &[Parameter] = &[Parameter::required(
    "format",
    ParameterKind::Choice(&[
        "yaml",
        "avro",
        "jsonl",
        "text",
        "asciicast",
        "asciicast-v3",
        "sarif",
        "junit",
    ]),
    "The format",
)];

/// `GET /api/v1/executions/{id}/export`: the whole journal of an execution in another format. The
/// header `ostler-lost-bytes` says how many bytes of it were lost, for example to a full disk, when
/// the response began. For a client that sends `TE: trailers`, the trailer of the same name says after
/// the body how many are missing in it; where the body is incomplete for another reason, the trailer
/// `ostler-export-error` says which. For any other client such a body breaks off.
pub(super) async fn export(
    State(state): State<RestState>,
    RequestCaller(caller): RequestCaller,
    ExecutionPathId(id): ExecutionPathId,
    headers: HeaderMap,
    query_string: QueryString,
) -> RestResult<Response> {
    let has_trailers = accepts_trailers(&headers);
    let word = query_string.check(EXPORT)?.required_text("format");
    let format: Format = word
        .parse()
        .map_err(|error: UnknownFormat| HttpProblem::value(error.to_string()))?;
    let info = state.engine.info(&caller, &id)?;
    let journal = state.engine.journal(&caller, &id)?;
    let events = state.engine.events(&caller, &id)?;
    let newest_info = || state.engine.info(&caller, &id);
    let lost = lost_bytes(newest_info, &journal, 0..u64::MAX, &[])?;
    let source = ExportSource {
        tail: lost_tail(&info, &journal)?,
        engine: state.engine.clone(),
        caller: caller.clone(),
        journal,
        info,
        events,
    };
    let (sender, mut receiver) = mpsc::channel(PIECES);
    let work = tokio::task::spawn_blocking(move || source.write(format, sender));
    let first = first_piece(&mut receiver, work).await?;
    let pieces = stream::unfold(
        (receiver, first.rest),
        move |(mut receiver, rest)| async move {
            if let Some(piece) = receiver.recv().await {
                return Some((Ok(Frame::data(piece)), (receiver, rest)));
            }
            let lost = match rest? {
                ExportRest::Work(work) => work.await.map_err(io::Error::other).flatten(),
                ExportRest::Done(lost) => Ok(lost),
            };
            let last = match lost {
                Ok(lost) => Ok(trailer(LOST_BYTES_HEADER, HeaderValue::from(lost))),
                Err(error) if has_trailers => Ok(trailer(
                    EXPORT_ERROR_TRAILER,
                    field_value(&error.to_string()),
                )),
                Err(error) => Err(error),
            };
            Some((last, (receiver, None)))
        },
    );
    let pieces = stream::iter(first.piece.map(|it| Ok(Frame::data(it)))).chain(pieces);
    let headers = [
        (
            header::CONTENT_TYPE,
            HeaderValue::from_static(media_type(format)),
        ),
        (header::TRAILER, HeaderValue::from_static(TRAILERS)),
        (LOST_BYTES_HEADER, HeaderValue::from(lost)),
    ];
    Ok((headers, HttpBody::new(StreamBody::new(pieces))).into_response())
}

/// What follows the pieces of an export.
enum ExportRest {
    /// The work that writes them; its result is the number of lost bytes.
    Work(JoinHandle<io::Result<u64>>),
    /// The number of lost bytes.
    Done(u64),
}

/// The beginning of an export.
struct FirstPiece {
    /// None where there is no output.
    piece: Option<Bytes>,
    rest: Option<ExportRest>,
}

/// The first piece, which is awaited so that a journal that cannot be read is answered with an error;
/// later, the body breaks off.
async fn first_piece(
    receiver: &mut mpsc::Receiver<Bytes>,
    work: JoinHandle<io::Result<u64>>,
) -> RestResult<FirstPiece> {
    let piece = receiver.recv().await;
    if piece.is_some() {
        let rest = Some(ExportRest::Work(work));
        return Ok(FirstPiece { piece, rest });
    }
    let written = work.await.map_err(io::Error::other).flatten();
    let lost = written
        .map_err(|error| HttpProblem::new(ErrorCode::OutputRetrieval, error.to_string(), None))?;
    let rest = Some(ExportRest::Done(lost));
    Ok(FirstPiece { piece, rest })
}

/// Trailers with one field.
fn trailer(name: HeaderName, value: HeaderValue) -> Frame<Bytes> {
    Frame::trailers(HeaderMap::from_iter([(name, value)]))
}

/// Whether the client reads trailers (RFC 9110, 6.5.1).
fn accepts_trailers(headers: &HeaderMap) -> bool {
    let values = headers.get_all(header::TE).into_iter();
    let mut words = values
        .filter_map(|it| it.to_str().ok())
        .flat_map(|it| it.split(','));
    words.any(|it| it.trim().eq_ignore_ascii_case("trailers"))
}

/// A text as the value of a field, which has no control characters.
fn field_value(text: &str) -> HeaderValue {
    let text = text.replace(|c: char| c.is_ascii_control(), " ");
    HeaderValue::from_str(&text).unwrap_or_else(|_| HeaderValue::from_static("unknown"))
}

/// What an export is made from.
struct ExportSource {
    engine: Engine,
    caller: Caller,
    journal: Journal,
    info: ExecutionInfo,
    events: Vec<EventRecord>,
    /// The last output that no file held at first.
    tail: Option<Gap>,
}

impl ExportSource {
    /// Sends the export in pieces; returns how many bytes are missing in it because they were lost.
    fn write(&self, format: Format, sender: mpsc::Sender<Bytes>) -> io::Result<u64> {
        let subject = ExportSubject {
            id: self.info.id,
            spec: Some(&self.info.spec),
            events: &self.events,
        };
        let mut out = BufWriter::with_capacity(PIECE_BYTES, ChannelWriter(sender));
        let gaps = match export_journal(&self.journal, &subject, format, &mut out) {
            Ok(gaps) => gaps,
            Err(error) => {
                // What is buffered is not sent: a failure before the first piece is an error of the
                // request.
                let _unsent = out.into_parts();
                return Err(io::Error::other(error));
            }
        };
        out.flush()?;
        // Only now: what is dropped on purpose is on record after it.
        let id = self.info.id.to_string();
        let info = self.engine.info(&self.caller, &id);
        let info = info.map_err(io::Error::other)?;
        let gaps = gaps.into_iter().chain(self.tail);
        Ok(gaps.map(|gap| info.lost_bytes(gap.from, gap.to)).sum())
    }
}

const fn media_type(format: Format) -> &'static str {
    match format {
        Format::Yaml => "application/yaml",
        Format::Avro => "application/vnd.apache.avro+binary",
        Format::Jsonl => "application/x-ndjson",
        Format::Text => "application/octet-stream",
        Format::Asciicast | Format::AsciicastV3 => "application/x-asciicast",
        Format::Sarif => "application/sarif+json",
        Format::Junit => "application/xml",
    }
}

/// Sends chunks to the connection; blocks while the client is slow, fails when it is gone.
struct ChannelWriter(mpsc::Sender<Bytes>);

impl Write for ChannelWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let piece = Bytes::copy_from_slice(bytes);
        let sent = self.0.blocking_send(piece);
        sent.map_err(|_| io::ErrorKind::BrokenPipe)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
