//! Head and tail within a budget, the part between counted exactly.

use super::rows::Row;

/// The most characters a reply has by default (F3).
pub const REPLY_CHARS: usize = 20_000;
/// The smallest budget an excerpt works with.
const MIN_BUDGET_CHARS: usize = 512;
/// Kept free for the line that says what was left out.
const MARKER_CHARS: usize = 180;
/// A line longer than this is cut in the middle once not everything fits.
const LINE_CHARS: usize = 2_000;
/// Kept free for the note in the middle of a cut line.
const NOTE_CHARS: usize = 64;
/// What the JSON around one text block costs.
const BLOCK_CHARS: usize = 28;
/// The head gets one part in so many; the rest belongs to the last lines.
const HEAD_SHARE: usize = 5;

/// How much may be shown.
#[derive(Debug, Clone, Copy)]
pub struct Budget {
    /// Characters, over all blocks.
    pub chars: usize,
    /// Lines in one block.
    pub block_lines: usize,
}

/// Lines between the front and the back that were never fetched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Hidden {
    /// How many.
    pub lines: u64,
    /// Their bytes, where they could be counted.
    pub bytes: Option<u64>,
    /// The offset of the first.
    pub offset: u64,
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
    /// What was left out.
    pub omitted: Option<Omitted>,
}

/// What all of these rows would cost.
#[must_use]
pub fn cost(rows: &[Row], block_lines: usize) -> usize {
    let price = Price::new(block_lines);
    rows.iter().map(|row| price.of(&row.text)).sum()
}

/// Shows `front`, what lies hidden behind it, and `back`, within `budget`: all of it where it
/// fits; else long lines are cut in their middle; else the first and the last lines remain.
#[must_use]
pub fn excerpt(front: Vec<Row>, hidden: Option<Hidden>, back: Vec<Row>, budget: Budget) -> Excerpt {
    let chars = budget.chars.max(MIN_BUDGET_CHARS);
    let price = Price::new(budget.block_lines);
    if hidden.is_none() && cost(&front, budget.block_lines) <= chars && back.is_empty() {
        let lines = front.into_iter().map(|row| row.text);
        return Excerpt {
            blocks: blocks(lines, budget.block_lines),
            omitted: None,
        };
    }
    let split = front.len();
    let mut rows = front;
    rows.extend(back);
    let line_chars = LINE_CHARS.min(chars / 4);
    for row in &mut rows {
        clamp(&mut row.text, line_chars);
    }
    if hidden.is_none() && cost(&rows, budget.block_lines) <= chars {
        let lines = rows.into_iter().map(|row| row.text);
        return Excerpt {
            blocks: blocks(lines, budget.block_lines),
            omitted: None,
        };
    }
    let room = chars - MARKER_CHARS - BLOCK_CHARS;
    let (head, used) = price.fitting(rows[..split].iter(), room / HEAD_SHARE);
    let (tail, _) = price.fitting(rows[head..].iter().rev(), room - used);
    let middle = head..rows.len() - tail;
    let omitted = count(&rows[middle.clone()], middle.start, split, hidden);
    let lines = shown(rows, middle, &omitted);
    Excerpt {
        blocks: blocks(lines, budget.block_lines),
        omitted: Some(omitted),
    }
}

/// Sums up the rows left out and what was hidden among them.
fn count(middle: &[Row], start: usize, split: usize, hidden: Option<Hidden>) -> Omitted {
    let rows = u64::try_from(middle.len()).unwrap_or(u64::MAX);
    let bytes: u64 = middle.iter().map(|row| row.bytes).sum();
    let first = middle.first().filter(|_| start < split || hidden.is_none());
    let offset = first.map(|row| row.offset).or(hidden.map(|h| h.offset));
    Omitted {
        lines: rows + hidden.map_or(0, |hidden| hidden.lines),
        bytes: hidden
            .map_or(Some(0), |hidden| hidden.bytes)
            .map(|hidden| hidden + bytes),
        offset: offset.unwrap_or_default(),
    }
}

fn shown(
    rows: Vec<Row>,
    middle: std::ops::Range<usize>,
    omitted: &Omitted,
) -> impl Iterator<Item = String> {
    let marker = marker(omitted);
    let mut marker = Some(marker);
    let last = rows.len();
    let mut lines: Vec<String> = Vec::with_capacity(last + 1 - middle.len());
    for (place, row) in rows.into_iter().enumerate() {
        if place == middle.start {
            lines.extend(marker.take());
        }
        if !middle.contains(&place) {
            lines.push(row.text);
        }
    }
    lines.extend(marker);
    lines.into_iter()
}

fn marker(omitted: &Omitted) -> String {
    let bytes = omitted
        .bytes
        .map_or_else(String::new, |bytes| format!(" ({} bytes)", grouped(bytes)));
    let plural = if omitted.lines == 1 { "" } else { "s" };
    format!(
        "[… {} line{plural}{bytes} omitted; read on with since=\"{}.0\", or narrow with grep …]",
        grouped(omitted.lines),
        omitted.offset
    )
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

/// Cuts a long line in its middle and names its length.
fn clamp(text: &mut String, limit: usize) {
    if text.len() <= limit {
        return;
    }
    let chars = text.chars().count();
    if chars <= limit {
        return;
    }
    let room = limit.saturating_sub(NOTE_CHARS);
    let (head, tail) = (room - room / 4, room / 4);
    let note = format!(
        "[… {} of this line's {} characters …]",
        grouped((chars - head - tail) as u64),
        grouped(chars as u64)
    );
    let head_end = nth_char(text, head);
    let tail_start = nth_char(text, chars - tail);
    *text = format!("{}{note}{}", &text[..head_end], &text[tail_start..]);
}

fn nth_char(text: &str, n: usize) -> usize {
    text.char_indices().nth(n).map_or(text.len(), |(at, _)| at)
}

/// A number with its thousands apart.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() * 4 / 3);
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// What a line costs: its characters, its end, and its share of the block it is in.
struct Price {
    share: usize,
}

impl Price {
    fn new(block_lines: usize) -> Self {
        Self {
            share: 1 + BLOCK_CHARS.div_ceil(block_lines.max(1)),
        }
    }

    fn of(&self, text: &str) -> usize {
        let chars = if text.is_ascii() {
            text.len()
        } else {
            text.chars().count()
        };
        chars + self.share
    }

    /// How many of these rows fit into `room`, and what they cost.
    fn fitting<'a>(&self, rows: impl Iterator<Item = &'a Row>, room: usize) -> (usize, usize) {
        let mut used = 0;
        let mut count = 0;
        for row in rows {
            let price = self.of(&row.text);
            if used + price > room {
                break;
            }
            used += price;
            count += 1;
        }
        (count, used)
    }
}

#[cfg(test)]
#[path = "excerpt_tests.rs"]
mod tests;
