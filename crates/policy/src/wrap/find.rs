//! `find`: its actions.

use super::Given;
use crate::word::Word;

/// Looks for programs among the actions.
pub(super) fn look(args: &[Word]) -> Given {
    let mut given = Given::default();
    let mut at = 0;
    while let Some(word) = args.get(at) {
        at += 1;
        if !word.is_sure() && word.text.starts_with('-') {
            given
                .doubts
                .push("an action that cannot be seen".to_owned());
        }
        if !matches!(word.text.as_str(), "-exec" | "-execdir" | "-ok" | "-okdir") {
            continue;
        }
        let rest = args.get(at..).unwrap_or_default();
        let ends = |word: &Word| matches!(word.text.as_str(), ";" | "+");
        let length = rest.iter().position(ends).unwrap_or(rest.len());
        let command: Vec<Word> = rest[..length].iter().map(with_name).collect();
        match command.first() {
            Some(program) if !program.is_sure() => {
                given
                    .doubts
                    .push("a program that cannot be seen".to_owned());
            }
            Some(_) => {}
            None => given.doubts.push("an action without a program".to_owned()),
        }
        if !command.is_empty() {
            given.commands.push(command);
        }
        at += length;
    }
    given
}

/// A found name in place of the braces: it begins as the place where the search began does.
fn with_name(word: &Word) -> Word {
    if word.text.contains("{}") {
        return Word::opaque(word.text.clone());
    }
    word.clone()
}
