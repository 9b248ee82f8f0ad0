//! Head, tail and what failed between them, within a budget; each part left out counted
//! exactly.

use std::collections::HashMap;

use super::choose::{Chosen, choose, says_failure};
use super::condense::condensed;
use super::price::{BLOCK_CHARS, Price, clamp, grouped};
use super::rows::Row;

/// The most characters a reply has unless more are asked for (F3).
pub const REPLY_CHARS: usize = 12_000;
/// The most characters a reply can be asked for (F3).
pub const REPLY_LIMIT_CHARS: usize = 20_000;
/// The most characters shown of a long output of a command that succeeded and in which nothing
/// says that something failed.
pub const QUIET_CHARS: usize = 3_000;
/// The same where something says that it failed, of a command that says it succeeded.
pub const FAULT_CHARS: usize = 5_000;
/// What the line that names the stream of those below it costs, or the mark of one line.
pub(super) const HEADING_CHARS: usize = 10;
/// Lines of standard error between others that are marked one by one.
const FEW_LINES: usize = 2;
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
    /// Characters where not everything fits and nothing says that something failed.
    pub quiet_chars: usize,
    /// Characters where not everything fits and something says that it failed.
    pub fault_chars: usize,
    /// Whether lines are told apart by stream; else they tell it themselves.
    pub headings: bool,
}

impl Budget {
    /// So many characters in blocks of so many lines, each stream under its heading.
    #[must_use]
    pub const fn new(chars: usize, block_lines: usize) -> Self {
        Self {
            chars,
            block_lines,
            quiet_chars: chars,
            fault_chars: chars,
            headings: true,
        }
    }
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
    /// Whether they are standard error's.
    pub is_stderr: bool,
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
    /// What of that is standard output, or the terminal's.
    pub output_omitted: Option<Omitted>,
    /// What of that is standard error.
    pub errors_omitted: Option<Omitted>,
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

    /// With each run of equal lines, and of binary output, as one row.
    #[must_use]
    pub fn condensed(self) -> Self {
        Self {
            pieces: condensed(self.pieces),
            alike: self.alike,
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

    /// Whether it is standard error's.
    pub(super) fn is_stderr(&self) -> bool {
        match self {
            Self::Row(row) => row.is_stderr(),
            Self::Hidden(hidden) => hidden.is_stderr,
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
pub fn excerpt(material: Material, budget: Budget) -> Excerpt {
    let mut material = material.condensed();
    let chars = budget.chars.max(MIN_BUDGET_CHARS);
    let price = Price::new(budget.block_lines);
    let partial = material.is_partial();
    let fits = |material: &Material| !partial && spent(material, price, budget) <= chars;
    let everything = |material: Material| {
        let rows = material.pieces.into_iter().filter_map(|piece| match piece {
            Piece::Row(row) => Some(Shown::of(row, None)),
            Piece::Hidden(_) => None,
        });
        Excerpt {
            blocks: blocks(rows.collect(), budget),
            ..Excerpt::default()
        }
    };
    if fits(&material) {
        return everything(material);
    }
    let quiet = budget.quiet_chars < chars && !says_failure(&material.pieces);
    let line_chars = LINE_CHARS.min(chars / 4);
    for row in material.rows_mut() {
        clamp(&mut row.text, line_chars);
    }
    if fits(&material) && !quiet {
        return everything(material);
    }
    let room = if quiet {
        budget.quiet_chars
    } else {
        chars.min(budget.fault_chars.max(MIN_BUDGET_CHARS))
    };
    let chosen = choose(&material, room - BLOCK_CHARS, price);
    let of = |errors| total(&material.pieces, &chosen, |it| it.is_stderr() == errors);
    Excerpt {
        omitted: total(&material.pieces, &chosen, |_| true),
        output_omitted: of(false),
        errors_omitted: of(true),
        blocks: blocks(lines(material.pieces, &chosen), budget),
    }
}

/// What all rows cost, the headings of their streams included.
fn spent(material: &Material, price: Price, budget: Budget) -> usize {
    let rows: usize = material.rows().map(|row| price.of_row(row)).sum();
    let headings = if budget.headings {
        let switches = switches(material.rows().map(Row::is_stderr));
        (switches + switches % 2) * HEADING_CHARS
    } else {
        0
    };
    rows + headings
}

/// How often the stream changes, standard output being the one that needs no heading.
fn switches(streams: impl Iterator<Item = bool>) -> usize {
    let mut now = false;
    let changes = streams.filter(|is_stderr| std::mem::replace(&mut now, *is_stderr) != *is_stderr);
    changes.count()
}

/// What all that is not shown of the pieces meant comes to.
pub(super) fn total(
    pieces: &[Piece],
    chosen: &Chosen,
    is_meant: impl Fn(&Piece) -> bool,
) -> Option<Omitted> {
    let left = pieces.iter().zip(&chosen.shown);
    let left = left.filter(|(piece, shown)| !**shown && is_meant(piece));
    left.map(|(piece, _)| piece.omitted()).reduce(Omitted::and)
}

/// One line of an excerpt.
struct Shown {
    text: String,
    /// Whether it is standard error's; none for the marker of a gap.
    is_stderr: Option<bool>,
}

impl Shown {
    fn of(row: Row, note: Option<String>) -> Self {
        let is_stderr = Some(row.is_stderr());
        let suffix = row.suffix();
        let text = row.text + &suffix + note.as_deref().unwrap_or_default();
        Self { text, is_stderr }
    }

    fn marker(omitted: Omitted) -> Self {
        Self {
            text: omitted.marker(),
            is_stderr: None,
        }
    }
}

/// The lines shown, with a marker for each stretch that is not.
fn lines(pieces: Vec<Piece>, chosen: &Chosen) -> Vec<Shown> {
    let mut lines = Vec::new();
    let mut stretch: Option<Omitted> = None;
    for (place, piece) in pieces.into_iter().enumerate() {
        let omitted = piece.omitted();
        match piece {
            Piece::Row(row) if chosen.shown[place] => {
                lines.extend(stretch.take().map(Shown::marker));
                lines.push(Shown::of(
                    row,
                    chosen.notes.get(&place).map(|count| note(*count)),
                ));
            }
            Piece::Row(_) | Piece::Hidden(_) => {
                stretch = Some(stretch.map_or(omitted, |before| before.and(omitted)));
            }
        }
    }
    lines.extend(stretch.map(Shown::marker));
    lines
}

/// What stands behind a line that says what many others say that are not shown.
pub(super) fn note(count: u64) -> String {
    format!(" [… {} more like this …]", grouped(count))
}

/// Lines joined into blocks, each stream told apart. Where the stream changes once, that is where
/// a block begins; where it changes often, a few lines of standard error are marked one by one.
fn blocks(lines: Vec<Shown>, budget: Budget) -> Vec<String> {
    let streams: Vec<bool> = lines.iter().filter_map(|line| line.is_stderr).collect();
    let apart = switches(streams.iter().copied()) == 1;
    let mut runs = streams.chunk_by(|one, next| one == next).flat_map(|run| {
        let few = run.len() <= FEW_LINES && !apart;
        run.iter().map(move |is_stderr| (*is_stderr, few))
    });
    let mut blocks: Vec<String> = Vec::new();
    let mut room = 0;
    let mut now = false;
    for line in lines {
        let mut text = line.text;
        let mark = line.is_stderr.and_then(|_| runs.next());
        match mark.filter(|_| budget.headings) {
            Some((true, true)) if !now => text.insert_str(0, "[stderr] "),
            Some((is_stderr, _)) if is_stderr != now => {
                now = is_stderr;
                text.insert_str(0, if now { "[stderr]\n" } else { "[stdout]\n" });
                if apart {
                    room = 0;
                }
            }
            Some(_) | None => {}
        }
        match blocks.last_mut() {
            Some(block) if room > 0 => {
                block.push('\n');
                block.push_str(&text);
            }
            _ => {
                blocks.push(text);
                room = budget.block_lines.max(1);
            }
        }
        room -= 1;
    }
    blocks
}

#[cfg(test)]
#[path = "excerpt_tests.rs"]
mod tests;
