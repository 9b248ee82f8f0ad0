//! Finds every program a command line would run.

use ostler_model::Command;

use crate::analysis::{Analysis, Invocation};
use crate::shell::read_script;
use crate::word::{CommandWord, is_invisible};
use crate::wrappers::expand;

/// Analyses a command.
pub(crate) fn analyze_command(command: &Command) -> Analysis {
    let words = match command {
        Command::Argv { program, args } => {
            let words = std::iter::once(program).chain(args);
            words.map(CommandWord::from_argument).collect()
        }
        // The shell itself is an invocation like any other, and is expanded like any other.
        Command::Shell { shell, script } => {
            vec![
                CommandWord::from_argument(shell),
                CommandWord::certain("-c"),
                CommandWord::from_argument(script),
            ]
        }
    };
    analyze_invocations(vec![Invocation::new(words)])
}

/// Analyses a script for a POSIX shell.
pub(crate) fn analyze_script(script: &str) -> Analysis {
    let mut analysis = Analysis::default();
    read_script(script, false, &mut analysis);
    check_programs(expand(analysis))
}

fn analyze_invocations(invocations: Vec<Invocation>) -> Analysis {
    check_programs(expand(Analysis {
        invocations,
        ..Analysis::default()
    }))
}

/// Adds unresolved parts for programs whose names are not certain, and for words that look like
/// others.
fn check_programs(mut analysis: Analysis) -> Analysis {
    let mut unresolved = Analysis::default();
    for invocation in analysis.invocations.iter().filter(|call| call.certain) {
        let Some(program) = invocation.words.first() else {
            unresolved.add_unresolved("a command without a program", &invocation.words);
            continue;
        };
        if !program.is_certain() {
            unresolved.add_unresolved("a program that cannot be seen", &invocation.words);
        } else if program.text.is_empty() || program.text.contains(['\n', '\t', ' ', '\\']) {
            unresolved.add_unresolved("a program with such a name", &invocation.words);
        }
        if !program.text.is_ascii() {
            unresolved.add_unresolved("a program whose name looks like another", &invocation.words);
        }
        let has_invisible = |word: &CommandWord| word.text.chars().any(is_invisible);
        if invocation.words.iter().any(has_invisible) && !is_shell(program) {
            unresolved.add_unresolved("a character that does not show", &invocation.words);
        }
        let subcommand = invocation
            .words
            .get(1)
            .filter(|word| !word.text.contains(['.', '/', ' ']));
        if let Some(word) = subcommand
            && word.text.chars().any(looks_latin)
            && word.text.chars().any(|c| c.is_ascii_alphabetic())
        {
            unresolved.add_unresolved("a word that looks like another", &invocation.words);
        }
    }
    analysis.unresolved.append(&mut unresolved.unresolved);
    analysis
}

/// The scripts of shells were checked when they were parsed.
fn is_shell(program: &CommandWord) -> bool {
    program.text.ends_with("sh")
}

/// Letters of other alphabets that look like Latin ones, and full-width Latin.
fn looks_latin(c: char) -> bool {
    matches!(c, '\u{370}'..='\u{52f}' | '\u{13a0}'..='\u{13ff}' | '\u{1d400}'..='\u{1d7ff}'
        | '\u{ff00}'..='\u{ffef}' | '\u{2100}'..='\u{218f}' | '\u{250}'..='\u{2af}' | '\u{2010}'..='\u{2015}')
}
