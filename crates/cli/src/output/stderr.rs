//! Standard error: what people are told besides what they asked for.

use std::fs::File;
use std::io::{self, IsTerminal as _, Write as _};

use ostler_model::visible_lines;

use super::styled_line::StyledLine;
use crate::error::CommandError;

/// Stands before every line of a message but its first: nobody's text passes for a line of ours.
const INDENT: &str = "\n  ";

/// Tells the person what went wrong; a broken pipe is nobody's business.
pub(crate) fn print_error(error: &CommandError) {
    for paragraph in error.paragraphs() {
        print_message(&paragraph);
    }
}

/// Tells the person something that is no error.
pub(crate) fn print_note(message: &str) {
    print_message(&format!("ostler: {message}"));
}

fn print_message(message: &str) {
    let text = visible_lines(message).replace('\n', INDENT);
    write_stderr(format!("{text}\n").as_bytes());
}

/// Standard error for lines of a log: on a terminal nobody's text controls it.
#[derive(Debug)]
pub(crate) struct StderrWriter {
    stderr: io::Stderr,
    is_terminal: bool,
}

impl StderrWriter {
    /// Ours.
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

/// Bytes of a command's standard error, on ours, as they are.
pub(crate) fn write_stderr_raw(bytes: &[u8]) {
    write_stderr(bytes);
}

/// Lines in the place of as many as were drawn before, `drawn_lines`.
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

/// Asks at a terminal: the lines, and then the question.
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
    // Nobody is left to tell that standard error is closed.
    drop(io::stderr().write_all(bytes));
}
