//! The language of `argv`: which command lines an entry matches.
//!
//! A pattern is a list of words separated by spaces. The first names programs (`vite|vite-node`); one
//! with a `/` matches the end of a path (`bin/dev`). The others are terms for the operands, from left
//! to right, and for options anywhere:
//!
//! | term      | meaning |
//! |-----------|---------|
//! | `a\|b`    | the next operand is one of these; `*` in a word stands for anything |
//! | `?a\|b`   | the same, if there is one |
//! | `^a\|b`   | the next operand is none of these, or there is none; it stays the next |
//! | `.`       | the next operand, whatever it is |
//! | `$`       | no operand is left |
//! | `~a\|b`   | one of the operands left is one of these |
//! | `<`       | the next operand is a file that contains one of the entry's `contains` |
//! | `<path`   | this file of the working directory is such a file |
//! | `+-a\|-b` | one of these options is given; `-g=*off*`: with such a value |
//! | `!-a\|-b` | none of these options is given |

use super::arguments::{ParsedArguments, base_name, glob, is_option};

/// A compiled pattern.
#[derive(Debug, Clone)]
pub(super) struct CommandPattern {
    programs: Vec<String>,
    terms: Vec<PatternTerm>,
}

#[derive(Debug, Clone)]
enum PatternTerm {
    Next(Vec<String>),
    Optional(Vec<String>),
    NotNext(Vec<String>),
    Any,
    End,
    Has(Vec<String>),
    File,
    FileAt(String),
    HasOption(Vec<OptionPattern>),
    LacksOption(Vec<OptionPattern>),
}

#[derive(Debug, Clone)]
struct OptionPattern {
    name: String,
    value: Option<String>,
}

impl CommandPattern {
    /// Parses a pattern; the error is a text.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let mut words = text.split_ascii_whitespace();
        let programs = alternatives(words.next().ok_or("it is empty")?)?;
        let terms = words.map(PatternTerm::parse).collect::<Result<_, _>>()?;
        Ok(Self { programs, terms })
    }

    /// The names of the programs it can match, without directories.
    pub(super) fn programs(&self) -> impl Iterator<Item = &str> {
        self.programs.iter().map(|program| base_name(program))
    }

    /// Whether it reads files.
    pub(super) fn reads_file(&self) -> bool {
        self.terms
            .iter()
            .any(|term| matches!(term, PatternTerm::File | PatternTerm::FileAt(_)))
    }

    /// The number of operands it uses; none where it does not match.
    pub(super) fn matches(
        &self,
        program: &str,
        arguments: &ParsedArguments<'_>,
        in_file: &dyn Fn(&str) -> bool,
    ) -> Option<usize> {
        let matches_program = |expected: &String| {
            if expected.contains('/') {
                program
                    .strip_suffix(expected.as_str())
                    .is_some_and(|before| before.is_empty() || before.ends_with('/'))
            } else {
                base_name(program) == expected
            }
        };
        if !self.programs.iter().any(matches_program) {
            return None;
        }
        let mut used = 0;
        for term in &self.terms {
            used += term.matches(arguments, used, in_file)?;
        }
        Some(used)
    }
}

impl PatternTerm {
    fn parse(word: &str) -> Result<Self, String> {
        let rest = word.get(1..).unwrap_or_default();
        match word.chars().next() {
            Some('?') => alternatives(rest).map(Self::Optional),
            Some('^') => alternatives(rest).map(Self::NotNext),
            Some('~') => alternatives(rest).map(Self::Has),
            Some('+') => flags(rest).map(Self::HasOption),
            Some('!') => flags(rest).map(Self::LacksOption),
            Some('<') if !rest.is_empty() => Ok(Self::FileAt(rest.to_owned())),
            Some('-') => Err(format!(
                "'{word}': an option is written with '+' or '!' before it"
            )),
            _ => match word {
                "." => Ok(Self::Any),
                "$" => Ok(Self::End),
                "<" => Ok(Self::File),
                _ => alternatives(word).map(Self::Next),
            },
        }
    }

    /// The number of operands it uses; none where it does not match.
    fn matches(
        &self,
        arguments: &ParsedArguments<'_>,
        used: usize,
        in_file: &dyn Fn(&str) -> bool,
    ) -> Option<usize> {
        let rest = arguments.operands.get(used..).unwrap_or_default();
        let next = rest.first().copied();
        let among = |words: &Vec<String>, text: &str| words.iter().any(|it| glob(it, text));
        let next_among = |words| next.is_some_and(|next| among(words, next));
        let is_present =
            |flags: &Vec<OptionPattern>| flags.iter().any(|flag| flag.is_present(arguments));
        match self {
            Self::Next(words) => next_among(words).then_some(1),
            Self::Optional(words) => Some(usize::from(next_among(words))),
            Self::NotNext(words) => (!next_among(words)).then_some(0),
            Self::Any => next.map(|_| 1),
            Self::End => rest.is_empty().then_some(0),
            Self::Has(words) => rest.iter().any(|it| among(words, it)).then_some(0),
            Self::File => next.is_some_and(in_file).then_some(1),
            Self::FileAt(path) => in_file(path).then_some(0),
            Self::HasOption(flags) => is_present(flags).then_some(0),
            Self::LacksOption(flags) => (!is_present(flags)).then_some(0),
        }
    }
}

impl OptionPattern {
    fn is_present(&self, arguments: &ParsedArguments<'_>) -> bool {
        let matches_name = |name: &str| name == self.name || self.in_cluster(name);
        arguments.options.iter().any(|(name, value)| {
            matches_name(name)
                && match (&self.value, value) {
                    (None, value) => *value != Some("false"),
                    (Some(expected), Some(value)) => glob(expected, value),
                    (Some(_), None) => false,
                }
        })
    }

    /// `-w` in `-cw`: clusters are of at most three letters, longer words are names.
    fn in_cluster(&self, option: &str) -> bool {
        let (Some(letters), Some(letter)) = (option.strip_prefix('-'), self.name.strip_prefix('-'))
        else {
            return false;
        };
        let are_letters = letters.bytes().all(|byte| byte.is_ascii_alphabetic());
        (2..=3).contains(&letters.len())
            && are_letters
            && letter.len() == 1
            && letters.contains(letter)
    }
}

fn alternatives(text: &str) -> Result<Vec<String>, String> {
    let words: Vec<String> = text.split('|').map(str::to_owned).collect();
    if words.iter().any(String::is_empty) {
        return Err(format!("'{text}': an alternative is empty"));
    }
    Ok(words)
}

fn flags(text: &str) -> Result<Vec<OptionPattern>, String> {
    let flag = |word: String| {
        let (name, value) = match word.split_once('=') {
            Some((name, value)) => (name, Some(value.to_owned())),
            None => (word.as_str(), None),
        };
        if is_option(name) {
            Ok(OptionPattern {
                name: name.to_owned(),
                value,
            })
        } else {
            Err(format!("'{name}' is no option"))
        }
    };
    alternatives(text)?.into_iter().map(flag).collect()
}
