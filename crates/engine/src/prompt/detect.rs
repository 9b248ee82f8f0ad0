//! What kind of answer a prompt asks for: a pure function over its text.

use super::clean::clean;
use super::{menu, words};
use crate::interaction::Kind;

/// What was seen besides the prompt's own line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Seen<'a> {
    /// The lines before it, the last ones at least.
    pub before: &'a str,
    /// Whether the line is finished: a command that asks with a whole line.
    pub finished: bool,
    /// Whether a process is blocked reading the execution's input; otherwise it waits for
    /// several things of which input may be one, and only words make that a prompt.
    pub reading: bool,
    /// Whether the terminal shows what is typed; none without a terminal.
    pub echo: Option<bool>,
    /// Whether the terminal hands over whole lines; a line editor takes keys, and shows them
    /// itself.
    pub lines: Option<bool>,
    /// Whether a program has the whole screen to itself. It takes keys whenever it waits for
    /// its terminal, in words or not.
    pub full_screen: bool,
}

/// A prompt understood.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Detected {
    /// What kind of answer is wanted.
    pub kind: Kind,
    /// What there is to choose from, as it is to be shown.
    pub options: Vec<String>,
    /// What an empty answer stands for.
    pub default: Option<String>,
    /// Whether the answer must not be shown.
    pub secret: bool,
}

/// What `text`, the line a command left, asks for; none where it asks for nothing.
///
/// From the particular to the general: yes or no, a secret, any key, a menu, choices in the
/// line, a path, anything that looks like a prompt. A line that looks like none is one all the
/// same where a process is blocked reading, and where a program with the whole screen waits for
/// keys (vim, less, top): whoever waits for its prompt is answered, with an empty text.
#[must_use]
pub fn detect(text: &str, seen: Seen<'_>) -> Option<Detected> {
    let line = clean(text);
    let hidden = seen.echo == Some(false) && seen.lines != Some(false);
    if hidden {
        return Some(secret());
    }
    let said_so = yes_no(&line).or_else(|| is_secret(&line).then(secret));
    if seen.finished && !seen.reading {
        // A log line, unless it could not be clearer.
        return said_so;
    }
    said_so
        .or_else(|| interpreter(&line, seen))
        .or_else(|| confirmation(&line))
        .or_else(|| words::ANY_KEY.is_match(&line).then(|| input(None)))
        .or_else(|| from_menu(&line, seen.before))
        .or_else(|| choices(&line))
        .or_else(|| path(&line))
        .or_else(|| generic(&line, seen))
        .or_else(|| {
            let silent = seen.full_screen || (seen.reading && !seen.finished);
            silent.then(|| input(None))
        })
}

const fn input(default: Option<String>) -> Detected {
    Detected {
        kind: Kind::InputRequest,
        options: Vec::new(),
        default,
        secret: false,
    }
}

fn secret() -> Detected {
    Detected {
        secret: true,
        ..input(None)
    }
}

/// `(gdb)`, `In [1]:`: something to be typed, nothing to be chosen.
fn interpreter(line: &str, seen: Seen<'_>) -> Option<Detected> {
    let asks = !seen.finished && words::INTERPRETER.is_match(line);
    asks.then(|| input(None))
}

fn is_secret(line: &str) -> bool {
    words::SECRET.is_match(line) || words::BARE_SECRET.is_match(line)
}

/// `[Y/n]`, `([y]/n)`: the capital or bracketed word is the default, where just one is.
fn yes_no(line: &str) -> Option<Detected> {
    let found = words::YES_NO.captures_iter(line).last()?;
    let word = |a, b| found.get(a).or_else(|| found.get(b)).map(|it| it.as_str());
    let (yes, no) = (word(1, 3)?, word(2, 4)?);
    let stands_out = |word: &str| word.starts_with(|it: char| it.is_uppercase() || it == '[');
    let plain = |word: &str| word.trim_matches(['[', ']']).to_owned();
    let default = match (stands_out(yes), stands_out(no)) {
        (true, false) => Some(plain(yes)),
        (false, true) => Some(plain(no)),
        (true, true) | (false, false) => said(line).filter(|it| is_yes_or_no(it)),
    };
    Some(Detected {
        kind: Kind::Confirmation,
        options: vec![plain(yes), plain(no)],
        default,
        secret: false,
    })
}

/// `Do you want to continue?`, `Is this OK? (yes)`.
fn confirmation(line: &str) -> Option<Detected> {
    let found = words::CONFIRMATION.captures(line)?;
    if words::EITHER_OR.is_match(line) || menu::within(line).is_some() {
        return None;
    }
    let default = found.get(1).or_else(|| found.get(2));
    let default = default.map(|it| it.as_str().to_owned());
    Some(Detected {
        kind: Kind::Confirmation,
        options: vec!["yes".to_owned(), "no".to_owned()],
        default: default.filter(|it| is_yes_or_no(it)),
        secret: false,
    })
}

fn is_yes_or_no(word: &str) -> bool {
    ["y", "n", "yes", "no"].contains(&word.to_ascii_lowercase().as_str())
}

fn from_menu(line: &str, before: &str) -> Option<Detected> {
    let asks = words::CHOICE.is_match(line) || words::ENDING.is_match(line) || line.is_empty();
    let before: Vec<String> = before.lines().map(clean).collect();
    let options = menu::above(&before).filter(|_| asks)?;
    let marker = |option: &String, said: &str| option.split(')').next() == Some(said);
    let default = said(line).filter(|said| options.iter().any(|it| marker(it, said)));
    Some(Detected {
        kind: Kind::ChoiceSelection,
        options,
        default,
        secret: false,
    })
}

fn choices(line: &str) -> Option<Detected> {
    let asks = words::CHOICE.is_match(line) || words::ENDING.is_match(line);
    let options = menu::within(line).filter(|_| asks)?;
    Some(Detected {
        kind: Kind::ChoiceSelection,
        default: said(line).filter(|it| options.contains(it)),
        options,
        secret: false,
    })
}

fn path(line: &str) -> Option<Detected> {
    words::PATH.is_match(line).then(|| Detected {
        kind: Kind::FileSelection,
        ..input(said(line))
    })
}

/// What merely ends or begins like a prompt.
fn generic(line: &str, seen: Seen<'_>) -> Option<Detected> {
    let ends = if seen.finished {
        line.ends_with(['?', '？', ':', '：'])
    } else {
        words::ENDING.is_match(line)
    };
    let asks = ends || words::BEGINNING.is_match(line);
    let spoken = said(line);
    let given = spoken.is_some() && !seen.finished;
    (asks || given).then(|| input(spoken))
}

/// The default a prompt names: `[bob]:`, `(default: bob)`.
fn said(line: &str) -> Option<String> {
    let found = words::DEFAULT.captures(line)?;
    let said = (1..found.len()).find_map(|group| found.get(group))?;
    let said = said.as_str().trim();
    (!words::REMARK.is_match(said)).then(|| said.to_owned())
}
