//! `jq`: its programs can read the environment.

use super::InnerCommands;
use crate::word::CommandWord;

/// Unresolved words that may be a program with `env` in it.
pub(super) fn analyze(args: &[CommandWord]) -> InnerCommands {
    let is_option = |word: &&CommandWord| word.text.starts_with('-');
    let program = args.iter().position(|word| !is_option(&word));
    let reads = args.iter().enumerate().any(|(at, word)| {
        let is_program = Some(at) == program || word.text.contains(|c| " |()[]{},;".contains(c));
        reads_environment(&word.text, is_program)
    });
    if reads {
        return InnerCommands::unresolved("the environment in a program of 'jq'");
    }
    InnerCommands::default()
}

/// Whether `env` is a word of it: no field (`.env`), key (`{env: 1}`), string or part of a name; in
/// a path, `/` and `-` are no operators.
fn reads_environment(text: &str, is_program: bool) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    text.match_indices("env").any(|(at, name)| {
        let before = text[..at].chars().next_back();
        let rest = &text[at + name.len()..];
        let joins = |c: char| {
            is_part(c) || ".$\"".contains(c) || (!is_program && at > 1 && "/-".contains(c))
        };
        let is_key = rest.trim_start().starts_with(':') && !rest.starts_with("::");
        !before.is_some_and(joins) && !rest.starts_with(is_part) && !is_key
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_environment_is_found_wherever_it_is_a_value() {
        let reads = |line: &str| {
            let words: Vec<CommandWord> = line.split('\t').map(CommandWord::certain).collect();
            !analyze(&words).unresolved.is_empty()
        };
        for line in [
            "env",
            "-n\t{a:env}",
            "map(env)",
            "-n\t1,env",
            "-n\t1/env",
            "-n\t-env",
            "-n\t[env]",
            "env.HOME",
            ".a as $x|env",
            "-n\t\"\\(env)\"",
            "-r\t--arg\ta\tb\tmap(env)",
            "-n\t. ,env.A",
            "-n\tenv|keys",
            "-n\tif env then 1 else 2 end",
        ] {
            assert!(reads(line), "{line}");
        }
        for line in [
            ".env",
            ".a.env",
            "{env: 1}",
            ".environment",
            ".[\"env\"]",
            "$env",
            ".\tconfig/env/a.json",
            ".\tmy-env.json",
            "{a:.env}",
            ".envs",
            "keys",
        ] {
            assert!(!reads(line), "{line}");
        }
    }
}
