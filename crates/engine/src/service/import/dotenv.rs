//! Parses `.env` files.
//!
//! Quotes, escapes and comments are those of docker compose: `NAME=value`, `NAME='value'` as it
//! stands, `NAME="value"` with escapes; quoted values may have several lines.

use std::io;

use super::command::interpolate;
use super::{FILE_BYTES, ImportContext, Omission};

/// Whether `$NAME` in a value stands for a variable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum VariableReferences<'a> {
    /// Replaced by variables of the same file or of these, as docker compose does.
    Replaced(&'a [(String, String)]),
    /// Kept, as foreman does.
    Kept,
}

/// The variables of a file, in order, and its lines that define none.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct EnvFile {
    pub(super) variables: Vec<(String, String)>,
    pub(super) omissions: Vec<Omission>,
}

/// Reads and parses the file at `path`.
///
/// # Errors
/// A file that cannot be read, is not text, or is too long.
pub(super) fn read(
    context: ImportContext<'_>,
    path: &str,
    references: VariableReferences<'_>,
) -> io::Result<EnvFile> {
    let text = (context.read)(path)?;
    if text.len() > FILE_BYTES {
        return Err(io::Error::other(format!(
            "it is longer than {FILE_BYTES} bytes"
        )));
    }
    Ok(parse(&text, path, references))
}

/// Reads the `.env` in the directory of the imported file; empty where there is none. A file that
/// cannot be read is an omission.
pub(super) fn read_default(
    context: ImportContext<'_>,
    references: VariableReferences<'_>,
) -> EnvFile {
    const NAME: &str = ".env";
    match read(context, NAME, references) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => EnvFile::default(),
        Err(error) => EnvFile {
            variables: Vec::new(),
            omissions: vec![Omission {
                file: Some(NAME.to_owned()),
                line: 1,
                item: "all variables".to_owned(),
                reason: format!("the file cannot be read: {error}"),
            }],
        },
    }
}

fn parse(text: &str, path: &str, references: VariableReferences<'_>) -> EnvFile {
    let mut parser = Parser {
        rest: text.trim_start_matches('\u{feff}'),
        line: 1,
    };
    let mut file = EnvFile::default();
    loop {
        parser.skip_blank();
        if parser.rest.is_empty() {
            return file;
        }
        let line = parser.line;
        let mut omit = |item: &str, reason: String| {
            file.omissions.push(Omission {
                file: Some(path.to_owned()),
                line,
                item: item.to_owned(),
                reason,
            });
        };
        match parser.assignment() {
            Ok((name, raw)) => {
                let (value, unresolved) = raw.resolve(&file.variables, references);
                if let Some(reference) = unresolved {
                    omit(&name, reference);
                }
                file.variables.retain(|(known, _)| *known != name);
                file.variables.push((name, value));
            }
            Err(NoAssignment { name, problem }) => omit(&name, problem.to_owned()),
        }
    }
}

/// A value, before variables in it are replaced.
enum RawValue {
    /// Of single quotes.
    Literal(String),
    /// Others. `text` is the value where nothing is replaced; `template` is what compose replaces
    /// variables in, where `$$` is a dollar sign.
    Template { text: String, template: String },
}

impl RawValue {
    /// The value, and what is to be reported about the variables in it.
    fn resolve(
        self,
        earlier: &[(String, String)],
        references: VariableReferences<'_>,
    ) -> (String, Option<String>) {
        let (text, template) = match self {
            Self::Literal(text) => return (text, None),
            Self::Template { text, template } => (text, template),
        };
        let find = |variables: &[(String, String)], name: &str| {
            let found = variables.iter().find(|(known, _)| known == name);
            found.map(|(_, value)| value.clone())
        };
        match references {
            VariableReferences::Replaced(others) => {
                let lookup = |name: &str| find(earlier, name).or_else(|| find(others, name));
                match interpolate(&template, &lookup) {
                    Ok(value) => (value, None),
                    Err(_) => {
                        // The name is not part of the message: it may be part of a password.
                        let report = "is written with its '$' as it stands: no file and no default \
                                      tells the variable";
                        (text, Some(report.to_owned()))
                    }
                }
            }
            VariableReferences::Kept => {
                let lookup = |name: &str| find(earlier, name);
                let would_change = interpolate(&template, &lookup).is_ok_and(|it| it != text);
                let report = would_change.then(|| {
                    "is written as it stands: runners of a Procfile differ in whether they replace \
                     the variables in it"
                        .to_owned()
                });
                (text, report)
            }
        }
    }
}

/// A line that defines no variable.
struct NoAssignment {
    /// The name, or what stands in its place. Never a value: it may be a secret.
    name: String,
    problem: &'static str,
}

struct Parser<'a> {
    rest: &'a str,
    /// The number of the line at which `rest` begins, from 1.
    line: usize,
}

impl<'a> Parser<'a> {
    fn advance(&mut self, bytes: usize) -> &'a str {
        let (taken, rest) = self.rest.split_at(bytes);
        self.line += taken.matches('\n').count();
        self.rest = rest;
        taken
    }

    /// Skips empty lines and comments.
    fn skip_blank(&mut self) {
        loop {
            let blank = self.rest.len() - self.rest.trim_start().len();
            self.advance(blank);
            if !self.rest.starts_with('#') {
                return;
            }
            self.rest_of_line();
        }
    }

    /// The rest of the line, without its end.
    fn rest_of_line(&mut self) -> &'a str {
        let end = self.rest.find('\n').unwrap_or(self.rest.len());
        self.advance(end)
    }

    fn assignment(&mut self) -> Result<(String, RawValue), NoAssignment> {
        let line = self.rest.lines().next().unwrap_or_default();
        let Some((before, _)) = line.split_once('=') else {
            self.rest_of_line();
            return Err(NoAssignment {
                name: "a line".to_owned(),
                problem: "is not NAME=value",
            });
        };
        let exported = before
            .strip_prefix("export")
            .filter(|it| it.starts_with([' ', '\t']));
        let name = exported.unwrap_or(before).trim();
        let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte);
        if name.is_empty() || !name.bytes().all(is_name) {
            self.rest_of_line();
            return Err(NoAssignment {
                name: "a line".to_owned(),
                problem: "begins with what is no name of a variable",
            });
        }
        self.advance(before.len() + 1);
        let indent = self.rest.len() - self.rest.trim_start_matches([' ', '\t']).len();
        self.advance(indent);
        let value = match self.rest.chars().next() {
            Some(quote @ ('"' | '\'')) => self.quoted(quote),
            _ => Ok(unquoted(self.rest_of_line())),
        };
        let name = name.to_owned();
        match value {
            Ok(value) => Ok((name, value)),
            Err(problem) => Err(NoAssignment { name, problem }),
        }
    }

    /// A quoted value; after it only a comment may stand on the line.
    fn quoted(&mut self, quote: char) -> Result<RawValue, &'static str> {
        let Some(end) = closing_quote(&self.rest[1..], quote) else {
            self.rest_of_line();
            return Err("has a quote that is not closed");
        };
        self.advance(1);
        let inner = self.advance(end).replace("\r\n", "\n");
        self.advance(1);
        let after = self.rest_of_line().trim();
        if !after.is_empty() && !after.starts_with('#') {
            return Err("has text after its closing quote");
        }
        Ok(match quote {
            '\'' => RawValue::Literal(inner),
            _ => unescaped(&inner),
        })
    }
}

/// The position of the closing quote. A backslash escapes the next character in double quotes.
fn closing_quote(text: &str, quote: char) -> Option<usize> {
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            _ if c == quote => return Some(at),
            '\\' if quote == '"' => {
                chars.next();
            }
            _ => {}
        }
    }
    None
}

/// The value of a text in double quotes.
fn unescaped(inner: &str) -> RawValue {
    let (mut text, mut template) = (String::new(), String::new());
    let mut chars = inner.chars();
    while let Some(c) = chars.next() {
        if c != '\\' {
            text.push(c);
            template.push(c);
            continue;
        }
        let escaped = match chars.next() {
            Some('n') => '\n',
            Some('r') => '\r',
            Some('t') => '\t',
            Some(other) => other,
            None => '\\',
        };
        text.push(escaped);
        if escaped == '$' {
            template.push('$');
        }
        template.push(escaped);
    }
    RawValue::Template { text, template }
}

/// A value without quotes, without the comment at its end.
fn unquoted(line: &str) -> RawValue {
    let comment = line
        .match_indices('#')
        .map(|(at, _)| at)
        .find(|at| line[..*at].ends_with([' ', '\t']) || *at == 0);
    let value = line[..comment.unwrap_or(line.len())].trim().to_owned();
    RawValue::Template {
        text: value.clone(),
        template: value,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> (Vec<(String, String)>, Vec<String>) {
        let shared = [("HOST".to_owned(), "h".to_owned())];
        let file = parse(text, ".env", VariableReferences::Replaced(&shared));
        let omissions = file.omissions.iter();
        let omissions = omissions.map(|it| format!("{} {} {}", it.line, it.item, it.reason));
        (file.variables, omissions.collect())
    }

    #[track_caller]
    fn assert_variables(text: &str, expected: &[(&str, &str)]) {
        let (variables, omissions) = parsed(text);
        let expected: Vec<(String, String)> = expected
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect();
        assert_eq!((variables, omissions), (expected, Vec::new()), "{text}");
    }

    #[test]
    fn values_have_quotes_comments_and_line_ends() {
        assert_variables(
            "\u{feff}# c\r\nA=1\r\nexport B='two words' # c\nC=\"x=y\"\nD = v # c\nF=\nG= # c\nH=a#b\nexport=1\n",
            &[
                ("A", "1"),
                ("B", "two words"),
                ("C", "x=y"),
                ("D", "v"),
                ("F", ""),
                ("G", ""),
                ("H", "a#b"),
                ("export", "1"),
            ],
        );
    }

    #[test]
    fn quoted_values_have_lines_and_escapes() {
        assert_variables(
            "KEY=\"-----BEGIN\nabc=\n-----END\"\nE=\"a\\nb\\t\\\"c\\\"\\\\\"\nL='a\\nb\nX=1'\nM=\"a\r\nb\"\n",
            &[
                ("KEY", "-----BEGIN\nabc=\n-----END"),
                ("E", "a\nb\t\"c\"\\"),
                ("L", "a\\nb\nX=1"),
                ("M", "a\nb"),
            ],
        );
    }

    #[test]
    fn variables_are_replaced_but_in_single_quotes() {
        assert_variables(
            "A=1\nB=${A}/$HOST\nC='$A'\nD=\"$A \\$A ${NO:-none}\"\nA=2\nE=$A\n",
            &[
                ("B", "1/h"),
                ("C", "$A"),
                ("D", "1 $A none"),
                ("A", "2"),
                ("E", "2"),
            ],
        );
        let (variables, omissions) = parsed("A=x$NO\n");
        assert_eq!(variables, [("A".to_owned(), "x$NO".to_owned())]);
        assert_eq!(
            omissions,
            ["1 A is written with its '$' as it stands: no file and no default tells the variable"]
        );
    }

    #[test]
    fn procfile_runners_replace_no_variables() {
        let file = parse("A=1\nB=$A\nC=pa$word\n", ".env", VariableReferences::Kept);
        let values: Vec<&str> = file.variables.iter().map(|(_, it)| &**it).collect();
        assert_eq!(values, ["1", "$A", "pa$word"]);
        let lines: Vec<usize> = file.omissions.iter().map(|it| it.line).collect();
        assert_eq!(lines, [2]);
    }

    #[test]
    fn lines_without_a_variable_are_reported_without_their_text() {
        let (variables, omissions) =
            parsed("=a\n\nsecret words\nA-B.c=1\nname with=2\nQ=\"open\nR='a'b\nS=3\n");
        let names: Vec<&str> = variables.iter().map(|(name, _)| &**name).collect();
        assert_eq!(names, ["A-B.c", "S"]);
        assert_eq!(
            omissions,
            [
                "1 a line begins with what is no name of a variable",
                "3 a line is not NAME=value",
                "5 a line begins with what is no name of a variable",
                "6 Q has a quote that is not closed",
                "7 R has text after its closing quote",
            ]
        );
    }
}
