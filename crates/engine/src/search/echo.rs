//! Distinguishes the echo of an input from the reply to it.
//!
//! After an input the output holds, in this order: the rest of the line in which it was typed,
//! echoed by the terminal (termios(3), ECHO) or by a line editor, which often redraws its prompt;
//! then the reply, on lines of its own.

use std::collections::VecDeque;

/// Removes the echo of one input from the lines after it.
#[derive(Debug, Clone, Default)]
pub(crate) struct EchoFilter {
    /// The content of the line when the input was sent: a prompt.
    prompt: Vec<u8>,
    /// Typed lines whose echo has not appeared yet.
    typed_lines: VecDeque<Vec<u8>>,
    /// Whether the line in which the input was typed has not ended.
    is_first: bool,
}

impl EchoFilter {
    /// A filter for the output after an input, from the content of its line and the typed lines.
    pub(crate) fn new(prompt: Vec<u8>, typed_lines: &[Vec<u8>]) -> Self {
        Self {
            prompt,
            typed_lines: typed_lines.iter().cloned().collect(),
            is_first: true,
        }
    }

    /// The content of the line when the input was sent.
    pub(super) fn prompt(&self) -> &[u8] {
        &self.prompt
    }

    /// The part of a line that is searched: without the answered prompt and without echo. `ended`
    /// if nothing more will be written to this part.
    pub(super) fn reply<'t>(&self, text: &'t [u8], ended: bool) -> &'t [u8] {
        let mut text = text;
        if self.is_first && !self.prompt.is_empty() {
            text = text.strip_prefix(self.prompt.as_slice()).unwrap_or(text);
        }
        if self.is_echo(text, ended) { b"" } else { text }
    }

    /// Records the end of a line with this text.
    pub(super) fn end_line(&mut self, text: &[u8]) {
        let mut line = text;
        if self.is_first && !self.prompt.is_empty() {
            line = line.strip_prefix(self.prompt.as_slice()).unwrap_or(line);
        }
        if self.is_echo(line, true) {
            self.typed_lines.pop_front();
        } else if self.is_first {
            // The program does not echo.
            self.typed_lines.clear();
        }
        self.is_first = false;
    }

    /// Whether the echo is over: everything that follows is reply.
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
        // A prompt followed by text that was typed ahead.
        !self.is_first && !typed.is_empty() && text.ends_with(typed)
    }
}
