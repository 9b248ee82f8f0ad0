//! Output page by page: whole lines from a cursor on, in the order in which they end, as many as
//! fit. The next page starts at the cursor after this one; nothing is repeated or omitted.

use ostler_journal::{Encoding, Journal, LinePage, LineQuery, ReadError};
use ostler_model::Cursor;

use super::head_tail::page_rows;
use super::{RowSlice, focus_on_matches, with_pattern_encoding};
use crate::{OutputRow, cut_row};

/// The most bytes of a character.
const CHAR_BYTES: u64 = 4;
/// The most bytes read for one page, where redraws or equal lines leave little of them.
const PAGE_BYTES: u64 = 4 * 1024 * 1024;
/// The factor by which more is read while the page is not full.
const GROWTH: u64 = 4;
/// The most characters of a line that is longer than a page.
const LONG_LINE_CHARS: usize = 2_000;

/// A page of rendered output, and where the next one begins.
#[derive(Debug, Default)]
pub struct TextPage {
    /// Its text, in blocks.
    pub blocks: Vec<String>,
    /// Where the next page begins.
    pub next: Cursor,
    /// How many matching lines there are after this page.
    pub remaining_lines: u64,
    /// Its rows, for notes about gaps, damage and binary output.
    pub slice: RowSlice,
}

/// Reads the page of at most `chars` characters that `query` asks for; `render_rows` makes blocks
/// of its rows. Blocks for as long as that takes.
///
/// # Errors
/// When the journal cannot be read.
pub fn read_page(
    journal: &Journal,
    query: &LineQuery,
    encoding: Option<Encoding>,
    chars: usize,
    render_rows: &dyn Fn(Vec<OutputRow>) -> Vec<String>,
) -> Result<TextPage, ReadError> {
    let reader = PageReader {
        journal,
        query: focus_on_matches(with_pattern_encoding(journal, query, encoding)?),
        encoding,
        chars,
        render_rows,
    };
    reader.read_page()
}

struct PageReader<'r> {
    journal: &'r Journal,
    query: LineQuery,
    encoding: Option<Encoding>,
    chars: usize,
    render_rows: &'r dyn Fn(Vec<OutputRow>) -> Vec<String>,
}

/// Lines that were read, with their rows.
struct RenderedLines {
    page: LinePage,
    rows: Vec<OutputRow>,
    blocks: Vec<String>,
}

impl PageReader<'_> {
    fn read_page(&self) -> Result<TextPage, ReadError> {
        let mut bytes = (self.chars as u64 * CHAR_BYTES).min(PAGE_BYTES);
        let mut rendered = self.render_lines(bytes, bytes)?;
        while self.fits(&rendered) && rendered.page.more && bytes < PAGE_BYTES {
            bytes = (bytes * GROWTH).min(PAGE_BYTES);
            let longer = self.render_lines(bytes, bytes)?;
            if longer.page.next == rendered.page.next {
                break;
            }
            rendered = longer;
        }
        if !self.fits(&rendered) {
            rendered = self.fit_lines(&rendered, bytes)?;
        }
        self.finish_page(rendered)
    }

    /// As many of the lines as fit, at least one; lines are cut only where none fits.
    fn fit_lines(&self, all: &RenderedLines, bytes: u64) -> Result<RenderedLines, ReadError> {
        let (mut fitting, mut too_many) = (1, all.page.lines.len() as u64);
        let mut fitting_lines = None;
        while fitting + 1 < too_many {
            let middle = fitting.midpoint(too_many);
            let read = self.render_lines(middle, bytes)?;
            if self.fits(&read) {
                fitting = middle;
                fitting_lines = Some(read);
            } else {
                too_many = middle;
            }
        }
        if let Some(read) = fitting_lines {
            return Ok(read);
        }
        let mut read = self.render_lines(1, bytes)?;
        if !self.fits(&read) {
            for row in &mut read.rows {
                cut_row(row, LONG_LINE_CHARS.min(self.chars / 4));
            }
            read.blocks = (self.render_rows)(read.rows.clone());
        }
        Ok(read)
    }

    fn render_lines(&self, lines: u64, bytes: u64) -> Result<RenderedLines, ReadError> {
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
        let rows = page_rows(self.journal, &page, &self.query, self.encoding)?;
        let blocks = (self.render_rows)(rows.clone());
        Ok(RenderedLines { page, rows, blocks })
    }

    fn fits(&self, rendered: &RenderedLines) -> bool {
        let chars = rendered.blocks.iter().map(|it| it.chars().count() + 1);
        chars.sum::<usize>() <= self.chars
    }

    fn finish_page(&self, rendered: RenderedLines) -> Result<TextPage, ReadError> {
        let RenderedLines { page, rows, blocks } = rendered;
        let remaining_lines = if page.more {
            self.count_remaining(page.next)?
        } else {
            0
        };
        Ok(TextPage {
            blocks,
            next: page.next,
            remaining_lines,
            slice: RowSlice {
                front: rows,
                gap: page.gap.filter(|gap| gap.to > gap.from),
                damaged: page.damaged,
                ..RowSlice::default()
            },
        })
    }

    /// The number of lines from a position on.
    fn count_remaining(&self, from: Cursor) -> Result<u64, ReadError> {
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
#[path = "paging_tests.rs"]
mod tests;
