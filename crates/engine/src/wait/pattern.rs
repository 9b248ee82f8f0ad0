//! Waiting for a pattern: reads output as it arrives and feeds it to a [`Searcher`].

use std::sync::Arc;
use std::time::Duration;

use ostler_journal::query::Chunk;
use ostler_journal::{
    ByteQuery, Journal, LineQuery, OpenLineMode, Pattern, ReadError, StreamSet, encoding_for_label,
};
use ostler_model::spec::Io;
use ostler_model::{ByteString, Cursor, SnapshotRequest};
use tokio::time::Instant;

use super::wait_for::wait_finished;
use crate::engine_inner::EngineInner;
use crate::error::Error;
use crate::execution::{ExecutionHandle, OutputWatchGuard};
use crate::info::{LineMatch, WaitEnd};
use crate::search::{
    EchoFilter, OVERLAP_BYTES, SearchHit, SearchStart, Searcher, SentInput, plain_text,
};

/// Output up to this many bytes is searched in place; more on a thread of its own.
const INLINE_BYTES: u64 = 256 * 1024;
/// Bytes read at once.
const PAGE_BYTES: u64 = 256 * 1024;
/// How far back from an input the beginning of its line is searched, in bytes: the larger distance
/// only where the smaller one contains no line end.
const LINE_LOOKBACK_BYTES: [u64; 2] = [256, 4 * 1024];
/// Silence after which the terminal's echo mode is inspected, in milliseconds.
const ECHO_QUIET_MS: u64 = 150;

/// Where the search begins.
#[derive(Debug, Clone, Copy)]
pub(super) enum SearchOrigin<'a> {
    /// At the oldest line kept, or after the last input.
    Start,
    /// At lines that end after this offset.
    Offset(u64),
    /// After this input.
    Input(&'a SentInput),
}

/// Waits for a match, or the end.
pub(super) async fn wait_for_pattern(
    core: &EngineInner,
    entry: &Arc<ExecutionHandle>,
    pattern: &Pattern,
    from: SearchOrigin<'_>,
) -> Result<WaitEnd, Error> {
    let _watching = OutputWatchGuard::new(entry);
    let mut marks = entry.journal_end.subscribe();
    let mut search: Option<Box<JournalSearch>> = None;
    loop {
        let mark = *marks.borrow_and_update();
        let matched;
        (search, matched) = advance(entry, pattern, from, search, mark.end).await?;
        if let Some(found) = matched {
            return Ok(WaitEnd::Pattern(found));
        }
        if mark.finished {
            wait_finished(&mut entry.live.subscribe()).await;
            return Ok(WaitEnd::Exit);
        }
        let next = search.as_ref().map_or(0, |search| search.next_offset);
        let echo_match = search
            .as_ref()
            .and_then(|search| search.searcher.echo_hit());
        let more = marks.wait_for(|mark| mark.finished || mark.end > next);
        let Some(echoed) = echo_match else {
            // The sender is owned by the entry, so this cannot fail.
            let _more = more.await.is_ok();
            continue;
        };
        tokio::select! {
            biased;
            _more = more => {}
            () = wait_until_no_echo(core, entry) => {
                return Ok(WaitEnd::Pattern(line_match(&entry.journal()?, echoed)?));
            }
        }
    }
}

/// A search with its place in the journal.
#[derive(Debug)]
struct JournalSearch {
    searcher: Searcher,
    next_offset: u64,
}

/// A search, where one could begin, and its match.
type SearchStep = (Option<Box<JournalSearch>>, Option<LineMatch>);

/// Searches all there is, on a thread of its own where that may take long. No search while there is
/// no journal.
async fn advance(
    entry: &Arc<ExecutionHandle>,
    pattern: &Pattern,
    from: SearchOrigin<'_>,
    search: Option<Box<JournalSearch>>,
    end: u64,
) -> Result<SearchStep, Error> {
    let journal = match entry.journal() {
        // Not spawned yet: there is nothing to read, and new output is notified.
        Err(Error::Output(ReadError::Missing { .. })) if !entry.is_finished() => {
            return Ok((None, None));
        }
        journal => journal?,
    };
    let search = match search {
        Some(search) => search,
        None => Box::new(start_search(entry, &journal, pattern, from)?),
    };
    let more = end.saturating_sub(search.next_offset);
    if more <= INLINE_BYTES
        && search
            .searcher
            .is_quick(usize::try_from(more).unwrap_or(usize::MAX))
    {
        return search_available(&journal, search);
    }
    let reading = tokio::task::spawn_blocking(move || search_available(&journal, search)).await;
    // The search does not panic and is not aborted.
    reading.unwrap_or(Err(Error::Closing))
}

fn search_available(
    journal: &Journal,
    mut search: Box<JournalSearch>,
) -> Result<SearchStep, Error> {
    loop {
        let page = journal.read(&ByteQuery {
            max_bytes: PAGE_BYTES,
            ..ByteQuery::starting_at(cursor_at(search.next_offset))
        })?;
        if page.gap.is_some() {
            search.searcher.skip();
        }
        let bytes = page.chunks.iter().map(|it| it.bytes.len()).sum();
        search.searcher.begin_page(bytes);
        for chunk in &page.chunks {
            if let Some(hit) = search.searcher.feed(chunk).map_err(ReadError::from)? {
                let found = line_match(journal, &hit)?;
                return Ok((Some(search), Some(found)));
            }
        }
        let read = page.next.offset > search.next_offset;
        search.next_offset = page.next.offset;
        if !page.more || !read {
            let found = search
                .searcher
                .search_open_lines()
                .map_err(ReadError::from)?;
            let found = found.map(|hit| line_match(journal, &hit)).transpose()?;
            return Ok((Some(search), found));
        }
    }
}

/// Where to begin, and the state there.
fn start_search(
    entry: &ExecutionHandle,
    journal: &Journal,
    pattern: &Pattern,
    from: SearchOrigin<'_>,
) -> Result<JournalSearch, Error> {
    let label = entry.spec.encoding.as_deref();
    let encoding = label.and_then(|label| encoding_for_label(label).ok());
    let pattern = match encoding {
        Some(encoding) => pattern.clone().with_encoding(encoding),
        None => pattern.clone(),
    };
    let input_offset = entry.live.borrow().last_input_offset;
    let input = match (from, input_offset) {
        (SearchOrigin::Input(input), _) => Some((input.offset, input.lines())),
        (SearchOrigin::Start, Some(typed_at)) => Some((typed_at, &[][..])),
        (SearchOrigin::Offset(offset), Some(typed_at)) => {
            let reach = offset.saturating_sub(OVERLAP_BYTES as u64);
            (reach <= typed_at && typed_at <= offset).then_some((typed_at, &[][..]))
        }
        (SearchOrigin::Start | SearchOrigin::Offset(_), None) => None,
    };
    let after = match from {
        SearchOrigin::Start => 0,
        SearchOrigin::Offset(offset) => offset,
        SearchOrigin::Input(input) => input.offset,
    };
    let next = match input {
        Some((typed_at, _)) => typed_at,
        None => after.saturating_sub(OVERLAP_BYTES as u64),
    };
    let echo = match input {
        Some((typed_at, lines)) => EchoFilter::new(line_before(entry, journal, typed_at)?, lines),
        None => EchoFilter::default(),
    };
    let start = SearchStart {
        after,
        in_line: input.is_none() && next > 0,
        echo,
        is_encoded: encoding.is_some_and(|encoding| !encoding.is_ascii_compatible()),
    };
    Ok(JournalSearch {
        searcher: Searcher::new(pattern, start),
        next_offset: next,
    })
}

/// The text of a terminal's line at an offset.
fn line_before(entry: &ExecutionHandle, journal: &Journal, offset: u64) -> Result<Vec<u8>, Error> {
    if !matches!(entry.spec.io, Io::Pty { .. }) || offset == 0 {
        return Ok(Vec::new());
    }
    let mut line = Vec::new();
    for lookback in LINE_LOOKBACK_BYTES {
        let before = journal.read(&ByteQuery {
            until: Some(offset),
            joined: true,
            ..ByteQuery::starting_at(cursor_at(offset.saturating_sub(lookback)))
        })?;
        let bytes = before
            .chunks
            .into_iter()
            .flat_map(|Chunk { bytes, .. }| bytes);
        line = bytes.collect();
        if let Some(end) = line.iter().rposition(|&byte| byte == b'\n') {
            line.drain(..=end);
            break;
        }
    }
    Ok(plain_text(&line))
}

/// The line of a hit, with its number.
fn line_match(journal: &Journal, hit: &SearchHit) -> Result<LineMatch, Error> {
    let page = journal.lines(&LineQuery {
        from: Some(cursor_at(hit.offset)),
        streams: StreamSet::only(hit.stream),
        unfinished: OpenLineMode::Preview,
        count_omitted: false,
        head: Some(1),
        max_lines: 1,
        // Its text is known.
        max_line_bytes: 0,
        ..LineQuery::default()
    })?;
    let line = page.lines.into_iter().next();
    let (at, offset, number) = line.map_or((hit.at, hit.offset, 0), |line| {
        (line.at, line.offset, line.number)
    });
    Ok(LineMatch {
        at,
        stream: hit.stream,
        offset,
        number,
        line: ByteString::from(hit.text.clone()),
    })
}

const fn cursor_at(offset: u64) -> Cursor {
    Cursor { offset, event: 0 }
}

/// Waits until the command has been silent for a while and its terminal does not echo: text that
/// looks like an echo is then its reply.
async fn wait_until_no_echo(core: &EngineInner, entry: &ExecutionHandle) {
    let request = SnapshotRequest {
        foreground: true,
        ..SnapshotRequest::default()
    };
    let quiet = Duration::from_millis(ECHO_QUIET_MS);
    tokio::time::sleep_until(Instant::now() + quiet).await;
    let snapshot = core.backend.snapshot(entry.id, request).await.ok();
    let echo = snapshot.and_then(|it| it.foreground).and_then(|it| it.echo);
    if echo != Some(false) {
        std::future::pending::<()>().await;
    }
}
