//! `find` and its actions.

use super::InnerCommands;
use crate::word::CommandWord;

/// The actions that run a program.
pub(super) const ACTIONS: [&str; 4] = ["-exec", "-execdir", "-ok", "-okdir"];

/// Finds programs among the actions.
pub(super) fn analyze(args: &[CommandWord]) -> InnerCommands {
    let mut inner = InnerCommands::default();
    let mut at = 0;
    while let Some(word) = args.get(at) {
        at += 1;
        if !word.is_certain() && word.text.starts_with('-') {
            inner
                .unresolved
                .push("an action that cannot be seen".to_owned());
        }
        if !ACTIONS.contains(&word.text.as_str()) {
            continue;
        }
        let rest = args.get(at..).unwrap_or_default();
        let ends = |word: &CommandWord| matches!(word.text.as_str(), ";" | "+");
        let length = rest.iter().position(ends).unwrap_or(rest.len());
        let command: Vec<CommandWord> = rest[..length].iter().map(substitute_braces).collect();
        match command.first() {
            Some(program) if !program.is_certain() => {
                inner
                    .unresolved
                    .push("a program that cannot be seen".to_owned());
            }
            Some(_) => {}
            None => inner
                .unresolved
                .push("an action without a program".to_owned()),
        }
        if !command.is_empty() {
            inner.commands.push(command);
        }
        at += length;
    }
    inner
}

/// A found name in place of the braces: it begins with the path the search starts from.
fn substitute_braces(word: &CommandWord) -> CommandWord {
    if word.text.contains("{}") {
        return CommandWord::opaque(word.text.clone());
    }
    word.clone()
}
