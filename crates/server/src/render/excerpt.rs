//! Head, tail and what failed between them, within a budget; each part left out counted
//! exactly.

use std::collections::HashMap;

use super::choose::{Chosen, choose};
use super::price::{BLOCK_CHARS, Price, clamp, grouped};
use super::rows::Row;

/// The most characters a reply has by default (F3).
pub const REPLY_CHARS: usize = 20_000;
/// The smallest budget an excerpt works with.
const MIN_BUDGET_CHARS: usize = 256;
/// A line longer than this is cut in the middle once not everything fits.
const LINE_CHARS: usize = 2_000;

/// How much may be shown.
#[derive(Debug, Clone, Copy)]
pub struct Budget {
    /// Characters, over all blocks.
    pub chars: usize,
    /// Lines in one block.
    pub block_lines: usize,
}

/// Lines that were never fetched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Hidden {
    /// How many.
    pub lines: u64,
    /// Their bytes, where they could be counted.
    pub bytes: Option<u64>,
    /// The offset of the first.
    pub offset: u64,
}

/// A line, or lines that were never fetched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piece {
    /// A line.
    Row(Row),
    /// What lies between two lines.
    Hidden(Hidden),
}

/// What an excerpt is made of, in order.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Material {
    /// Lines, and what lies hidden between them.
    pub pieces: Vec<Piece>,
    /// How many hidden lines have which [`shape`](super::faults::shape), of those that say
    /// what failed.
    pub alike: HashMap<u64, u64>,
}

/// What was left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Omitted {
    /// Lines.
    pub lines: u64,
    /// Their bytes as the command printed them, where they could be counted.
    pub bytes: Option<u64>,
    /// The offset at which the first begins: the cursor to read on from.
    pub offset: u64,
}

/// What is shown.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Excerpt {
    /// Text blocks of at most [`Budget::block_lines`] lines.
    pub blocks: Vec<String>,
    /// What was left out, all in all, and where the first of it begins.
    pub omitted: Option<Omitted>,
}

impl Material {
    /// Lines that are all there.
    #[must_use]
    pub fn whole(rows: Vec<Row>) -> Self {
        Self {
            pieces: rows.into_iter().map(Piece::Row).collect(),
            alike: HashMap::new(),
        }
    }

    /// The lines that are there.
    pub fn rows(&self) -> impl Iterator<Item = &Row> {
        self.pieces.iter().filter_map(Piece::row)
    }

    /// Every line, for what changes them one by one.
    pub fn rows_mut(&mut self) -> impl Iterator<Item = &mut Row> {
        self.pieces.iter_mut().filter_map(|piece| match piece {
            Piece::Row(row) => Some(row),
            Piece::Hidden(_) => None,
        })
    }

    /// Whether lines are missing.
    #[must_use]
    pub fn is_partial(&self) -> bool {
        self.pieces.iter().any(|piece| piece.row().is_none())
    }
}

impl Piece {
    /// The line, where it is one.
    #[must_use]
    pub const fn row(&self) -> Option<&Row> {
        match self {
            Self::Row(row) => Some(row),
            Self::Hidden(_) => None,
        }
    }

    pub(super) fn offset(&self) -> u64 {
        self.omitted().offset
    }

    pub(super) fn bytes(&self) -> Option<u64> {
        self.omitted().bytes
    }

    /// Lines, bytes and offset, were it left out.
    fn omitted(&self) -> Omitted {
        match self {
            Self::Row(row) => Omitted {
                lines: row.lines,
                bytes: Some(row.bytes),
                offset: row.offset,
            },
            Self::Hidden(hidden) => Omitted {
                lines: hidden.lines,
                bytes: hidden.bytes,
                offset: hidden.offset,
            },
        }
    }
}

impl Omitted {
    fn and(self, other: Self) -> Self {
        Self {
            lines: self.lines + other.lines,
            bytes: self.bytes.zip(other.bytes).map(|(a, b)| a + b),
            offset: self.offset.min(other.offset),
        }
    }

    /// The line that stands for it.
    pub(super) fn marker(&self) -> String {
        let bytes = self
            .bytes
            .map_or_else(String::new, |bytes| format!(" ({} bytes)", grouped(bytes)));
        let plural = if self.lines == 1 { "" } else { "s" };
        format!(
            "[… {} line{plural}{bytes} omitted; cursor {}.0 …]",
            grouped(self.lines),
            self.offset
        )
    }
}

/// Shows `material` within `budget`: all of it where it fits; else long lines are cut in their
/// middle; else the first lines, the last ones and those that say what failed remain.
#[must_use]
pub fn excerpt(mut material: Material, budget: Budget) -> Excerpt {
    let chars = budget.chars.max(MIN_BUDGET_CHARS);
    let price = Price::new(budget.block_lines);
    let partial = material.is_partial();
    let fits = |material: &Material| {
        let spent: usize = material.rows().map(|row| price.of(&row.text)).sum();
        !partial && spent <= chars
    };
    if !fits(&material) {
        let line_chars = LINE_CHARS.min(chars / 4);
        for row in material.rows_mut() {
            clamp(&mut row.text, line_chars);
        }
    }
    if fits(&material) {
        let rows = material.pieces.into_iter().filter_map(|piece| match piece {
            Piece::Row(row) => Some(row.text),
            Piece::Hidden(_) => None,
        });
        return Excerpt {
            blocks: blocks(rows, budget.block_lines),
            omitted: None,
        };
    }
    let chosen = choose(&material, chars - BLOCK_CHARS, price);
    let omitted = total(&material.pieces, &chosen);
    Excerpt {
        blocks: blocks(lines(material.pieces, &chosen), budget.block_lines),
        omitted,
    }
}

/// What all that is not shown comes to.
pub(super) fn total(pieces: &[Piece], chosen: &Chosen) -> Option<Omitted> {
    let left = pieces.iter().zip(&chosen.shown);
    let left = left.filter(|(_, shown)| !**shown);
    left.map(|(piece, _)| piece.omitted()).reduce(Omitted::and)
}

/// The lines shown, with a marker for each stretch that is not.
fn lines(pieces: Vec<Piece>, chosen: &Chosen) -> impl Iterator<Item = String> {
    let mut lines = Vec::new();
    let mut stretch: Option<Omitted> = None;
    for (place, piece) in pieces.into_iter().enumerate() {
        let omitted = piece.omitted();
        match piece {
            Piece::Row(row) if chosen.shown[place] => {
                lines.extend(stretch.take().map(|stretch| stretch.marker()));
                let more = chosen.notes.get(&place).map(|count| note(*count));
                lines.push(row.text + more.as_deref().unwrap_or_default());
            }
            Piece::Row(_) | Piece::Hidden(_) => {
                stretch = Some(stretch.map_or(omitted, |before| before.and(omitted)));
            }
        }
    }
    lines.extend(stretch.map(|stretch| stretch.marker()));
    lines.into_iter()
}

/// What stands behind a line that says what many others say that are not shown.
pub(super) fn note(count: u64) -> String {
    format!(" [… {} more like this …]", grouped(count))
}

/// Lines joined into blocks.
fn blocks(lines: impl Iterator<Item = String>, block_lines: usize) -> Vec<String> {
    let mut blocks: Vec<String> = Vec::new();
    let mut room = 0;
    for line in lines {
        match blocks.last_mut() {
            Some(block) if room > 0 => {
                block.push('\n');
                block.push_str(&line);
            }
            _ => {
                blocks.push(line);
                room = block_lines.max(1);
            }
        }
        room -= 1;
    }
    blocks
}

#[cfg(test)]
#[path = "excerpt_tests.rs"]
mod tests;
