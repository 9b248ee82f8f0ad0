//! Distinguishes the echo of an input from the reply to it.
//!
//! Behind an input come, in this order: the rest of the line it was typed in, which the
//! terminal (termios(3), ECHO) or a line editor shows, the latter often with its prompt
//! painted again; and then, on lines of their own, the reply.

use std::collections::VecDeque;

/// What of the lines behind an input is echo.
#[derive(Debug, Clone, Default)]
pub(crate) struct EchoFilter {
    /// What stood in the line when the input was sent: a prompt.
    prompt: Vec<u8>,
    /// Lines that were typed and whose echo is to come.
    typed_lines: VecDeque<Vec<u8>>,
    /// Whether the line the input was typed in goes on.
    is_first: bool,
}

impl EchoFilter {
    /// Behind an input: what stood in its line, and the lines typed.
    pub(crate) fn new(prompt: Vec<u8>, typed_lines: &[Vec<u8>]) -> Self {
        Self {
            prompt,
            typed_lines: typed_lines.iter().cloned().collect(),
            is_first: true,
        }
    }

    /// What stood in the line when the input was sent.
    pub(super) fn prompt(&self) -> &[u8] {
        &self.prompt
    }

    /// What of a line is to be searched: behind the prompt that was answered, and nothing of
    /// an echo. `ended` where nothing more is written to this part of the line.
    pub(super) fn reply<'t>(&self, text: &'t [u8], ended: bool) -> &'t [u8] {
        let mut text = text;
        if self.is_first && !self.prompt.is_empty() {
            text = text.strip_prefix(self.prompt.as_slice()).unwrap_or(text);
        }
        if self.is_echo(text, ended) { b"" } else { text }
    }

    /// The line ended, reading so.
    pub(super) fn end_line(&mut self, text: &[u8]) {
        let mut line = text;
        if self.is_first && !self.prompt.is_empty() {
            line = line.strip_prefix(self.prompt.as_slice()).unwrap_or(line);
        }
        if self.is_echo(line, true) {
            self.typed_lines.pop_front();
        } else if self.is_first {
            // Nothing echoes here.
            self.typed_lines.clear();
        }
        self.is_first = false;
    }

    /// Whether everything is told apart: what follows is all reply.
    pub(super) fn is_done(&self) -> bool {
        !self.is_first && self.typed_lines.is_empty()
    }

    fn is_echo(&self, text: &[u8], ended: bool) -> bool {
        let Some(typed) = self.typed_lines.front() else {
            return false;
        };
        let (text, typed) = (text.trim_ascii_end(), typed.trim_ascii_end());
        if text == typed {
            return self.is_first || !typed.is_empty();
        }
        if !ended {
            return typed.starts_with(text) && (self.is_first || !text.is_empty());
        }
        // A prompt and, behind it, what was typed ahead.
        !self.is_first && !typed.is_empty() && text.ends_with(typed)
    }
}
