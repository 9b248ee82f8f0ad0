//! Everything a command line would run.

use ostler_model::{Command, Text};

use crate::seen::{Call, Seen};
use crate::shell::read_script;
use crate::word::{Word, is_invisible};
use crate::wrap::expand;

/// What a command would run.
pub(crate) fn look(command: &Command) -> Seen {
    let words = match command {
        Command::Argv { program, args } => std::iter::once(program).chain(args).map(word).collect(),
        // The shell itself is one call like any other, and seen through like any other.
        Command::Shell { shell, script } => {
            vec![word(shell), Word::sure("-c"), word(script)]
        }
    };
    finish(vec![Call::new(words)])
}

/// What a script for a POSIX shell would run.
pub(crate) fn look_at_script(script: &str) -> Seen {
    let mut seen = Seen::default();
    read_script(script, false, &mut seen);
    check(expand(seen))
}

fn finish(calls: Vec<Call>) -> Seen {
    check(expand(Seen {
        calls,
        ..Seen::default()
    }))
}

fn word(text: &Text) -> Word {
    match std::str::from_utf8(text.as_bytes()) {
        Ok(text) => Word::sure(text),
        Err(_) => Word::opaque(text.to_string_lossy()),
    }
}

/// Programs that cannot be named with certainty, and words that look like others.
fn check(mut seen: Seen) -> Seen {
    let mut doubts = Seen::default();
    for call in seen.calls.iter().filter(|call| call.certain) {
        let Some(program) = call.words.first() else {
            doubts.doubt("a command without a program", &call.words);
            continue;
        };
        if !program.is_sure() {
            doubts.doubt("a program that cannot be seen", &call.words);
        } else if program.text.is_empty() || program.text.contains(['\n', '\t', ' ', '\\']) {
            doubts.doubt("a program with such a name", &call.words);
        }
        if !program.text.is_ascii() {
            doubts.doubt("a program whose name looks like another", &call.words);
        }
        let invisible = |word: &Word| word.text.chars().any(is_invisible);
        if call.words.iter().any(invisible) && !is_shell(program) {
            doubts.doubt("a character that does not show", &call.words);
        }
        let subcommand = call
            .words
            .get(1)
            .filter(|word| !word.text.contains(['.', '/', ' ']));
        if let Some(word) = subcommand
            && word.text.chars().any(looks_latin)
            && word.text.chars().any(|c| c.is_ascii_alphabetic())
        {
            doubts.doubt("a word that looks like another", &call.words);
        }
    }
    seen.doubts.append(&mut doubts.doubts);
    seen
}

/// Scripts were checked when they were read.
fn is_shell(program: &Word) -> bool {
    program.text.ends_with("sh")
}

/// Letters of other alphabets that are drawn like Latin ones, and wide Latin.
fn looks_latin(c: char) -> bool {
    matches!(c, '\u{370}'..='\u{52f}' | '\u{13a0}'..='\u{13ff}' | '\u{1d400}'..='\u{1d7ff}'
        | '\u{ff00}'..='\u{ffef}' | '\u{2100}'..='\u{218f}' | '\u{250}'..='\u{2af}' | '\u{2010}'..='\u{2015}')
}
