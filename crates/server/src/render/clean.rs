//! One line as a terminal would have left it: escape sequences taken out, carriage returns,
//! backspaces and erasures carried out. Ten thousand redraws of a progress bar cost one line.

use std::borrow::Cow;
use std::iter::Peekable;
use std::str::Chars;

/// Columns a cursor movement can reach; a redraw moves within a screen's width.
const COLUMNS: usize = 4_096;

/// The line without control sequences, in its last state.
#[must_use]
pub fn clean(line: &str) -> Cow<'_, str> {
    if is_plain(line) {
        return Cow::Borrowed(line);
    }
    let mut screen = Screen::default();
    let mut chars = line.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\x1b' => screen.escape(&mut chars),
            '\u{9b}' => screen.sequence(&mut chars),
            '\u{90}' | '\u{98}' | '\u{9d}'..='\u{9f}' => skip_string(&mut chars),
            '\r' => screen.column = 0,
            '\x08' => screen.column = screen.column.saturating_sub(1),
            '\t' => screen.put(c),
            c if c.is_control() => {}
            c => screen.put(c),
        }
    }
    Cow::Owned(screen.cells.into_iter().collect())
}

fn is_plain(line: &str) -> bool {
    /// First byte of the characters U+0080 to U+00BF, control characters among them.
    const C1_LEAD: u8 = 0xc2;
    line.bytes()
        .all(|byte| (byte >= b' ' && byte != 0x7f && byte != C1_LEAD) || byte == b'\t')
        || (!line.contains(|c: char| c.is_control() && c != '\t'))
}

/// One row of a terminal.
#[derive(Default)]
struct Screen {
    cells: Vec<char>,
    column: usize,
}

impl Screen {
    fn put(&mut self, c: char) {
        if self.column < self.cells.len() {
            self.cells[self.column] = c;
        } else {
            self.cells.resize(self.column, ' ');
            self.cells.push(c);
        }
        self.column += 1;
    }

    fn escape(&mut self, chars: &mut Peekable<Chars<'_>>) {
        match chars.next() {
            Some('[') => self.sequence(chars),
            Some(']' | 'P' | 'X' | '^' | '_') => skip_string(chars),
            Some(' '..='/') => skip_intermediate(chars),
            Some(_) | None => {}
        }
    }

    /// A control sequence: parameters, then one final character that says what to do.
    fn sequence(&mut self, chars: &mut Peekable<Chars<'_>>) {
        let mut number = None;
        for c in chars.by_ref() {
            match c {
                '0'..='9' => {
                    let digit = c as usize - '0' as usize;
                    number = Some((number.unwrap_or(0) * 10 + digit).min(COLUMNS));
                }
                '@'..='~' => return self.act(c, number),
                ' '..='?' => {}
                _ => return,
            }
        }
    }

    fn act(&mut self, action: char, number: Option<usize>) {
        let steps = number.unwrap_or(1).max(1);
        match (action, number.unwrap_or(0)) {
            ('K', 0) => self.cells.truncate(self.column),
            ('K', 1) => {
                let end = self.cells.len().min(self.column + 1);
                self.cells[..end].fill(' ');
            }
            ('K' | 'J', 2) => self.cells.clear(),
            ('C', _) => self.column = (self.column + steps).min(COLUMNS.max(self.column)),
            ('D', _) => self.column = self.column.saturating_sub(steps),
            ('G', _) => self.column = steps - 1,
            _ => {}
        }
    }
}

/// Skips what a terminal would take as a title or a device string.
fn skip_string(chars: &mut Peekable<Chars<'_>>) {
    while let Some(c) = chars.next() {
        match c {
            '\x07' | '\u{9c}' => return,
            '\x1b' => {
                chars.next_if_eq(&'\\');
                return;
            }
            _ => {}
        }
    }
}

fn skip_intermediate(chars: &mut Peekable<Chars<'_>>) {
    while chars.next_if(|c| (' '..='/').contains(c)).is_some() {}
    chars.next();
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
            prop_assert!(clean(&line).len() <= COLUMNS + 1);
        }
    }
}
