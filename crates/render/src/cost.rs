//! What lines cost, and lines cut to what they may cost.

use super::rows::OutputRow;

/// What the JSON around one text block costs.
pub(super) const BLOCK_CHARS: usize = 28;
/// Kept free for the note in the middle of a cut line.
const NOTE_CHARS: usize = 64;

/// What a line costs: its characters, its end, and its share of the block it is in.
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

    /// What a row costs, its suffix included.
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

/// Cuts a line of more characters in its middle and names its length.
pub fn elide_middle(text: &mut String, limit: usize) {
    if text.len() <= limit {
        return;
    }
    let chars = chars(text);
    if chars <= limit {
        return;
    }
    let room = limit.saturating_sub(NOTE_CHARS);
    let (head, tail) = (room - room / 4, room / 4);
    let note = format!(
        "[… {} characters in this line …]",
        group_thousands(chars as u64)
    );
    let head_end = nth_char(text, head);
    let tail_start = nth_char(text, chars - tail);
    *text = format!("{}{note}{}", &text[..head_end], &text[tail_start..]);
}

fn nth_char(text: &str, n: usize) -> usize {
    text.char_indices().nth(n).map_or(text.len(), |(at, _)| at)
}

/// A number with its thousands apart.
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
