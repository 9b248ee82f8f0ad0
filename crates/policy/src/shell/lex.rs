//! Computes the value of one word as POSIX shells and bash read it.

use std::iter::Peekable;
use std::str::Chars;

use crate::word::{ANYTHING, Certainty, CommandWord, UnknownPart, is_invisible};

/// Lexes the text of one word.
///
/// # Errors
/// The part that cannot belong to one word, or is not understood.
pub(super) fn lex_word(source: &str) -> Result<CommandWord, &'static str> {
    let mut lexer = Lexer {
        rest: source.chars().peekable(),
        text: String::new(),
        opaque: false,
        glob: false,
        brace: false,
        split_brace: false,
        unknown: UnknownPart::default(),
    };
    if source.starts_with('#') {
        return Err("a comment in place of a word");
    }
    while let Some(c) = lexer.rest.next() {
        lexer.read_unquoted(c)?;
        if lexer.opaque && matches!(lexer.rest.peek(), Some('(' | '{' | '`')) {
            // The syntax tree describes what is inside.
            break;
        }
    }
    Ok(lexer.finish())
}

struct Lexer<'a> {
    rest: Peekable<Chars<'a>>,
    text: String,
    opaque: bool,
    glob: bool,
    brace: bool,
    split_brace: bool,
    unknown: UnknownPart,
}

impl Lexer<'_> {
    fn read_unquoted(&mut self, c: char) -> Result<(), &'static str> {
        match c {
            '\\' => match self.rest.next() {
                None => return Err("a backslash at the end"),
                Some('\n') => {}
                Some(escaped) => self.push(escaped)?,
            },
            '\'' => self.read_single_quoted()?,
            '"' => self.read_double_quoted()?,
            '$' => self.read_dollar(true)?,
            '`' => {
                self.add_expansion(ANYTHING, true);
                self.rest = "".chars().peekable();
            }
            ' ' | '\t' | '\n' | ';' | '&' | '|' | '<' | '>' | '(' | ')' => {
                return Err("a word that the shell would split");
            }
            '*' | '?' | '[' => {
                self.glob = true;
                self.text.push(c);
            }
            '{' => {
                self.brace = true;
                self.text.push(c);
            }
            ',' => {
                self.split_brace |= self.brace;
                self.text.push(c);
            }
            '.' => {
                self.split_brace |= self.brace && self.rest.peek() == Some(&'.');
                self.text.push(c);
            }
            other => self.push(other)?,
        }
        Ok(())
    }

    fn push(&mut self, c: char) -> Result<(), &'static str> {
        if is_invisible(c) {
            return Err("a character that does not show");
        }
        self.text.push(c);
        Ok(())
    }

    fn read_single_quoted(&mut self) -> Result<(), &'static str> {
        loop {
            match self.rest.next() {
                None => return Err("a quote without its end"),
                Some('\'') => return Ok(()),
                Some(c) => self.push(c)?,
            }
        }
    }

    fn read_double_quoted(&mut self) -> Result<(), &'static str> {
        loop {
            match self.rest.next() {
                None if self.opaque => return Ok(()),
                None => return Err("a quote without its end"),
                Some('"') => return Ok(()),
                Some('`') => {
                    self.add_expansion(ANYTHING, false);
                    self.rest = "".chars().peekable();
                }
                Some('$') => self.read_dollar(false)?,
                Some('\\') => match self.rest.peek() {
                    Some('\n') => {
                        self.rest.next();
                    }
                    Some(&c @ ('$' | '`' | '"' | '\\')) => {
                        self.rest.next();
                        self.push(c)?;
                    }
                    Some(_) | None => self.text.push('\\'),
                },
                Some(c) => self.push(c)?,
            }
        }
    }

    /// Adds a part whose value is not known.
    fn add_expansion(&mut self, name: &str, bare: bool) {
        self.opaque = true;
        self.unknown.at_start |= self.text.is_empty();
        self.unknown.may_split |= bare;
        self.unknown.variables.push(name.to_owned());
    }

    /// After a dollar sign, outside (`bare`) or inside of double quotes.
    fn read_dollar(&mut self, bare: bool) -> Result<(), &'static str> {
        match self.rest.peek() {
            Some('\'') if bare => {
                self.rest.next();
                self.opaque = true;
                self.read_ansi_quoted()
            }
            Some('"') if bare => {
                self.opaque = true;
                Ok(())
            }
            Some('(' | '[') => {
                self.add_expansion(ANYTHING, bare);
                self.rest = "".chars().peekable();
                Ok(())
            }
            Some('{') => {
                self.read_braced(bare);
                Ok(())
            }
            Some(c) if c.is_ascii_alphanumeric() || "_@*#?$!-".contains(*c) => {
                self.read_parameter(bare);
                Ok(())
            }
            Some(_) | None => self.push('$'),
        }
    }

    fn read_parameter(&mut self, bare: bool) {
        match self.rest.peek() {
            Some(c) if c.is_ascii_alphabetic() || *c == '_' => {
                let name = self.read_name();
                let name = if name == "_" { ANYTHING } else { &name };
                self.add_expansion(name, bare);
            }
            // Numbers.
            Some('#' | '?' | '$' | '!') => {
                self.rest.next();
                self.opaque = true;
            }
            other => {
                // "$@" becomes several words in quotes, too.
                let several = other == Some(&'@');
                self.rest.next();
                self.add_expansion(ANYTHING, bare || several);
            }
        }
    }

    fn read_name(&mut self) -> String {
        let is_part = |c: &char| c.is_ascii_alphanumeric() || *c == '_';
        std::iter::from_fn(|| self.rest.next_if(is_part)).collect()
    }

    /// `${name}` and `${#name}` end at the brace; of anything else the rest of the word is not
    /// read.
    fn read_braced(&mut self, bare: bool) {
        self.rest.next();
        let is_length = self.rest.next_if_eq(&'#').is_some();
        let name = self.read_name();
        if self.rest.next() != Some('}') {
            self.rest = "".chars().peekable();
            self.add_expansion(ANYTHING, bare);
        } else if is_length && is_name(&name) {
            self.opaque = true;
        } else if is_name(&name) && name != "_" {
            self.add_expansion(&name, bare);
        } else {
            self.add_expansion(ANYTHING, bare);
        }
    }

    /// `$'…'`: dash reads it differently, so the value is a guess.
    fn read_ansi_quoted(&mut self) -> Result<(), &'static str> {
        loop {
            match self.rest.next() {
                None => return Err("a quote without its end"),
                Some('\'') => return Ok(()),
                Some('\\') => self.read_ansi_escape(),
                Some(c) => self.text.push(c),
            }
        }
    }

    fn read_ansi_escape(&mut self) {
        let Some(c) = self.rest.next() else { return };
        let number = match c {
            'x' => self.read_digits(16, 2),
            'u' => self.read_digits(16, 4),
            'U' => self.read_digits(16, 8),
            '0'..='7' => {
                let first = c.to_digit(8).unwrap_or_default();
                let more = self.read_octal_rest(first);
                Some(more)
            }
            'n' => Some(10),
            't' => Some(9),
            'r' => Some(13),
            'e' | 'E' => Some(27),
            other => Some(u32::from(other)),
        };
        if let Some(found) = number.and_then(char::from_u32) {
            self.text.push(found);
        }
    }

    fn read_octal_rest(&mut self, first: u32) -> u32 {
        let mut value = first;
        for _ in 0..2 {
            let Some(digit) = self.rest.peek().and_then(|c| c.to_digit(8)) else {
                break;
            };
            self.rest.next();
            value = value * 8 + digit;
        }
        value
    }

    fn read_digits(&mut self, radix: u32, max_digits: usize) -> Option<u32> {
        let mut value = None;
        for _ in 0..max_digits {
            let Some(digit) = self.rest.peek().and_then(|c| c.to_digit(radix)) else {
                break;
            };
            self.rest.next();
            value = Some(
                value
                    .unwrap_or(0_u32)
                    .wrapping_mul(radix)
                    .wrapping_add(digit),
            );
        }
        value
    }

    fn finish(self) -> CommandWord {
        let mut unknown = self.unknown;
        let certainty = if self.opaque || self.split_brace {
            Certainty::Opaque
        } else if self.glob {
            glob_certainty(&self.text)
        } else {
            Certainty::Certain
        };
        let expands = self.split_brace && self.text.starts_with('{');
        if expands
            || matches!(certainty, Certainty::AnyNames)
            || (self.glob && certainty == Certainty::Opaque)
        {
            unknown = UnknownPart::anything();
        }
        CommandWord {
            text: self.text,
            certainty,
            unknown,
        }
    }
}

/// Whether a shell accepts it as the name of a variable.
pub(super) fn is_name(text: &str) -> bool {
    let mut chars = text.chars();
    chars
        .next()
        .is_some_and(|c| c.is_ascii_alphabetic() || c == '_')
        && chars.all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// What is known of the result of a file name pattern.
fn glob_certainty(pattern: &str) -> Certainty {
    let before = pattern.split(['*', '?', '[']).next().unwrap_or_default();
    // After `--name=` it is that option's value, whatever it expands to.
    let may_leave =
        pattern.starts_with(['/', '~']) || (pattern.starts_with('-') && !before.contains('='));
    let hidden = pattern
        .split('/')
        .any(|part| part == ".." || (part.starts_with('.') && part.contains(['*', '?', '['])));
    // A class could stand for a dot or a slash only literally, which shells do not match.
    if may_leave || hidden {
        return Certainty::Opaque;
    }
    if pattern.starts_with(['*', '?', '[']) {
        return Certainty::AnyNames;
    }
    Certainty::Names
}
