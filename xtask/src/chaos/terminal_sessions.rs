//! Programs in terminals that continue after the kill as if nothing had happened.

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use super::checks;
use super::plan::{TerminalPlan, TerminalProgram};
use crate::test_env::TestEnv;

/// The timeout for a program to show its input, in milliseconds.
const SHOWS_MS: u64 = 20_000;
/// vim without user settings, and without a swap file that would hold the text.
const VIM: &[&str] = &["vim", "-u", "NONE", "-i", "NONE", "-N", "-n"];
/// The exit code of the shell.
const BASH_CODE: i32 = 9;

#[derive(Debug)]
pub(super) struct TerminalSession {
    dialogue: TerminalPlan,
    id: String,
}

impl TerminalSession {
    /// Starts the program, and types the first half.
    pub(super) fn start(env: &TestEnv, dialogue: TerminalPlan) -> Result<Self> {
        let word = dialogue.word;
        let id = match dialogue.program {
            TerminalProgram::Vim => {
                let id = env.start_in_terminal(&[VIM, &[&file_name(dialogue)]].concat())?;
                wait_screen(env, &id, &file_name(dialogue))?;
                env.send(&id, &format!("ikept {word}"), &["escape"])?;
                id
            }
            TerminalProgram::Bash => {
                let id = env.start_in_terminal(&["bash", "--norc", "--noprofile", "-i"])?;
                env.send(&id, &format!("KEPT={word}; echo kept $KEPT"), &["enter"])?;
                id
            }
        };
        wait_screen(env, &id, &format!("kept {word}"))?;
        Ok(Self { dialogue, id })
    }

    /// Checks that the first half is still there, and that the program completes.
    pub(super) fn check(self, env: &TestEnv) -> Result<()> {
        let Self { dialogue, id } = self;
        let word = dialogue.word;
        let screen = env.screen(&id)?;
        ensure!(
            screen.contains(&format!("kept {word}")),
            "{id} showed 'kept {word}' before the kill, and now {screen:?}"
        );
        let code = match dialogue.program {
            TerminalProgram::Vim => {
                env.send(&id, "A and saved", &["escape"])?;
                env.send(&id, ":wq", &["enter"])?;
                0
            }
            TerminalProgram::Bash => {
                env.send(
                    &id,
                    &format!("echo still $KEPT; exit {BASH_CODE}"),
                    &["enter"],
                )?;
                BASH_CODE
            }
        };
        let info = env.wait(&id)?;
        ensure!(
            info.exit_code == Some(code),
            "{id} returned {code} but is told as {} {:?} ({:?})",
            info.status,
            info.exit_code,
            info.error_message
        );
        match dialogue.program {
            TerminalProgram::Vim => {
                check_saved(&file(env, dialogue), &format!("kept {word} and saved\n"))?;
            }
            TerminalProgram::Bash => {
                let output = env.output(&id)?;
                // What was typed names the variable, not its value.
                let shown_text = format!("still {word}");
                ensure!(
                    output.contains(&shown_text),
                    "{id} did not keep {word}: {output:?}"
                );
            }
        }
        checks::check_tree_gone(&id, &info)
    }
}

fn file_name(dialogue: TerminalPlan) -> String {
    format!("letter-{}", dialogue.word)
}

fn file(env: &TestEnv, dialogue: TerminalPlan) -> PathBuf {
    env.work().join(file_name(dialogue))
}

fn check_saved(file: &PathBuf, expected: &str) -> Result<()> {
    let text = fs::read_to_string(file).with_context(|| file.display().to_string())?;
    ensure!(text == expected, "saved was {text:?}, not {expected:?}");
    Ok(())
}

/// Polls until the screen shows the text.
fn wait_screen(env: &TestEnv, id: &str, text: &str) -> Result<()> {
    let deadline = Instant::now() + Duration::from_millis(SHOWS_MS);
    loop {
        let screen = env.screen(id)?;
        if screen.contains(text) {
            return Ok(());
        }
        ensure!(
            Instant::now() < deadline,
            "{id} shows no {text:?}: {screen:?}"
        );
    }
}
