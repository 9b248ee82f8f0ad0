//! Separates the operands of a command from its options.

/// Options that take a value in nearly every program.
const VALUE_OPTIONS: [&str; 9] = [
    "--port",
    "--host",
    "--hostname",
    "--config",
    "--cwd",
    "--env-file",
    "--mode",
    "--log-level",
    "--loglevel",
];

/// A command's arguments.
#[derive(Debug, Default)]
pub(super) struct ParsedArguments<'a> {
    /// Words that are neither options nor their values.
    pub(super) operands: Vec<&'a str>,
    /// Options, each with its value if it has one.
    pub(super) options: Vec<(&'a str, Option<&'a str>)>,
}

impl<'a> ParsedArguments<'a> {
    /// Parses the words after the program; `takes` says which options have a value.
    pub(super) fn parse(words: &'a [String], takes: impl Fn(&str) -> bool) -> Self {
        let mut parsed = Self::default();
        let mut words = words.iter().map(String::as_str).peekable();
        while let Some(word) = words.next() {
            if word == "--" {
                parsed.operands.extend(words.by_ref());
            } else if !is_option(word) {
                parsed.operands.push(word);
            } else if let Some((name, value)) = word.split_once('=') {
                parsed.options.push((name, Some(value)));
            } else if takes(word) || VALUE_OPTIONS.contains(&word) {
                let value = words.next_if(|next| !is_option(next));
                parsed.options.push((word, value));
            } else {
                parsed.options.push(split_joined_value(word, &takes));
            }
        }
        parsed
    }

    /// The value of the last option called `name`.
    pub(super) fn value(&self, name: &str) -> Option<&'a str> {
        let last = self.options.iter().rev().find(|(given, _)| *given == name);
        last.and_then(|(_, value)| *value)
    }
}

/// Whether a word is an option; `-` alone is an operand.
pub(super) fn is_option(word: &str) -> bool {
    word.len() > 1 && word.starts_with('-')
}

/// `-p3000`: a short option with its value joined to it.
fn split_joined_value<'a>(
    word: &'a str,
    takes: &impl Fn(&str) -> bool,
) -> (&'a str, Option<&'a str>) {
    let short = word.get(..2).filter(|short| *short != "--" && takes(short));
    let rest = word.get(2..).filter(|rest| !rest.is_empty());
    let looks_like_port = |rest: &&str| rest.starts_with(|c: char| c.is_ascii_digit() || c == ':');
    match (short, rest.filter(looks_like_port)) {
        (Some(short), Some(rest)) => (short, Some(rest)),
        (_, _) => (word, None),
    }
}

/// The name of a program without its directory, Windows extension and version.
pub(super) fn base_name(program: &str) -> &str {
    let base = program.rsplit('/').next().unwrap_or(program);
    let base = [".cmd", ".exe", ".bat"]
        .iter()
        .find_map(|ending| base.strip_suffix(ending))
        .unwrap_or(base);
    let plain = base.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    let plain = plain.trim_end_matches('-');
    if VERSIONED.contains(&plain) {
        plain
    } else {
        base
    }
}

/// Programs that are installed under names with a version: `python3.12`.
const VERSIONED: [&str; 8] = [
    "python", "pypy", "php", "ruby", "node", "java", "lua", "perl",
];

/// Whether `text` matches `pattern`, in which `*` stands for anything.
pub(super) fn glob(pattern: &str, text: &str) -> bool {
    let Some((head, rest)) = pattern.split_once('*') else {
        return pattern == text;
    };
    let Some(mut text) = text.strip_prefix(head) else {
        return false;
    };
    let (middle, tail) = rest.rsplit_once('*').unwrap_or(("", rest));
    for part in middle.split('*') {
        let Some(at) = text.find(part) else {
            return false;
        };
        text = text.get(at + part.len()..).unwrap_or_default();
    }
    text.ends_with(tail)
}
