//! Exports a whole journal in another format.

use std::io::{self, BufWriter, Write};

use axum::body::Body as HttpBody;
use axum::extract::State;
use axum::http::{HeaderName, HeaderValue, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::{StreamExt as _, stream};
use ostler_engine::{ExecutionInfo, lost_bytes};
use ostler_export::{ExportSubject, Format, UnknownFormat, export as export_journal};
use ostler_journal::Journal;
use ostler_model::{ErrorCode, EventRecord};
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
/// was dropped on purpose does not count.
pub const LOST_BYTES_HEADER: HeaderName = HeaderName::from_static("ostler-lost-bytes");

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

/// `GET /api/v1/executions/{id}/export`: the whole journal of an execution in another format.
pub(super) async fn export(
    State(state): State<RestState>,
    RequestCaller(caller): RequestCaller,
    ExecutionPathId(id): ExecutionPathId,
    query_string: QueryString,
) -> RestResult<Response> {
    let word = query_string.check(EXPORT)?.required_text("format");
    let format: Format = word
        .parse()
        .map_err(|error: UnknownFormat| HttpProblem::value(error.to_string()))?;
    let info = state.engine.info(&caller, &id)?;
    let journal = state.engine.journal(&caller, &id)?;
    let events = state.engine.events(&caller, &id)?;
    let newest_info = || state.engine.info(&caller, &id);
    let lost = lost_bytes(newest_info, &journal, 0..u64::MAX)?;
    let (sender, mut receiver) = mpsc::channel(PIECES);
    let work =
        tokio::task::spawn_blocking(move || write_export(&journal, &info, &events, format, sender));
    let (first, work) = first_piece(&mut receiver, work).await?;
    let pieces = stream::unfold((receiver, work), |(mut receiver, work)| async move {
        if let Some(piece) = receiver.recv().await {
            return Some((Ok(piece), (receiver, work)));
        }
        let error = work?.await.map_err(io::Error::other).flatten().err()?;
        Some((Err(error), (receiver, None)))
    });
    let pieces = stream::iter(first.map(Ok)).chain(pieces);
    let headers = [
        (
            header::CONTENT_TYPE,
            HeaderValue::from_static(media_type(format)),
        ),
        (LOST_BYTES_HEADER, HeaderValue::from(lost)),
    ];
    Ok((headers, HttpBody::from_stream(pieces)).into_response())
}

/// The first piece, which is awaited so that a journal that cannot be read is answered with an error;
/// later, the body breaks off. The work is returned where it is not done.
async fn first_piece(
    receiver: &mut mpsc::Receiver<Bytes>,
    work: JoinHandle<io::Result<()>>,
) -> RestResult<(Option<Bytes>, Option<JoinHandle<io::Result<()>>>)> {
    if let Some(first) = receiver.recv().await {
        return Ok((Some(first), Some(work)));
    }
    let written = work.await.map_err(io::Error::other).flatten();
    written
        .map_err(|error| HttpProblem::new(ErrorCode::OutputRetrieval, error.to_string(), None))?;
    Ok((None, None))
}

fn write_export(
    journal: &Journal,
    info: &ExecutionInfo,
    events: &[EventRecord],
    format: Format,
    sender: mpsc::Sender<Bytes>,
) -> io::Result<()> {
    let subject = ExportSubject {
        id: info.id,
        spec: Some(&info.spec),
        events,
    };
    let mut out = BufWriter::with_capacity(PIECE_BYTES, ChannelWriter(sender));
    if let Err(error) = export_journal(journal, &subject, format, &mut out) {
        // What is buffered is not sent: a failure before the first piece is an error of the request.
        let _unsent = out.into_parts();
        return Err(io::Error::other(error));
    }
    out.flush()
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
