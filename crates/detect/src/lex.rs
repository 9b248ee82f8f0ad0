//! Words and operators of a shell script, as far as plain commands need them.

/// A piece of a script.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ShellToken {
    /// A word with its quotes taken off and its known variables put in.
    Word(ShellWord),
    /// What parts commands.
    Operator(ListOperator),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ShellWord {
    /// What it says.
    pub(super) text: String,
    /// How many bytes stand before its first quote or substitution; none where it has none.
    pub(super) quoted_at: Option<usize>,
}

/// What parts commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ListOperator {
    /// `&&`
    And,
    /// `||`
    Or,
    /// `;` or the end of a line.
    Next,
    /// `&`
    Background,
    /// `|` or `|&`
    Pipe,
    /// `(`
    Open,
    /// `)`
    Close,
}

/// A script in pieces.
#[derive(Debug, Default)]
pub(super) struct LexedScript {
    /// In their order.
    pub(super) tokens: Vec<ShellToken>,
    /// Whether a comment ends it: text appended would be part of that.
    pub(super) ends_in_comment: bool,
}

/// Takes a script to pieces; none where it has a here-document or is not finished. Redirections
/// are left out, substitutions stay as they are written.
pub(super) fn lex(script: &str, variable: &dyn Fn(&str) -> Option<String>) -> Option<LexedScript> {
    let mut lexer = ScriptLexer {
        rest: script,
        variable,
        lexed: LexedScript::default(),
        word: None,
        skip_word: false,
    };
    lexer.run()?;
    Some(lexer.lexed)
}

struct ScriptLexer<'a> {
    rest: &'a str,
    variable: &'a dyn Fn(&str) -> Option<String>,
    lexed: LexedScript,
    word: Option<ShellWord>,
    /// The next word is the target of a redirection.
    skip_word: bool,
}

impl<'a> ScriptLexer<'a> {
    fn run(&mut self) -> Option<()> {
        while let Some(c) = self.rest.chars().next() {
            match c {
                ' ' | '\t' | '\r' => {
                    self.consume(1);
                    self.end_word();
                }
                '\n' | ';' | '&' | '|' | '(' | ')' => self.operator(c)?,
                '<' | '>' => self.redirection()?,
                '#' if self.word.is_none() => self.comment(),
                '\'' | '"' => self.quoted(c)?,
                '\\' => self.escape()?,
                '$' => self.dollar()?,
                '`' => self.substitution(1, '`', None)?,
                _ => {
                    let text = self.consume(c.len_utf8());
                    self.push(text, false);
                }
            }
        }
        self.end_word();
        (!self.skip_word).then_some(())
    }

    /// Takes `bytes` bytes off the rest.
    fn consume(&mut self, bytes: usize) -> &'a str {
        let (consumed, rest) = self.rest.split_at_checked(bytes).unwrap_or((self.rest, ""));
        self.rest = rest;
        consumed
    }

    fn push(&mut self, text: &str, quoted: bool) {
        let word = self.word.get_or_insert_with(|| ShellWord {
            text: String::new(),
            quoted_at: None,
        });
        if quoted && word.quoted_at.is_none() {
            word.quoted_at = Some(word.text.len());
        }
        word.text.push_str(text);
    }

    fn end_word(&mut self) {
        let Some(word) = self.word.take() else { return };
        if std::mem::take(&mut self.skip_word) {
            return;
        }
        self.lexed.ends_in_comment = false;
        self.lexed.tokens.push(ShellToken::Word(word));
    }

    fn operator(&mut self, first: char) -> Option<()> {
        self.end_word();
        if self.skip_word {
            return None;
        }
        let two = self.rest.get(..2).unwrap_or_default();
        if two == "&>" {
            self.consume(2);
            if self.rest.starts_with('>') {
                self.consume(1);
            }
            self.skip_word = true;
            return Some(());
        }
        let (operator, length) = match (two, first) {
            ("&&", _) => (ListOperator::And, 2),
            ("||", _) => (ListOperator::Or, 2),
            ("|&", _) => (ListOperator::Pipe, 2),
            (_, '&') => (ListOperator::Background, 1),
            (_, '|') => (ListOperator::Pipe, 1),
            (_, '(') => (ListOperator::Open, 1),
            (_, ')') => (ListOperator::Close, 1),
            (_, _) => (ListOperator::Next, 1),
        };
        self.consume(length);
        self.lexed.ends_in_comment = false;
        self.lexed.tokens.push(ShellToken::Operator(operator));
        Some(())
    }

    fn redirection(&mut self) -> Option<()> {
        // Digits right before it are its descriptor.
        let is_descriptor = |word: &ShellWord| {
            word.quoted_at.is_none() && word.text.bytes().all(|byte| byte.is_ascii_digit())
        };
        if self.word.as_ref().is_some_and(is_descriptor) {
            self.word = None;
        }
        self.end_word();
        if self.rest.starts_with("<<<") {
            self.consume(3);
        } else if self.rest.starts_with("<<") {
            return None;
        } else if self.rest.starts_with("<(") || self.rest.starts_with(">(") {
            return self.substitution(2, ')', Some('('));
        } else {
            self.consume(1);
            if self.rest.starts_with(['>', '&', '|']) {
                self.consume(1);
            }
        }
        self.skip_word = true;
        Some(())
    }

    fn comment(&mut self) {
        let length = self.rest.find('\n').unwrap_or(self.rest.len());
        self.consume(length);
        self.lexed.ends_in_comment = true;
    }

    fn escape(&mut self) -> Option<()> {
        self.consume(1);
        let next = self.rest.chars().next()?;
        let text = self.consume(next.len_utf8());
        if next != '\n' {
            self.push(text, true);
        }
        Some(())
    }

    fn quoted(&mut self, quote: char) -> Option<()> {
        self.consume(1);
        self.push("", true);
        if quote == '\'' {
            let length = self.rest.find('\'')?;
            let text = self.consume(length);
            self.consume(1);
            self.push(text, true);
            return Some(());
        }
        loop {
            match self.rest.chars().next()? {
                '"' => {
                    self.consume(1);
                    return Some(());
                }
                '$' => self.dollar()?,
                '`' => self.substitution(1, '`', None)?,
                '\\' => self.escape_in_quotes()?,
                c => {
                    let text = self.consume(c.len_utf8());
                    self.push(text, true);
                }
            }
        }
    }

    fn escape_in_quotes(&mut self) -> Option<()> {
        self.consume(1);
        let next = self.rest.chars().next()?;
        let text = self.consume(next.len_utf8());
        match next {
            '\n' => {}
            '$' | '`' | '"' | '\\' => self.push(text, true),
            _ => {
                self.push("\\", true);
                self.push(text, true);
            }
        }
        Some(())
    }

    fn dollar(&mut self) -> Option<()> {
        if self.rest.starts_with("$(") {
            return self.substitution(2, ')', Some('('));
        }
        let after = self.rest.get(1..).unwrap_or_default();
        if let Some(inner) = after.strip_prefix('{') {
            let length = inner.find('}')?;
            let whole = self.consume(length + 3);
            let value = self.braced(inner.get(..length).unwrap_or_default());
            self.push(value.as_deref().unwrap_or(whole), true);
            return Some(());
        }
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let length = after.find(|c| !is_name(c)).unwrap_or(after.len());
        let whole = self.consume(length + 1);
        let value = (self.variable)(whole.get(1..).unwrap_or_default());
        self.push(value.as_deref().unwrap_or(whole), true);
        Some(())
    }

    /// `NAME`, `NAME:-default`, `NAME-default`.
    fn braced(&self, inner: &str) -> Option<String> {
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let length = inner.find(|c| !is_name(c)).unwrap_or(inner.len());
        let (name, rest) = inner.split_at_checked(length)?;
        let default = rest.strip_prefix(":-").or_else(|| rest.strip_prefix('-'));
        match (self.variable)(name).filter(|value| !value.is_empty()) {
            Some(value) if rest.is_empty() || default.is_some() => Some(value),
            _ => default.map(str::to_owned),
        }
    }

    /// Keeps `$(…)` as it is written: nothing is run to find out.
    fn substitution(&mut self, open: usize, close: char, nested: Option<char>) -> Option<()> {
        let mut depth = 1_usize;
        let mut escaped = false;
        let inner = self.rest.get(open..)?;
        let end = inner.char_indices().find_map(|(at, c)| {
            if escaped {
                escaped = false;
            } else if c == '\\' {
                escaped = true;
            } else if c == close {
                depth -= 1;
            } else if Some(c) == nested {
                depth += 1;
            }
            (depth == 0).then_some(at + c.len_utf8())
        })?;
        let whole = self.consume(open + end);
        self.push(whole, true);
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(script: &str) -> Vec<String> {
        let known = |name: &str| (name == "PORT").then(|| "3000".to_owned());
        let pieces = lex(script, &known).expect("it can be read");
        let text = |token| match token {
            ShellToken::Word(word) => word.text,
            ShellToken::Operator(operator) => format!("<{operator:?}>"),
        };
        pieces.tokens.into_iter().map(text).collect()
    }

    #[test]
    fn quotes_escapes_variables_and_comments() {
        for (script, wanted) in [
            ("a 'b c' \"d e\"", vec!["a", "b c", "d e"]),
            ("a b\\ c \"\\\"x\\y\"", vec!["a", "b c", "\"x\\y"]),
            (
                "a $PORT ${PORT} ${X:-4} $X",
                vec!["a", "3000", "3000", "4", "$X"],
            ),
            ("a # b", vec!["a"]),
            ("a#b", vec!["a#b"]),
            ("a $(b; c) `d e`", vec!["a", "$(b; c)", "`d e`"]),
            ("a \\\n b", vec!["a", "b"]),
            ("a ''", vec!["a", ""]),
        ] {
            assert_eq!(words(script), wanted, "{script}");
        }
    }

    #[test]
    fn operators_and_redirections() {
        for (script, wanted) in [
            ("a&&b||c", vec!["a", "<And>", "b", "<Or>", "c"]),
            ("a > f 2>&1 b", vec!["a", "b"]),
            ("a &> f &", vec!["a", "<Background>"]),
            ("a >>f <g|b", vec!["a", "<Pipe>", "b"]),
            ("a 2 >f", vec!["a", "2"]),
            ("(a;b)", vec!["<Open>", "a", "<Next>", "b", "<Close>"]),
            ("a <<< x", vec!["a"]),
        ] {
            assert_eq!(words(script), wanted, "{script}");
        }
    }

    #[test]
    fn what_cannot_be_read_is_left() {
        let none = |_: &str| None;
        for script in ["a <<E\nE", "a 'b", "a \"b", "a $(b", "a >", "a \\", "${a"] {
            assert!(lex(script, &none).is_none(), "{script}");
        }
    }
}
