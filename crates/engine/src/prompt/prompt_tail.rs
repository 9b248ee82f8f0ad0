//! The end of a command's output, as needed to detect a prompt.

use ostler_model::StreamName;

/// The longest reported prompt, in bytes; a longer one is cut at its beginning.
pub const PROMPT_TEXT_BYTES: usize = 4_096;

/// One event of a command's input or output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PromptTailEvent<'a> {
    /// The command printed.
    Output(StreamName, &'a [u8]),
    /// Input was sent: prompts before it are answered.
    Input,
}

/// The end of a command's output, assembled per stream.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PromptTail {
    /// Everything before the last input, and every line finished since then, in arrival order.
    pub before: String,
    /// The index in `before` at which the output since the last input begins.
    pub recent_start: usize,
    /// The last unfinished line; empty where every line is finished.
    pub text: String,
}

impl PromptTail {
    /// Assembles the tail from events in order. `decode` converts bytes to text. If several streams
    /// have an unfinished line, the most recently written one counts.
    #[must_use]
    pub fn from_events<'a>(
        events: impl IntoIterator<Item = PromptTailEvent<'a>>,
        decode: impl Fn(&[u8]) -> String,
    ) -> Self {
        let mut lines = LineAssembler::default();
        let mut earlier = String::new();
        for event in events {
            match event {
                PromptTailEvent::Output(stream, bytes) => lines.push(stream, bytes),
                PromptTailEvent::Input => {
                    lines.finish();
                    earlier.push_str(&decode(&std::mem::take(&mut lines.finished)));
                }
            }
        }
        let since = earlier.len();
        let text = lines.open.pop().map(|(_, line)| line).unwrap_or_default();
        Self {
            before: earlier + &decode(&lines.finished),
            recent_start: since,
            text: last_bytes(&decode(&text), PROMPT_TEXT_BYTES).to_owned(),
        }
    }

    /// Whether nothing was printed since the last input: a prompt there is answered.
    #[must_use]
    pub fn is_answered(&self) -> bool {
        self.text.is_empty() && self.before[self.recent_start..].is_empty()
    }

    /// The last non-empty line finished since the last input, and the text before it.
    #[must_use]
    pub fn last_line(&self) -> (&str, &str) {
        let recent = &self.before[self.recent_start..];
        let line = recent.lines().rfind(|line| !line.trim().is_empty());
        let Some(line) = line else {
            return ("", &self.before);
        };
        let at = self.recent_start + recent.rfind(line).unwrap_or_default();
        (last_bytes(line, PROMPT_TEXT_BYTES), &self.before[..at])
    }
}

/// Assembles lines per stream.
#[derive(Debug, Default)]
struct LineAssembler {
    finished: Vec<u8>,
    /// The unfinished lines, the most recently written one last.
    open: Vec<(StreamName, Vec<u8>)>,
}

impl LineAssembler {
    fn push(&mut self, stream: StreamName, bytes: &[u8]) {
        let index = self.open.iter().position(|(name, _)| *name == stream);
        let mut line = index.map_or_else(Vec::new, |place| self.open.remove(place).1);
        line.extend_from_slice(bytes);
        let ends = line.iter().rposition(|byte| *byte == b'\n');
        let rest = line.split_off(ends.map_or(0, |at| at + 1));
        self.finished.extend_from_slice(&line);
        if !rest.is_empty() {
            self.open.push((stream, rest));
        }
    }

    fn finish(&mut self) {
        for (_, line) in self.open.drain(..) {
            self.finished.extend_from_slice(&line);
            self.finished.push(b'\n');
        }
    }
}

/// The last `limit` bytes of a text at most, from a character boundary.
fn last_bytes(text: &str, limit: usize) -> &str {
    let mut from = text.len().saturating_sub(limit);
    while !text.is_char_boundary(from) {
        from += 1;
    }
    &text[from..]
}

#[cfg(test)]
mod tests {
    use ostler_model::StreamName::{Stderr, Stdout};

    use super::*;

    fn tail(pieces: &[PromptTailEvent<'_>]) -> PromptTail {
        PromptTail::from_events(pieces.iter().copied(), |bytes| {
            String::from_utf8_lossy(bytes).into_owned()
        })
    }

    fn out(text: &str) -> PromptTailEvent<'_> {
        PromptTailEvent::Output(Stdout, text.as_bytes())
    }

    fn err(text: &str) -> PromptTailEvent<'_> {
        PromptTailEvent::Output(Stderr, text.as_bytes())
    }

    #[test]
    fn the_line_written_to_last() {
        for (pieces, before, text) in [
            (&[][..], "", ""),
            (&[out("a\nb: ")], "a\n", "b: "),
            (&[out("a\nb\n")], "a\nb\n", ""),
            (&[out("Na"), out("me: ")], "", "Name: "),
            (&[out("Name: "), err("warning\n")], "warning\n", "Name: "),
            (&[out("one"), err("two"), out("!")], "", "one!"),
        ] {
            let tail = tail(pieces);
            assert_eq!((tail.before.as_str(), tail.text.as_str()), (before, text));
        }
    }

    #[test]
    fn an_answered_line_asks_no_more() {
        let tail = tail(&[
            out("1) a\nFirst: "),
            PromptTailEvent::Input,
            out("ok\nSecond: "),
        ]);
        assert_eq!(tail.text, "Second: ");
        assert_eq!(tail.last_line(), ("ok", "1) a\nFirst: \n"));
        let silent = self::tail(&[out("First: "), PromptTailEvent::Input]);
        assert_eq!(silent.text, "");
        assert_eq!(silent.last_line(), ("", "First: \n"));
    }

    #[test]
    fn long_lines_keep_their_end_and_whole_characters() {
        for extra in 0..4 {
            let line = "é".repeat(PROMPT_TEXT_BYTES / 2) + &"x".repeat(extra);
            let text = tail(&[out(&line)]).text;
            assert!(text.len() <= PROMPT_TEXT_BYTES && line.ends_with(&text));
            assert!(text.len() >= PROMPT_TEXT_BYTES - 1, "{}", text.len());
        }
    }

    #[test]
    fn the_last_finished_line() {
        assert_eq!(
            tail(&[out("1) a\nName?\n\n")]).last_line(),
            ("Name?", "1) a\n")
        );
        assert_eq!(tail(&[out("a\nb\na\n")]).last_line(), ("a", "a\nb\n"));
        assert_eq!(PromptTail::default().last_line(), ("", ""));
    }
}
