//! Classifies prompts: a pure function of the text and of what the kernel and the terminal report.

use super::question_kind::QuestionKind;
use super::visible_line::visible_line;
use super::{menu, patterns};

/// The context of a prompt's line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PromptContext<'a> {
    /// The lines before it; only the last ones are needed.
    pub before: &'a str,
    /// Whether the line ends with a line feed.
    pub finished: bool,
    /// Whether a process is blocked reading the execution's input. Otherwise it polls several
    /// descriptors, and only the text can show that this is a prompt.
    pub reading: bool,
    /// Whether the terminal echoes input; none without a terminal.
    pub echo: Option<bool>,
    /// Whether the terminal is in canonical mode (whole lines); a line editor reads keys, and
    /// echoes them itself.
    pub lines: Option<bool>,
    /// Whether a program uses the full screen. It reads keys whenever it waits for its terminal,
    /// with or without a prompt text.
    pub full_screen: bool,
}

/// What shows that a line is a prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PromptBasis {
    /// The terminal hides what is typed.
    EchoOff,
    /// The words or the form of the line: a question.
    Words,
    /// The form of the line: a shell or an interpreter accepts its next command.
    CommandPrompt,
    /// A full-screen program waits for keys.
    FullScreen,
    /// Only that a process is blocked reading.
    Reading,
}

/// A classified prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DetectedPrompt {
    /// What shows it.
    pub basis: PromptBasis,
    /// The expected kind of answer.
    pub kind: QuestionKind,
    /// The choices, as they are displayed.
    pub options: Vec<String>,
    /// The meaning of an empty answer.
    pub default: Option<String>,
    /// Whether the answer must not be displayed.
    pub secret: bool,
}

/// Classifies `text`, the last line of a command; none where it is not a prompt.
///
/// The checks go from specific to general: yes or no, a secret, any key, a menu, choices in the
/// line, a path, and the general form of a prompt. A line without that form is a prompt as well
/// where a process is blocked reading, or where a full-screen program waits for keys (vim, less,
/// top).
#[must_use]
pub fn detect(text: &str, context: PromptContext<'_>) -> Option<DetectedPrompt> {
    let line = visible_line(text);
    let hidden = context.echo == Some(false) && context.lines != Some(false);
    if hidden {
        return Some(DetectedPrompt {
            basis: PromptBasis::EchoOff,
            ..secret()
        });
    }
    let explicit = yes_no(&line).or_else(|| is_secret(&line).then(secret));
    if context.finished && !context.reading {
        // A line with the form of a log message is a prompt only if it is explicit.
        return explicit;
    }
    explicit
        .or_else(|| interpreter(&line, context))
        .or_else(|| confirmation(&line))
        .or_else(|| patterns::ANY_KEY.is_match(&line).then(|| input(None)))
        .or_else(|| choice_from_menu(&line, context.before))
        .or_else(|| inline_choice(&line))
        .or_else(|| path(&line))
        .or_else(|| generic_prompt(&line, context))
        .or_else(|| {
            let basis = match context {
                PromptContext {
                    full_screen: true, ..
                } => PromptBasis::FullScreen,
                PromptContext {
                    reading: true,
                    finished: false,
                    ..
                } => PromptBasis::Reading,
                PromptContext { .. } => return None,
            };
            Some(DetectedPrompt {
                basis,
                ..input(None)
            })
        })
}

/// The prompt of a menu that is moved in with the arrow keys: the keys choose, not a text.
#[must_use]
pub(crate) const fn key_menu() -> DetectedPrompt {
    input(None)
}

const fn input(default: Option<String>) -> DetectedPrompt {
    DetectedPrompt {
        basis: PromptBasis::Words,
        kind: QuestionKind::InputRequest,
        options: Vec::new(),
        default,
        secret: false,
    }
}

fn secret() -> DetectedPrompt {
    DetectedPrompt {
        secret: true,
        ..input(None)
    }
}

/// The prompt of an interpreter, `(gdb)` or `In [1]:`: free text, without choices.
fn interpreter(line: &str, context: PromptContext<'_>) -> Option<DetectedPrompt> {
    let is_prompt = !context.finished && patterns::INTERPRETER.is_match(line);
    is_prompt.then(|| DetectedPrompt {
        basis: PromptBasis::CommandPrompt,
        ..input(None)
    })
}

fn is_secret(line: &str) -> bool {
    patterns::SECRET.is_match(line) || patterns::BARE_SECRET.is_match(line)
}

/// Parses `[Y/n]` or `([y]/n)`: the capital or bracketed word is the default, if there is exactly
/// one.
fn yes_no(line: &str) -> Option<DetectedPrompt> {
    let found = patterns::YES_NO.captures_iter(line).last()?;
    let word = |a, b| found.get(a).or_else(|| found.get(b)).map(|it| it.as_str());
    let (yes, no) = (word(1, 3)?, word(2, 4)?);
    let stands_out = |word: &str| word.starts_with(|it: char| it.is_uppercase() || it == '[');
    let plain = |word: &str| word.trim_matches(['[', ']']).to_owned();
    let default = match (stands_out(yes), stands_out(no)) {
        (true, false) => Some(plain(yes)),
        (false, true) => Some(plain(no)),
        (true, true) | (false, false) => named_default(line).filter(|it| is_yes_or_no(it)),
    };
    Some(DetectedPrompt {
        basis: PromptBasis::Words,
        kind: QuestionKind::Confirmation,
        options: vec![plain(yes), plain(no)],
        default,
        secret: false,
    })
}

/// Recognizes questions such as `Do you want to continue?` and `Is this OK? (yes)`.
fn confirmation(line: &str) -> Option<DetectedPrompt> {
    let found = patterns::CONFIRMATION.captures(line)?;
    if patterns::EITHER_OR.is_match(line) || menu::inline_choices(line).is_some() {
        return None;
    }
    let default = found.get(1).or_else(|| found.get(2));
    let default = default.map(|it| it.as_str().to_owned());
    Some(DetectedPrompt {
        basis: PromptBasis::Words,
        kind: QuestionKind::Confirmation,
        options: vec!["yes".to_owned(), "no".to_owned()],
        default: default.filter(|it| is_yes_or_no(it)),
        secret: false,
    })
}

fn is_yes_or_no(word: &str) -> bool {
    ["y", "n", "yes", "no"].contains(&word.to_ascii_lowercase().as_str())
}

fn choice_from_menu(line: &str, before: &str) -> Option<DetectedPrompt> {
    let is_prompt =
        patterns::CHOICE.is_match(line) || patterns::ENDING.is_match(line) || line.is_empty();
    let before: Vec<String> = before.lines().map(visible_line).collect();
    let options = menu::menu_above(&before).filter(|_| is_prompt)?;
    let marker = |option: &String, value: &str| option.split(')').next() == Some(value);
    let default = named_default(line).filter(|value| options.iter().any(|it| marker(it, value)));
    Some(DetectedPrompt {
        basis: PromptBasis::Words,
        kind: QuestionKind::ChoiceSelection,
        options,
        default,
        secret: false,
    })
}

fn inline_choice(line: &str) -> Option<DetectedPrompt> {
    let is_prompt = patterns::CHOICE.is_match(line) || patterns::ENDING.is_match(line);
    let options = menu::inline_choices(line).filter(|_| is_prompt)?;
    Some(DetectedPrompt {
        basis: PromptBasis::Words,
        kind: QuestionKind::ChoiceSelection,
        default: named_default(line).filter(|it| options.contains(it)),
        options,
        secret: false,
    })
}

fn path(line: &str) -> Option<DetectedPrompt> {
    patterns::PATH.is_match(line).then(|| DetectedPrompt {
        kind: QuestionKind::FileSelection,
        ..input(named_default(line))
    })
}

/// Recognizes the general form of a prompt, by its beginning or end.
fn generic_prompt(line: &str, context: PromptContext<'_>) -> Option<DetectedPrompt> {
    let ends = if context.finished {
        line.ends_with(['?', '？', ':', '：'])
    } else {
        patterns::ENDING.is_match(line)
    };
    let begins = patterns::BEGINNING.is_match(line);
    let default = named_default(line);
    let has_default = default.is_some() && !context.finished;
    let basis = if begins || has_default || !patterns::COMMAND_ENDING.is_match(line) {
        PromptBasis::Words
    } else {
        PromptBasis::CommandPrompt
    };
    (ends || begins || has_default).then(|| DetectedPrompt {
        basis,
        ..input(default)
    })
}

/// The default value that a prompt contains: `[bob]:`, `(default: bob)`.
fn named_default(line: &str) -> Option<String> {
    let found = patterns::DEFAULT.captures(line)?;
    let value = (1..found.len()).find_map(|group| found.get(group))?;
    let value = value.as_str().trim();
    (!patterns::REMARK.is_match(value)).then(|| value.to_owned())
}
