//! Waiting for a pattern: reads output as it comes and hands it to a [`Searcher`].

use std::sync::Arc;
use std::time::Duration;

use ostler_journal::query::Chunk;
use ostler_journal::{
    ByteQuery, Journal, LineQuery, Pattern, ReadError, StreamSet, Unfinished, encoding_named,
};
use ostler_model::spec::Io;
use ostler_model::{Cursor, Observation, Text};
use tokio::time::Instant;

use super::wait::finished;
use crate::core::Core;
use crate::entry::{Entry, Watching};
use crate::error::Error;
use crate::info::{Match, WaitEnd};
use crate::search::{Echo, Hit, OVERLAP_BYTES, Searcher, SentInput, Start, plain_text};

/// Output up to this many bytes is searched in place; more on a thread of its own.
const INLINE_BYTES: u64 = 256 * 1024;
/// Bytes read at once.
const PAGE_BYTES: u64 = 256 * 1024;
/// Bytes before an input in which the line is looked for that it was typed in; further back
/// only where none ends in the first of them.
const STANDING_BYTES: [u64; 2] = [256, 4 * 1024];
/// Silence after which it is looked whether the terminal echoes, in milliseconds.
const ECHO_QUIET_MS: u64 = 150;

/// Where the search begins.
#[derive(Debug, Clone, Copy)]
pub(super) enum From<'a> {
    /// At the first line kept, or behind the last input.
    Start,
    /// At lines that end after this offset.
    Offset(u64),
    /// Behind this input.
    Input(&'a SentInput),
}

/// Waits for a match, or the end.
pub(super) async fn wait(
    core: &Core,
    entry: &Arc<Entry>,
    pattern: &Pattern,
    from: From<'_>,
) -> Result<WaitEnd, Error> {
    let _watching = Watching::new(entry);
    let mut marks = entry.marks.subscribe();
    let mut search: Option<Box<Search>> = None;
    loop {
        let mark = *marks.borrow_and_update();
        let found;
        (search, found) = advance(entry, (pattern, from), search, mark.end).await?;
        if let Some(found) = found {
            return Ok(WaitEnd::Pattern(found));
        }
        if mark.finished {
            finished(&mut entry.live.subscribe()).await;
            return Ok(WaitEnd::Exit);
        }
        let next = search.as_ref().map_or(0, |search| search.next);
        let echoed = search.as_ref().and_then(|search| search.searcher.echoed());
        let more = marks.wait_for(|mark| mark.finished || mark.end > next);
        let Some(echoed) = echoed else {
            // The sender lives in the entry, so this cannot fail.
            let _more = more.await.is_ok();
            continue;
        };
        tokio::select! {
            biased;
            _more = more => {}
            () = no_echo(core, entry) => {
                return Ok(WaitEnd::Pattern(told(&entry.journal()?, echoed)?));
            }
        }
    }
}

/// A search with its place in the journal.
#[derive(Debug)]
struct Search {
    searcher: Searcher,
    next: u64,
}

/// A search, where one could begin, and its match.
type Advanced = (Option<Box<Search>>, Option<Match>);

/// Searches all there is, on a thread of its own where that may take long. No search while there is
/// no journal.
async fn advance(
    entry: &Arc<Entry>,
    (pattern, from): (&Pattern, From<'_>),
    search: Option<Box<Search>>,
    end: u64,
) -> Result<Advanced, Error> {
    let journal = match entry.journal() {
        // Not born yet: there is nothing to read, and what comes is told of.
        Err(Error::Output(ReadError::Missing { .. })) if !entry.is_finished() => {
            return Ok((None, None));
        }
        journal => journal?,
    };
    let search = match search {
        Some(search) => search,
        None => Box::new(begin(entry, &journal, pattern, from)?),
    };
    let more = end.saturating_sub(search.next);
    if more <= INLINE_BYTES
        && search
            .searcher
            .is_quick(usize::try_from(more).unwrap_or(usize::MAX))
    {
        return read_on(&journal, search);
    }
    let reading = tokio::task::spawn_blocking(move || read_on(&journal, search)).await;
    // The search itself does not panic, and nobody aborts it.
    reading.unwrap_or(Err(Error::Closing))
}

fn read_on(journal: &Journal, mut search: Box<Search>) -> Result<Advanced, Error> {
    loop {
        let page = journal.read(&ByteQuery {
            max_bytes: PAGE_BYTES,
            ..ByteQuery::from(at(search.next))
        })?;
        if page.gap.is_some() {
            search.searcher.skip();
        }
        for chunk in &page.chunks {
            if let Some(hit) = search.searcher.take(chunk).map_err(ReadError::from)? {
                let found = told(journal, &hit)?;
                return Ok((Some(search), Some(found)));
            }
        }
        let read = page.next.offset > search.next;
        search.next = page.next.offset;
        if !page.more || !read {
            let found = search.searcher.look().map_err(ReadError::from)?;
            let found = found.map(|hit| told(journal, &hit)).transpose()?;
            return Ok((Some(search), found));
        }
    }
}

/// Where to begin, and what is known there.
fn begin(
    entry: &Entry,
    journal: &Journal,
    pattern: &Pattern,
    from: From<'_>,
) -> Result<Search, Error> {
    let label = entry.spec.encoding.as_deref();
    let encoding = label.and_then(|label| encoding_named(label).ok());
    let pattern = match encoding {
        Some(encoding) => pattern.clone().over(encoding),
        None => pattern.clone(),
    };
    let typed_at = entry.live.borrow().input_at;
    let input = match (from, typed_at) {
        (From::Input(input), _) => Some((input.offset, input.lines())),
        (From::Start, Some(typed_at)) => Some((typed_at, &[][..])),
        (From::Offset(offset), Some(typed_at)) => {
            let reach = offset.saturating_sub(OVERLAP_BYTES as u64);
            (reach <= typed_at && typed_at <= offset).then_some((typed_at, &[][..]))
        }
        (From::Start | From::Offset(_), None) => None,
    };
    let after = match from {
        From::Start => 0,
        From::Offset(offset) => offset,
        From::Input(input) => input.offset,
    };
    let next = match input {
        Some((typed_at, _)) => typed_at,
        None => after.saturating_sub(OVERLAP_BYTES as u64),
    };
    let echo = match input {
        Some((typed_at, lines)) => Echo::of(standing(entry, journal, typed_at)?, lines),
        None => Echo::default(),
    };
    let start = Start {
        after,
        in_line: input.is_none() && next > 0,
        echo,
        is_encoded: encoding.is_some_and(|encoding| !encoding.is_ascii_compatible()),
    };
    Ok(Search {
        searcher: Searcher::new(pattern, start),
        next,
    })
}

/// What stood in the line of a terminal at an offset, as it reads.
fn standing(entry: &Entry, journal: &Journal, offset: u64) -> Result<Vec<u8>, Error> {
    if !matches!(entry.spec.io, Io::Pty { .. }) || offset == 0 {
        return Ok(Vec::new());
    }
    let mut line = Vec::new();
    for reach in STANDING_BYTES {
        let before = journal.read(&ByteQuery {
            until: Some(offset),
            ..ByteQuery::from(at(offset.saturating_sub(reach)))
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
fn told(journal: &Journal, hit: &Hit) -> Result<Match, Error> {
    let page = journal.lines(&LineQuery {
        from: Some(at(hit.offset)),
        streams: StreamSet::only(hit.stream),
        unfinished: Unfinished::Preview,
        count_omitted: false,
        head: Some(1),
        max_lines: 1,
        ..LineQuery::default()
    })?;
    let line = page.lines.into_iter().next();
    let (at, offset, number) = line.map_or((hit.at, hit.offset, 0), |line| {
        (line.at, line.offset, line.number)
    });
    Ok(Match {
        at,
        stream: hit.stream,
        offset,
        number,
        line: Text::from(hit.text.clone()),
    })
}

const fn at(offset: u64) -> Cursor {
    Cursor { offset, event: 0 }
}

/// Until the command has been silent for a while and its terminal echoes nothing: then what
/// looks like an echo is its reply.
async fn no_echo(core: &Core, entry: &Entry) {
    let what = Observation {
        foreground: true,
        ..Observation::default()
    };
    let quiet = Duration::from_millis(ECHO_QUIET_MS);
    tokio::time::sleep_until(Instant::now() + quiet).await;
    let seen = core.place.observe(entry.id, what).await.ok();
    let echo = seen.and_then(|it| it.foreground).and_then(|it| it.echo);
    if echo != Some(false) {
        std::future::pending::<()>().await;
    }
}
