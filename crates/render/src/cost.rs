//! The cost of lines in characters, and cutting lines to it.

use super::row::OutputRow;

/// Characters of the JSON around one text block.
pub(super) const BLOCK_CHARS: usize = 28;
/// Characters of the heading of a stream, or of the mark of one line.
pub(super) const HEADING_CHARS: usize = 10;
/// Reserved for the note in the middle of a cut line.
const NOTE_CHARS: usize = 64;

/// The cost of a line: its characters, its end, and its share of its block.
#[derive(Debug, Clone, Copy)]
pub(super) struct LineCost {
    share: usize,
}

impl LineCost {
    pub(super) fn new(block_lines: usize) -> Self {
        Self {
            share: 1 + BLOCK_CHARS.div_ceil(block_lines.max(1)),
        }
    }

    pub(super) fn of(self, text: &str) -> usize {
        chars(text) + self.share
    }

    /// The cost of a row, including its suffix.
    pub(super) fn of_row(self, row: &OutputRow) -> usize {
        self.of(&row.text) + chars(&row.suffix())
    }
}

pub(super) fn chars(text: &str) -> usize {
    if text.is_ascii() {
        text.len()
    } else {
        text.chars().count()
    }
}

/// Cuts a line longer than `limit` in its middle and states its length.
pub fn cut_row(row: &mut OutputRow, limit: usize) {
    row.is_cut |= elide_middle(&mut row.text, limit);
}

/// Cuts a text longer than `limit` in its middle and states its length; returns whether it did.
pub(super) fn elide_middle(text: &mut String, limit: usize) -> bool {
    if text.len() <= limit {
        return false;
    }
    let chars = chars(text);
    if chars <= limit {
        return false;
    }
    let room = limit.saturating_sub(NOTE_CHARS);
    let (head, tail) = (room - room / 4, room / 4);
    let count = group_thousands(chars as u64);
    let note = format!("[… {count} characters in this line …]");
    let head_end = nth_char(text, head);
    let tail_start = nth_char(text, chars - tail);
    *text = format!("{}{note}{}", &text[..head_end], &text[tail_start..]);
    true
}

fn nth_char(text: &str, n: usize) -> usize {
    text.char_indices().nth(n).map_or(text.len(), |(at, _)| at)
}

/// Formats a number with thousands separators.
pub(super) fn group_thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() * 4 / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}
