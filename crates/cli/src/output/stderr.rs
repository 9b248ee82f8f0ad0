//! Standard error: messages besides the requested output.

use std::fs::File;
use std::io::{self, IsTerminal as _, Write as _};

use ostler_model::visible_lines;

use super::styled_line::StyledLine;
use crate::error::CommandError;

/// Precedes every line of a message but its first: untrusted text cannot imitate a message.
const INDENT: &str = "\n  ";

/// Reports an error to the user; nothing for a broken pipe.
pub(crate) fn print_error(error: &CommandError) {
    for paragraph in error.paragraphs() {
        print_message(&paragraph);
    }
}

/// Reports something that is not an error.
pub(crate) fn print_note(message: &str) {
    print_message(&format!("ostler: {message}"));
}

fn print_message(message: &str) {
    let text = visible_lines(message).replace('\n', INDENT);
    write_stderr(format!("{text}\n").as_bytes());
}

/// Standard error for log lines: on a terminal, untrusted text is escaped.
#[derive(Debug)]
pub(crate) struct StderrWriter {
    stderr: io::Stderr,
    is_terminal: bool,
}

impl StderrWriter {
    /// The standard error of this process.
    #[expect(
        clippy::disallowed_methods,
        reason = "this is where text is made harmless"
    )]
    pub(crate) fn new() -> Self {
        let stderr = io::stderr();
        let is_terminal = stderr.is_terminal();
        Self {
            stderr,
            is_terminal,
        }
    }
}

impl io::Write for StderrWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if !self.is_terminal {
            return self.stderr.write(bytes);
        }
        let text = String::from_utf8_lossy(bytes);
        self.stderr.write_all(visible_lines(&text).as_bytes())?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stderr.flush()
    }
}

/// Writes bytes of a command's standard error unchanged.
pub(crate) fn write_stderr_raw(bytes: &[u8]) {
    write_stderr(bytes);
}

/// Draws lines over the last `drawn_lines` lines.
pub(crate) fn redraw(drawn_lines: usize, lines: &[StyledLine]) {
    let mut text = match drawn_lines {
        0 => String::new(),
        drawn => format!("\x1b[{drawn}A\r\x1b[J"),
    };
    for line in lines {
        text.push_str(&line.rendered());
        text.push('\n');
    }
    write_stderr(text.as_bytes());
}

/// Prompts at a terminal: the lines, and then the question.
///
/// # Errors
/// When it cannot be written.
pub(crate) fn print_prompt(
    mut terminal: &File,
    lines: &[StyledLine],
    question: &str,
) -> io::Result<()> {
    let lines = lines.iter().map(|line| format!("{}\n", line.rendered()));
    let text = lines.collect::<String>() + &StyledLine::from(question).rendered();
    terminal.write_all(text.as_bytes())
}

#[expect(
    clippy::disallowed_methods,
    reason = "this is where text is made harmless"
)]
fn write_stderr(bytes: &[u8]) {
    // If standard error is closed, nothing is reported.
    drop(io::stderr().write_all(bytes));
}
