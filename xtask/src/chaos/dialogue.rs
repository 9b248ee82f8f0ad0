//! Programs in terminals that go on after the kill as if nothing had happened.

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use super::checks;
use super::plan::{Dialogue, Program};
use crate::lab::Lab;

/// How long a program may take to show what it was told, in milliseconds.
const SHOWS_MS: u64 = 20_000;
/// vim with nothing of the person's, and no swap file to find the text in.
const VIM: &[&str] = &["vim", "-u", "NONE", "-i", "NONE", "-N", "-n"];
/// What the shell returns at the end.
const BASH_CODE: i32 = 9;

/// A dialogue that has begun.
#[derive(Debug)]
pub(super) struct Talk {
    dialogue: Dialogue,
    id: String,
}

impl Talk {
    /// Starts the program, and says the first half.
    pub(super) fn begin(lab: &Lab, dialogue: Dialogue) -> Result<Self> {
        let word = dialogue.word;
        let id = match dialogue.program {
            Program::Vim => {
                let id = lab.start_in_terminal(&[VIM, &[&letter(dialogue)]].concat())?;
                shows(lab, &id, &letter(dialogue))?;
                lab.send(&id, &format!("ikept {word}"), &["escape"])?;
                id
            }
            Program::Bash => {
                let id = lab.start_in_terminal(&["bash", "--norc", "--noprofile", "-i"])?;
                lab.send(&id, &format!("KEPT={word}; echo kept $KEPT"), &["enter"])?;
                id
            }
        };
        shows(lab, &id, &format!("kept {word}"))?;
        Ok(Self { dialogue, id })
    }

    /// What was said is still there, and the program goes on to its known end.
    pub(super) fn conclude(self, lab: &Lab) -> Result<()> {
        let Self { dialogue, id } = self;
        let word = dialogue.word;
        let screen = lab.screen(&id)?;
        ensure!(
            screen.contains(&format!("kept {word}")),
            "{id} showed 'kept {word}' before the kill, and now {screen:?}"
        );
        let code = match dialogue.program {
            Program::Vim => {
                lab.send(&id, "A and saved", &["escape"])?;
                lab.send(&id, ":wq", &["enter"])?;
                0
            }
            Program::Bash => {
                lab.send(
                    &id,
                    &format!("echo still $KEPT; exit {BASH_CODE}"),
                    &["enter"],
                )?;
                BASH_CODE
            }
        };
        let info = lab.wait(&id)?;
        ensure!(
            info.exit_code == Some(code),
            "{id} returned {code} but is told as {} {:?} ({:?})",
            info.status,
            info.exit_code,
            info.error_message
        );
        match dialogue.program {
            Program::Vim => saved(&file(lab, dialogue), &format!("kept {word} and saved\n"))?,
            Program::Bash => {
                let output = lab.output(&id)?;
                // What was typed names the variable, not its value.
                let told = format!("still {word}");
                ensure!(
                    output.contains(&told),
                    "{id} did not keep {word}: {output:?}"
                );
            }
        }
        checks::nobody_left(&id, &info)
    }
}

fn letter(dialogue: Dialogue) -> String {
    format!("letter-{}", dialogue.word)
}

fn file(lab: &Lab, dialogue: Dialogue) -> PathBuf {
    lab.work().join(letter(dialogue))
}

fn saved(file: &PathBuf, expected: &str) -> Result<()> {
    let text = fs::read_to_string(file).with_context(|| file.display().to_string())?;
    ensure!(text == expected, "saved was {text:?}, not {expected:?}");
    Ok(())
}

/// Looks until the screen shows it.
fn shows(lab: &Lab, id: &str, text: &str) -> Result<()> {
    let deadline = Instant::now() + Duration::from_millis(SHOWS_MS);
    loop {
        let screen = lab.screen(id)?;
        if screen.contains(text) {
            return Ok(());
        }
        ensure!(
            Instant::now() < deadline,
            "{id} shows no {text:?}: {screen:?}"
        );
    }
}
