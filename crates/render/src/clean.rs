//! One line as a terminal would leave it: escape sequences removed, carriage returns, backspaces
//! and erasures applied. Ten thousand redraws of a progress bar become one line.

use std::borrow::Cow;

use super::ansi::{AnsiToken, CELLS, for_each_token, is_plain};

/// The line without control sequences, in its last state. Other rows it would change are ignored;
/// see [`RedrawFolder`](super::redraw::RedrawFolder).
#[must_use]
pub fn clean(line: &str) -> Cow<'_, str> {
    if is_plain(line) {
        return Cow::Borrowed(line);
    }
    let mut cells = Cells::default();
    for_each_token(line, |token| cells.apply(token));
    Cow::Owned(cells.text())
}

/// One row of a terminal, with the column of its cursor.
#[derive(Debug, Default)]
pub(super) struct Cells {
    cells: Vec<char>,
    pub(super) column: usize,
}

impl Cells {
    /// A row that shows `text`, with its cursor in `column`.
    pub(super) fn from_text(text: &str, column: usize) -> Self {
        Self {
            cells: text.chars().collect(),
            column,
        }
    }

    /// The text of the row.
    pub(super) fn text(self) -> String {
        self.cells.into_iter().collect()
    }

    /// Whether nothing was drawn, or all of it erased.
    pub(super) const fn is_empty(&self) -> bool {
        self.cells.is_empty()
    }

    /// Draws, moves or erases within the row.
    pub(super) fn apply(&mut self, token: AnsiToken) {
        match token {
            AnsiToken::Put(c) => self.put(c),
            AnsiToken::Return => self.column = 0,
            AnsiToken::Back => self.column = self.column.saturating_sub(1),
            AnsiToken::Control(action, number) => self.apply_control(action, number),
        }
    }

    fn put(&mut self, c: char) {
        if self.column < self.cells.len() {
            self.cells[self.column] = c;
        } else {
            self.cells.resize(self.column, ' ');
            self.cells.push(c);
        }
        self.column += 1;
    }

    fn apply_control(&mut self, action: char, number: usize) {
        let steps = number.max(1);
        match (action, number) {
            ('K' | 'J', 0) => self.cells.truncate(self.column),
            ('K', 1) => {
                let end = self.cells.len().min(self.column + 1);
                self.cells[..end].fill(' ');
            }
            ('K' | 'J', 2) => self.cells.clear(),
            ('C', _) => self.column = (self.column + steps).min(CELLS.max(self.column)),
            ('D', _) => self.column = self.column.saturating_sub(steps),
            ('G', _) => self.column = steps - 1,
            ('P', _) => {
                let from = self.column.min(self.cells.len());
                self.cells.drain(from..(from + steps).min(self.cells.len()));
            }
            ('X', _) => {
                let from = self.column.min(self.cells.len());
                let to = (from + steps).min(self.cells.len());
                self.cells[from..to].fill(' ');
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn plain_text_is_untouched() {
        for line in ["", "a\tb", "grüße 你好 é", "no\u{a0}break"] {
            assert!(matches!(clean(line), Cow::Borrowed(same) if same == line));
        }
    }

    #[test]
    fn colours_titles_and_charsets_vanish() {
        assert_eq!(clean("\x1b[1;31mred\x1b[0m text"), "red text");
        assert_eq!(clean("\x1b]0;title\x07shown"), "shown");
        assert_eq!(clean("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\"), "link");
        assert_eq!(clean("\x1b(Btext\x1b=more\x07"), "textmore");
        assert_eq!(clean("\u{9b}31mred\u{9d}0;t\u{9c}."), "red.");
    }

    #[test]
    fn redraws_leave_their_last_state() {
        assert_eq!(clean("10%\r20%\r100%"), "100%");
        assert_eq!(clean("done\r"), "done");
        assert_eq!(clean("long text\r\x1b[Kshort"), "short");
        assert_eq!(clean("long text\x1b[2K\rshort"), "short");
        assert_eq!(clean("abc\rX"), "Xbc");
        assert_eq!(clean("abc\x08\x08X"), "aXc");
        assert_eq!(clean("ab\x1b[5Gc"), "ab  c");
    }

    #[test]
    fn ten_thousand_updates_are_one_short_line() {
        let line: String = (0..=10_000).map(|n| format!("\rprogress {n:5}")).collect();
        assert_eq!(clean(&line), "progress 10000");
    }

    #[test]
    fn what_is_cut_off_does_not_leak() {
        assert_eq!(clean("text\x1b"), "text");
        assert_eq!(clean("text\x1b[31"), "text");
        assert_eq!(clean("text\x1b]0;tit"), "text");
    }

    proptest! {
        #[test]
        fn nothing_controls_a_terminal_afterwards(line in "\\PC*|[\\x00-\\x7f\u{80}-\u{9f}é]*") {
            let cleaned = clean(&line);
            prop_assert!(!cleaned.contains(|c: char| c.is_control() && c != '\t'));
            prop_assert_eq!(clean(&cleaned), cleaned.as_ref());
        }

        #[test]
        fn a_far_column_costs_no_memory(column in 0_u64..u64::MAX) {
            let line = format!("\x1b[{column}Gx");
            prop_assert!(clean(&line).len() <= CELLS + 1);
        }
    }
}
