//! Excerpts: the first lines, the last ones and the failure lines between them, within a budget;
//! each omitted range is counted exactly.

use super::condense::condensed;
use super::cost::{BLOCK_CHARS, HEADING_CHARS, LineCost, cut_row};
use super::excerpt_piece::{ExcerptInput, ExcerptPiece, OmittedLines, omitted_total, similar_note};
use super::row::OutputRow;
use super::select_lines::{LineSelection, has_failure, select_lines};

/// The default size of a reply, in characters.
pub const REPLY_CHARS: usize = 12_000;
/// The largest size of a reply, in characters.
pub const REPLY_LIMIT_CHARS: usize = 20_000;
/// The most characters of a long output of a successful command without failure lines.
pub const QUIET_CHARS: usize = 3_000;
/// The same with failure lines, of a command that reports success.
pub const FAILURE_CHARS: usize = 5_000;
/// The most consecutive lines of standard error that are marked one by one.
const FEW_LINES: usize = 2;
/// The smallest budget of an excerpt.
const MIN_BUDGET_CHARS: usize = 256;
/// A longer line is cut in the middle once not everything fits.
const LINE_CHARS: usize = 2_000;

/// The size of an excerpt.
#[derive(Debug, Clone, Copy)]
pub struct ExcerptBudget {
    /// Characters, over all blocks.
    pub chars: usize,
    /// Lines in one block.
    pub block_lines: usize,
    /// Characters where not everything fits and there are no failure lines.
    pub quiet_chars: usize,
    /// Characters where not everything fits and there are failure lines.
    pub failure_chars: usize,
    /// Whether the text marks the stream of lines; otherwise the lines do so themselves.
    pub headings: bool,
}

impl ExcerptBudget {
    /// This many characters, in blocks of this many lines, with a heading per stream.
    #[must_use]
    pub const fn new(chars: usize, block_lines: usize) -> Self {
        Self {
            chars,
            block_lines,
            quiet_chars: chars,
            failure_chars: chars,
            headings: true,
        }
    }
}

/// The rendered excerpt.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Excerpt {
    /// Text blocks of at most [`ExcerptBudget::block_lines`] lines.
    pub blocks: Vec<String>,
    /// All omitted lines, and the offset of the first one.
    pub omitted: Option<OmittedLines>,
    /// The omitted lines of standard output, or the terminal's.
    pub output_omitted: Option<OmittedLines>,
    /// The omitted lines of standard error.
    pub errors_omitted: Option<OmittedLines>,
    /// Whether a part of a line that is shown is replaced by a mark.
    pub has_cut_line: bool,
}

impl ExcerptInput {
    /// With each run of equal lines, and of binary output, as one row.
    #[must_use]
    pub fn condensed(self) -> Self {
        Self {
            pieces: condensed(self.pieces),
            similar: self.similar,
        }
    }
}

/// Renders `input` within `budget`: all of it where it fits; else long lines are cut in their
/// middle; else the first lines, the last ones and the failure lines remain.
#[must_use]
pub fn excerpt(input: ExcerptInput, budget: ExcerptBudget) -> Excerpt {
    let mut material = input.condensed();
    let chars = budget.chars.max(MIN_BUDGET_CHARS);
    let cost = LineCost::new(budget.block_lines);
    let is_partial = material.is_partial();
    let fits = |material: &ExcerptInput| !is_partial && total_cost(material, cost, budget) <= chars;
    let everything = |material: ExcerptInput| {
        let has_cut_line = material.rows().any(|row| row.is_cut);
        let rows = material.pieces.into_iter().filter_map(|piece| match piece {
            ExcerptPiece::Row(row) => Some(ExcerptLine::of(row, None)),
            ExcerptPiece::Hidden(_) => None,
        });
        Excerpt {
            blocks: join_blocks(rows.collect(), budget),
            has_cut_line,
            ..Excerpt::default()
        }
    };
    if fits(&material) {
        return everything(material);
    }
    let is_quiet = budget.quiet_chars < chars && !has_failure(&material.pieces);
    let line_chars = LINE_CHARS.min(chars / 4);
    for row in material.rows_mut() {
        cut_row(row, line_chars);
    }
    if fits(&material) && !is_quiet {
        return everything(material);
    }
    let room = if is_quiet {
        budget.quiet_chars
    } else {
        chars.min(budget.failure_chars.max(MIN_BUDGET_CHARS))
    };
    let selection = select_lines(&material, room - BLOCK_CHARS, cost);
    let omitted_of = |errors| {
        omitted_total(&material.pieces, &selection.selected, |it| {
            it.is_stderr() == errors
        })
    };
    Excerpt {
        omitted: omitted_total(&material.pieces, &selection.selected, |_| true),
        output_omitted: omitted_of(false),
        errors_omitted: omitted_of(true),
        has_cut_line: shows_cut_row(&material, &selection),
        blocks: join_blocks(excerpt_lines(material.pieces, &selection), budget),
    }
}

/// Whether a selected row is cut.
fn shows_cut_row(material: &ExcerptInput, selection: &LineSelection) -> bool {
    let mut pieces = material.pieces.iter().zip(&selection.selected);
    pieces.any(|(piece, is_selected)| *is_selected && piece.row().is_some_and(|row| row.is_cut))
}

/// The cost of all rows, including the headings of their streams.
fn total_cost(material: &ExcerptInput, price: LineCost, budget: ExcerptBudget) -> usize {
    let rows: usize = material.rows().map(|row| price.of_row(row)).sum();
    let headings = if budget.headings {
        let switch_count = count_stream_switches(material.rows().map(OutputRow::is_stderr));
        (switch_count + switch_count % 2) * HEADING_CHARS
    } else {
        0
    };
    rows + headings
}

/// Number of stream changes; standard output needs no heading.
fn count_stream_switches(streams: impl Iterator<Item = bool>) -> usize {
    let mut is_stderr_now = false;
    let changes =
        streams.filter(|is_stderr| std::mem::replace(&mut is_stderr_now, *is_stderr) != *is_stderr);
    changes.count()
}

/// One line of an excerpt.
struct ExcerptLine {
    text: String,
    /// Whether it is of standard error; none for the marker of an omission.
    is_stderr: Option<bool>,
}

impl ExcerptLine {
    fn of(row: OutputRow, note: Option<String>) -> Self {
        let is_stderr = Some(row.is_stderr());
        let suffix = row.suffix();
        let text = row.text + &suffix + note.as_deref().unwrap_or_default();
        Self { text, is_stderr }
    }

    fn marker(omitted: OmittedLines) -> Self {
        Self {
            text: omitted.marker(),
            is_stderr: None,
        }
    }
}

/// The lines shown, with a marker for each omitted range.
fn excerpt_lines(pieces: Vec<ExcerptPiece>, selection: &LineSelection) -> Vec<ExcerptLine> {
    let mut lines = Vec::new();
    let mut gap: Option<OmittedLines> = None;
    for (index, piece) in pieces.into_iter().enumerate() {
        let omitted = piece.omitted();
        match piece {
            ExcerptPiece::Row(row) if selection.selected[index] => {
                lines.extend(gap.take().map(ExcerptLine::marker));
                lines.push(ExcerptLine::of(
                    row,
                    selection
                        .similar_notes
                        .get(&index)
                        .map(|count| similar_note(*count)),
                ));
            }
            ExcerptPiece::Row(_) | ExcerptPiece::Hidden(_) => {
                gap = Some(gap.map_or(omitted, |gap_before| gap_before.merge(omitted)));
            }
        }
    }
    lines.extend(gap.map(ExcerptLine::marker));
    lines
}

/// Joins lines into blocks, with streams marked. A single change of the stream starts a new block;
/// among frequent changes, a few lines of standard error are marked one by one.
fn join_blocks(lines: Vec<ExcerptLine>, budget: ExcerptBudget) -> Vec<String> {
    let streams: Vec<bool> = lines.iter().filter_map(|line| line.is_stderr).collect();
    let is_split_once = count_stream_switches(streams.iter().copied()) == 1;
    let mut runs = streams.chunk_by(|one, next| one == next).flat_map(|run| {
        let few = run.len() <= FEW_LINES && !is_split_once;
        run.iter().map(move |is_stderr| (*is_stderr, few))
    });
    let mut blocks: Vec<String> = Vec::new();
    let mut room = 0;
    let mut is_stderr_now = false;
    for line in lines {
        let mut text = line.text;
        let mark = line.is_stderr.and_then(|_| runs.next());
        match mark.filter(|_| budget.headings) {
            Some((true, true)) if !is_stderr_now => text.insert_str(0, "[stderr] "),
            Some((is_stderr, _)) if is_stderr != is_stderr_now => {
                is_stderr_now = is_stderr;
                text.insert_str(
                    0,
                    if is_stderr_now {
                        "[stderr]\n"
                    } else {
                        "[stdout]\n"
                    },
                );
                if is_split_once {
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
