//! Reads of an execution's journal from async code: small ones in place, large ones on a thread
//! that may block. [`ostler_render`] selects and renders the rows.

use std::io;

use ostler_engine::ExecutionInfo;
use ostler_journal::{Encoding, Journal, LineQuery, OpenLineMode, ReadError, encoding_for_label};
use ostler_render::{OutputRow, RowSlice, TextPage};

/// Journals up to this size are read in place; larger ones on a blocking thread.
const INLINE_BYTES: u64 = 1024 * 1024;

/// Whether a last line without a newline is all there will be of it.
pub fn unfinished_mode(info: &ExecutionInfo) -> OpenLineMode {
    if info.state.is_finished() {
        OpenLineMode::Final
    } else {
        OpenLineMode::Preview
    }
}

/// The encoding to read an execution's output with; none means UTF-8.
pub fn encoding(info: &ExecutionInfo) -> Option<Encoding> {
    let label = info.spec.encoding.as_deref()?;
    encoding_for_label(label).ok()
}

/// Reads what `query` matches, as [`ostler_render::read_rows`] does.
pub async fn read_slice(
    journal: &Journal,
    info: &ExecutionInfo,
    query: LineQuery,
) -> Result<RowSlice, ReadError> {
    let encoding = encoding(info);
    run_read(journal, info, move |journal| {
        ostler_render::read_rows(journal, &query, encoding)
    })
    .await
}

/// Reads the page of at most `chars` characters that `query` asks for, as
/// [`ostler_render::read_page`] does.
pub async fn read_page(
    journal: &Journal,
    info: &ExecutionInfo,
    query: LineQuery,
    chars: usize,
    render_rows: impl Fn(Vec<OutputRow>) -> Vec<String> + Send + 'static,
) -> Result<TextPage, ReadError> {
    let encoding = encoding(info);
    run_read(journal, info, move |journal| {
        ostler_render::read_page(journal, &query, encoding, chars, &render_rows)
    })
    .await
}

/// Runs `read` here where the journal is small, else on a blocking thread.
pub async fn run_read<T: Send + 'static>(
    journal: &Journal,
    info: &ExecutionInfo,
    read: impl FnOnce(&Journal) -> Result<T, ReadError> + Send + 'static,
) -> Result<T, ReadError> {
    let bytes = if info.state.is_finished() {
        info.output_end
    } else {
        journal.end()?
    };
    run_read_of_size(journal, bytes, read).await
}

/// Runs `read` here where it reads at most `INLINE_BYTES`, else on a blocking thread.
pub async fn run_read_of_size<T: Send + 'static>(
    journal: &Journal,
    bytes: u64,
    read: impl FnOnce(&Journal) -> Result<T, ReadError> + Send + 'static,
) -> Result<T, ReadError> {
    if bytes <= INLINE_BYTES {
        return read(journal);
    }
    let journal = journal.clone();
    let result = tokio::task::spawn_blocking(move || read(&journal)).await;
    result.unwrap_or_else(|error| {
        Err(ReadError::Io {
            action: "read",
            file: "output".to_owned(),
            source: io::Error::other(error),
        })
    })
}
