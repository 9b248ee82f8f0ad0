//! Computes the value of one word as POSIX shells and bash read it.

use crate::word::{ANYTHING, Certainty, CommandWord, UnknownPart, WordPart, is_invisible};

/// Lexes the text of one word.
///
/// # Errors
/// The part that cannot belong to one word, or is not understood.
pub(super) fn lex_word(source: &str) -> Result<CommandWord, &'static str> {
    if source.starts_with('#') {
        return Err("a comment in place of a word");
    }
    let mut lexer = Lexer {
        rest: source,
        text: String::new(),
        opaque: false,
        glob: false,
        brace: false,
        split_brace: false,
        sealed: false,
        unknown: UnknownPart::default(),
        parts: Vec::new(),
    };
    loop {
        let before = lexer.rest;
        let Some(c) = lexer.next() else { break };
        match lexer.read_unquoted(c) {
            Ok(()) => {}
            Err(_) if lexer.sealed => {
                lexer.parts.push(WordPart::Expansion(before.to_owned()));
                break;
            }
            Err(reason) => return Err(reason),
        }
        // The syntax tree describes what is inside.
        lexer.sealed |= lexer.opaque && matches!(lexer.peek(), Some('(' | '{' | '`'));
    }
    Ok(lexer.finish())
}

struct Lexer<'a> {
    rest: &'a str,
    text: String,
    opaque: bool,
    glob: bool,
    brace: bool,
    split_brace: bool,
    /// Whether an expansion was read whose value and end are not certain: what follows is part of
    /// the word, but nothing is concluded from it.
    sealed: bool,
    unknown: UnknownPart,
    parts: Vec<WordPart>,
}

impl<'a> Lexer<'a> {
    fn next(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.consume(c.len_utf8());
        Some(c)
    }

    fn peek(&self) -> Option<char> {
        self.rest.chars().next()
    }

    fn next_if(&mut self, wanted: char) -> bool {
        let is_next = self.peek() == Some(wanted);
        if is_next {
            self.consume(wanted.len_utf8());
        }
        is_next
    }

    fn consume(&mut self, bytes: usize) -> &'a str {
        let (consumed, rest) = self.rest.split_at_checked(bytes).unwrap_or((self.rest, ""));
        self.rest = rest;
        consumed
    }

    fn read_unquoted(&mut self, c: char) -> Result<(), &'static str> {
        match c {
            '\\' => match self.next() {
                None => return Err("a backslash at the end"),
                Some('\n') => {}
                Some(escaped) => self.push(escaped)?,
            },
            '\'' => self.read_single_quoted()?,
            '"' => self.read_double_quoted()?,
            '$' => self.read_dollar(true)?,
            '`' => self.read_backquoted(true),
            ' ' | '\t' | '\n' | ';' | '&' | '|' | '<' | '>' | '(' | ')' => {
                return Err("a word that the shell would split");
            }
            '*' | '?' | '[' => {
                self.glob |= !self.sealed;
                self.push_plain(c);
            }
            '{' => {
                self.brace |= !self.sealed;
                self.push_plain(c);
            }
            ',' => {
                self.split_brace |= self.brace && !self.sealed;
                self.push_plain(c);
            }
            '.' => {
                let range = self.brace && self.peek() == Some('.');
                self.split_brace |= range && !self.sealed;
                self.push_plain(c);
            }
            other => self.push(other)?,
        }
        Ok(())
    }

    fn push(&mut self, c: char) -> Result<(), &'static str> {
        if is_invisible(c) && !self.sealed {
            return Err("a character that does not show");
        }
        self.push_plain(c);
        Ok(())
    }

    fn push_plain(&mut self, c: char) {
        if !self.sealed {
            self.text.push(c);
        }
        match self.parts.last_mut() {
            Some(WordPart::Literal(text)) => text.push(c),
            Some(_) | None => self.parts.push(WordPart::Literal(c.to_string())),
        }
    }

    fn read_single_quoted(&mut self) -> Result<(), &'static str> {
        loop {
            match self.next() {
                None => return Err("a quote without its end"),
                Some('\'') => return Ok(()),
                Some(c) => self.push(c)?,
            }
        }
    }

    fn read_double_quoted(&mut self) -> Result<(), &'static str> {
        loop {
            match self.next() {
                None if self.opaque => return Ok(()),
                None => return Err("a quote without its end"),
                Some('"') => return Ok(()),
                Some('`') => self.read_backquoted(false),
                Some('$') => self.read_dollar(false)?,
                Some('\\') => match self.peek() {
                    Some('\n') => {
                        self.next();
                    }
                    Some(c @ ('$' | '`' | '"' | '\\')) => {
                        self.next();
                        self.push(c)?;
                    }
                    Some(_) | None => self.push_plain('\\'),
                },
                Some(c) => self.push(c)?,
            }
        }
    }

    /// Adds a part whose value is not known.
    fn add_expansion(&mut self, name: &str, bare: bool, part: WordPart) {
        self.parts.push(part);
        if self.sealed {
            return;
        }
        self.opaque = true;
        self.unknown.at_start |= self.text.is_empty();
        self.unknown.may_split |= bare;
        self.unknown.variables.push(name.to_owned());
    }

    /// Adds a part that is a number, or a guess.
    fn add_opaque(&mut self, source: String) {
        self.opaque |= !self.sealed;
        self.parts.push(WordPart::Expansion(source));
    }

    /// An expansion of `length` bytes behind `start`, whose end was found without the grammar.
    fn seal(&mut self, start: &str, length: usize, bare: bool) {
        let source = format!("{start}{}", self.consume(length));
        self.add_expansion(ANYTHING, bare, WordPart::Expansion(source));
        self.sealed = true;
    }

    fn read_backquoted(&mut self, bare: bool) {
        let length = end_of(self.rest, None, '`').unwrap_or(self.rest.len());
        self.seal("`", length, bare);
    }

    /// After a dollar sign, outside (`bare`) or inside of double quotes.
    fn read_dollar(&mut self, bare: bool) -> Result<(), &'static str> {
        match self.peek() {
            Some('\'') if bare => {
                self.next();
                self.opaque |= !self.sealed;
                self.read_ansi_quoted()
            }
            Some('"') if bare => {
                self.opaque |= !self.sealed;
                Ok(())
            }
            Some(open @ ('(' | '[')) => {
                let close = if open == '(' { ')' } else { ']' };
                let inner = self.rest.get(1..).unwrap_or_default();
                let length = end_of(inner, Some(open), close).map_or(self.rest.len(), |it| it + 1);
                self.seal("$", length, bare);
                Ok(())
            }
            Some('{') => {
                self.read_braced(bare);
                Ok(())
            }
            Some(c) if c.is_ascii_alphanumeric() || "_@*#?$!-".contains(c) => {
                self.read_parameter(bare);
                Ok(())
            }
            Some(_) | None => self.push('$'),
        }
    }

    fn read_parameter(&mut self, bare: bool) {
        match self.peek() {
            Some(c) if c.is_ascii_alphabetic() || c == '_' => {
                let name = self.read_name();
                let part = WordPart::Variable {
                    name: name.to_owned(),
                    default: None,
                    source: format!("${name}"),
                };
                let name = if name == "_" { ANYTHING } else { name };
                self.add_expansion(name, bare, part);
            }
            // Numbers.
            Some(c @ ('#' | '?' | '$' | '!')) => {
                self.next();
                self.add_opaque(format!("${c}"));
            }
            other => {
                // "$@" becomes several words in quotes, too.
                let several = other == Some('@');
                let source = format!("${}", self.consume(1));
                self.add_expansion(ANYTHING, bare || several, WordPart::Expansion(source));
            }
        }
    }

    fn read_name(&mut self) -> &'a str {
        let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let length = self.rest.find(|c| !is_part(c)).unwrap_or(self.rest.len());
        self.consume(length)
    }

    /// `${name}` and `${#name}` end at the brace; any other seals the word.
    fn read_braced(&mut self, bare: bool) {
        let whole = self.rest;
        self.next();
        let is_length = self.next_if('#');
        let name = self.read_name();
        if self.next_if('}') {
            let source = format!("${}", &whole[..whole.len() - self.rest.len()]);
            if is_length && is_name(name) {
                self.add_opaque(source);
            } else if is_name(name) && name != "_" {
                let part = WordPart::Variable {
                    name: name.to_owned(),
                    default: None,
                    source,
                };
                self.add_expansion(name, bare, part);
            } else {
                self.add_expansion(ANYTHING, bare, WordPart::Expansion(source));
            }
            return;
        }
        let operator = self.rest;
        self.rest = whole;
        let inner = whole.get(1..).unwrap_or_default();
        let length = end_of(inner, Some('{'), '}').map_or(whole.len(), |it| it + 1);
        self.seal("$", length, bare);
        let end = operator.len().saturating_sub(self.rest.len() + 1);
        let operator = operator.get(..end).unwrap_or_default();
        let default = operator
            .strip_prefix(":-")
            .or_else(|| operator.strip_prefix('-'));
        let Some(default) = default.filter(|_| is_name(name) && !is_length) else {
            return;
        };
        if let Some(WordPart::Expansion(source)) = self.parts.pop() {
            self.parts.push(WordPart::Variable {
                name: name.to_owned(),
                default: Some(default.to_owned()),
                source,
            });
        }
    }

    /// `$'…'`: dash reads it differently, so the value is a guess.
    fn read_ansi_quoted(&mut self) -> Result<(), &'static str> {
        loop {
            match self.next() {
                None => return Err("a quote without its end"),
                Some('\'') => return Ok(()),
                Some('\\') => self.read_ansi_escape(),
                Some(c) => self.push_plain(c),
            }
        }
    }

    fn read_ansi_escape(&mut self) {
        let Some(c) = self.next() else { return };
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
            self.push_plain(found);
        }
    }

    fn read_octal_rest(&mut self, first: u32) -> u32 {
        let mut value = first;
        for _ in 0..2 {
            let Some(digit) = self.peek().and_then(|c| c.to_digit(8)) else {
                break;
            };
            self.next();
            value = value * 8 + digit;
        }
        value
    }

    fn read_digits(&mut self, radix: u32, max_digits: usize) -> Option<u32> {
        let mut value = None;
        for _ in 0..max_digits {
            let Some(digit) = self.peek().and_then(|c| c.to_digit(radix)) else {
                break;
            };
            self.next();
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
            parts: self.parts,
        }
    }
}

/// How many bytes of `text` an expansion has up to and with its end; `open` begins another within.
fn end_of(text: &str, open: Option<char>, close: char) -> Option<usize> {
    let mut depth = 1_usize;
    let mut escaped = false;
    text.char_indices().find_map(|(at, c)| {
        if escaped {
            escaped = false;
        } else if c == '\\' {
            escaped = true;
        } else if c == close {
            depth -= 1;
        } else if Some(c) == open {
            depth += 1;
        }
        (depth == 0).then_some(at + c.len_utf8())
    })
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
