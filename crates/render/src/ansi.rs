//! Splits text into what a terminal would do: characters to draw, and cursor movements.

use std::iter::Peekable;
use std::str::Chars;

/// The most cells of one movement; a redraw stays within a screen.
pub(super) const CELLS: usize = 4_096;

/// One action of a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AnsiToken {
    /// Draw a character.
    Put(char),
    /// Move to the first column.
    Return,
    /// Move one column back.
    Back,
    /// A control sequence: its final character and its first parameter.
    Control(char, Option<usize>),
}

/// The tokens of a text; colours, titles and whatever else draws nothing are skipped.
pub(super) struct Tokens<'a> {
    chars: Peekable<Chars<'a>>,
}

impl<'a> Tokens<'a> {
    pub(super) fn of(text: &'a str) -> Self {
        Self {
            chars: text.chars().peekable(),
        }
    }

    fn escape(&mut self) -> Option<AnsiToken> {
        match self.chars.next() {
            Some('[') => self.sequence(),
            Some('M') => Some(AnsiToken::Control('A', None)),
            Some('E') => Some(AnsiToken::Control('E', None)),
            Some(']' | 'P' | 'X' | '^' | '_') => {
                self.skip_string();
                None
            }
            Some(' '..='/') => {
                self.skip_intermediate();
                None
            }
            Some(_) | None => None,
        }
    }

    /// Parses a control sequence: parameters, then one final character.
    fn sequence(&mut self) -> Option<AnsiToken> {
        let mut number: Option<usize> = None;
        let (mut first, mut private) = (true, false);
        for c in self.chars.by_ref() {
            match c {
                '0'..='9' if first => {
                    let digit = c as usize - '0' as usize;
                    number = Some((number.unwrap_or(0) * 10 + digit).min(CELLS));
                }
                ';' | ':' => first = false,
                '<'..='?' => private = true,
                '@'..='~' => return (!private).then_some(AnsiToken::Control(c, number)),
                ' '..='9' => {}
                _ => return None,
            }
        }
        None
    }

    /// Skips an OSC or device control string.
    fn skip_string(&mut self) {
        while let Some(c) = self.chars.next() {
            match c {
                '\x07' | '\u{9c}' => return,
                '\x1b' => {
                    self.chars.next_if_eq(&'\\');
                    return;
                }
                _ => {}
            }
        }
    }

    fn skip_intermediate(&mut self) {
        while self.chars.next_if(|c| (' '..='/').contains(c)).is_some() {}
        self.chars.next();
    }
}

impl Iterator for Tokens<'_> {
    type Item = AnsiToken;

    fn next(&mut self) -> Option<AnsiToken> {
        loop {
            let token = match self.chars.next()? {
                '\x1b' => self.escape(),
                '\u{9b}' => self.sequence(),
                '\u{90}' | '\u{98}' | '\u{9d}'..='\u{9f}' => {
                    self.skip_string();
                    None
                }
                '\r' => Some(AnsiToken::Return),
                '\x08' => Some(AnsiToken::Back),
                '\t' => Some(AnsiToken::Put('\t')),
                c if c.is_control() => None,
                c => Some(AnsiToken::Put(c)),
            };
            if token.is_some() {
                return token;
            }
        }
    }
}

/// Whether a terminal would show the text unchanged.
pub(super) fn is_plain(text: &str) -> bool {
    /// First byte of the characters U+0080 to U+00BF, control characters among them.
    const C1_LEAD: u8 = 0xc2;
    text.bytes()
        .all(|byte| (byte >= b' ' && byte != 0x7f && byte != C1_LEAD) || byte == b'\t')
        || (!text.contains(|c: char| c.is_control() && c != '\t'))
}
