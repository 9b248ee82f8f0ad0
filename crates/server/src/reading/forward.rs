//! Output page by page: whole lines from a cursor on, in the order in which they end, as many as
//! fit. The cursor after a page begins the next one; nothing is shown twice or left out.

use ostler_engine::Info;
use ostler_journal::{Encoding, Journal, LinePage, LineQuery, ReadError};
use ostler_model::Cursor;

use super::pages::text;
use super::{Slice, apart, encoding, focused, on_text};
use crate::render::{Row, clamp};

/// Bytes a character has at most.
const CHAR_BYTES: u64 = 4;
/// Bytes read for one page at most, where redraws or equal lines leave little of them.
const PAGE_BYTES: u64 = 4 * 1024 * 1024;
/// How much more is read each time what was read leaves room.
const GROWTH: u64 = 4;
/// The most characters of a line that is longer than a page.
const LONG_LINE_CHARS: usize = 2_000;

/// One page.
#[derive(Debug, Default)]
pub(crate) struct Page {
    /// Its text, in blocks.
    pub(crate) blocks: Vec<String>,
    /// Where the next page begins.
    pub(crate) next: Cursor,
    /// Lines that are there behind it.
    pub(crate) left: u64,
    /// Its rows, for what is to be told about them.
    pub(crate) rows: Slice,
}

/// Reads the page of at most `chars` characters that `query` asks for; `show` makes blocks of
/// its rows.
pub(crate) async fn page(
    journal: &Journal,
    info: &Info,
    query: LineQuery,
    chars: usize,
    show: impl Fn(Vec<Row>) -> Vec<String> + Send + 'static,
) -> Result<Page, ReadError> {
    let encoding = encoding(info);
    apart(journal, info, move |journal| {
        let query = focused(on_text(journal, &query, encoding)?);
        let reader = Reader {
            journal,
            query,
            encoding,
            chars,
            show: &show,
        };
        reader.page()
    })
    .await
}

struct Reader<'r> {
    journal: &'r Journal,
    query: LineQuery,
    encoding: Option<Encoding>,
    chars: usize,
    show: &'r dyn Fn(Vec<Row>) -> Vec<String>,
}

/// Lines that were read, and what they look like.
struct Read {
    page: LinePage,
    rows: Vec<Row>,
    blocks: Vec<String>,
}

impl Reader<'_> {
    fn page(&self) -> Result<Page, ReadError> {
        let mut bytes = (self.chars as u64 * CHAR_BYTES).min(PAGE_BYTES);
        let mut read = self.read(bytes, bytes)?;
        while self.fits(&read) && read.page.more && bytes < PAGE_BYTES {
            bytes = (bytes * GROWTH).min(PAGE_BYTES);
            let longer = self.read(bytes, bytes)?;
            if longer.page.next == read.page.next {
                break;
            }
            read = longer;
        }
        if !self.fits(&read) {
            read = self.cut(&read, bytes)?;
        }
        self.told(read)
    }

    /// As many of the lines as fit, at least one; lines are cut only where none fits.
    fn cut(&self, whole: &Read, bytes: u64) -> Result<Read, ReadError> {
        let (mut fitting, mut over) = (1, whole.page.lines.len() as u64);
        let mut best = None;
        while fitting + 1 < over {
            let middle = fitting.midpoint(over);
            let read = self.read(middle, bytes)?;
            if self.fits(&read) {
                fitting = middle;
                best = Some(read);
            } else {
                over = middle;
            }
        }
        if let Some(read) = best {
            return Ok(read);
        }
        let mut read = self.read(1, bytes)?;
        if !self.fits(&read) {
            for row in &mut read.rows {
                clamp(&mut row.text, LONG_LINE_CHARS.min(self.chars / 4));
            }
            read.blocks = (self.show)(read.rows.clone());
        }
        Ok(read)
    }

    fn read(&self, lines: u64, bytes: u64) -> Result<Read, ReadError> {
        let page = self.journal.lines(&LineQuery {
            max_lines: lines.min(self.query.max_lines),
            max_bytes: bytes,
            max_line_bytes: self
                .query
                .max_line_bytes
                .min(self.chars as u64 * CHAR_BYTES),
            count_omitted: false,
            ..self.query.clone()
        })?;
        let rows = text(self.journal, &page, &self.query, self.encoding)?;
        let blocks = (self.show)(rows.clone());
        Ok(Read { page, rows, blocks })
    }

    fn fits(&self, read: &Read) -> bool {
        let chars = read.blocks.iter().map(|it| it.chars().count() + 1);
        chars.sum::<usize>() <= self.chars
    }

    fn told(&self, read: Read) -> Result<Page, ReadError> {
        let Read { page, rows, blocks } = read;
        let left = if page.more { self.left(page.next)? } else { 0 };
        Ok(Page {
            blocks,
            next: page.next,
            left,
            rows: Slice {
                front: rows,
                gap: page.gap.filter(|gap| gap.to > gap.from),
                damaged: page.damaged,
                ..Slice::default()
            },
        })
    }

    /// How many lines there are from a position on.
    fn left(&self, from: Cursor) -> Result<u64, ReadError> {
        let page = self.journal.lines(&LineQuery {
            from: Some(from),
            max_lines: 1,
            max_line_bytes: 1,
            ..self.query.clone()
        })?;
        Ok(page.lines.len() as u64 + page.omitted_lines)
    }
}

#[cfg(test)]
#[path = "forward_tests.rs"]
mod tests;
