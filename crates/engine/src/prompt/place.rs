//! [`PromptPlace`]: where in the output a prompt stands, which tells it from others with the same text.

use ostler_escape::{EscapeEvent, EscapeParser};

/// Where in a command's output a prompt stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PromptPlace {
    /// The offset after which nothing was printed but this prompt, however often it was drawn.
    start: u64,
    /// The end of the output when the prompt was found.
    end: u64,
}

impl PromptPlace {
    /// The place at the end of a pipe's output: what is printed after it is not this prompt.
    #[must_use]
    pub const fn at_end(end: u64) -> Self {
        Self { start: end, end }
    }

    /// The place of a prompt with this `text` at the end of a terminal's output, which ends with
    /// `output` at the offset `end`. Line editors draw a prompt again, with a changed size for
    /// example; another line, or any other text, is not this prompt. `decode` converts bytes to text.
    #[must_use]
    pub fn on_terminal(
        output: &[u8],
        end: u64,
        text: &str,
        decode: impl Fn(&[u8]) -> String,
    ) -> Self {
        let begin = end.saturating_sub(output.len() as u64);
        let is_of_prompt = |part: &[u8]| {
            let part = decode(part);
            text.contains(part.trim())
        };
        let mut start = begin;
        EscapeParser::default().advance(output, |event, range| {
            let offset = begin + range.start;
            match event {
                EscapeEvent::Text(text) => {
                    if let Some(length) = length_of_others(text, is_of_prompt) {
                        start = offset + length as u64;
                    }
                }
                EscapeEvent::Control(byte) if is_line_end(byte) => start = begin + range.end,
                EscapeEvent::Control(_)
                | EscapeEvent::ControlSequence(_)
                | EscapeEvent::Escape { .. }
                | EscapeEvent::Osc { .. } => {}
            }
        });
        Self { start, end }
    }

    /// Whether both are the place of one prompt.
    #[must_use]
    pub const fn is_same(self, other: Self) -> bool {
        self.start == other.start || self.end == other.end
    }

    /// Whether the output had gone on from the other place when the prompt was found here.
    #[must_use]
    pub const fn is_after(self, other: Self) -> bool {
        self.end > other.end
    }

    /// Whether nothing at all was printed since the prompt was found.
    #[must_use]
    pub const fn is_at_end(self, end: u64) -> bool {
        self.end == end
    }
}

/// The length of the beginning of a text that ends with something else than the prompt; none where
/// all of it is of the prompt.
fn length_of_others(text: &[u8], is_of_prompt: impl Fn(&[u8]) -> bool) -> Option<usize> {
    let mut from = 0;
    let mut others = None;
    for part in text.split_inclusive(|byte| byte.is_ascii_control()) {
        from += part.len();
        let (shown, ends_line) = match part.split_last() {
            Some((last, shown)) if last.is_ascii_control() => (shown, is_line_end(*last)),
            Some(_) | None => (part, false),
        };
        if ends_line || !is_of_prompt(shown) {
            others = Some(from);
        }
    }
    others
}

/// Whether what follows is in another line: after a line feed, vertical tab or form feed.
const fn is_line_end(byte: u8) -> bool {
    matches!(byte, b'\n' | 0x0b | 0x0c)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The place in output that begins at offset 100.
    fn place(output: &str) -> PromptPlace {
        let decode = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let end = 100 + output.len() as u64;
        PromptPlace::on_terminal(output.as_bytes(), end, "Größe [y/N]: ", decode)
    }

    #[test]
    fn a_prompt_that_is_drawn_again_is_the_same() {
        let first = "for a\r\n\x1b[1mGröße\x1b[0m [y/N]: ";
        for then in [
            "",
            "\r\x1b[KGröße [y/N]: ",
            "\x1b[6n\x1b[?25h",
            "\r\r\x1b[JGröße [y/N]: \r\x1b[13C",
            "\x07\x08",
        ] {
            let again = place(&format!("{first}{then}"));
            assert_eq!(again.start, 107, "{then:?}");
            assert!(again.is_same(place(first)), "{then:?}");
        }
    }

    #[test]
    fn other_text_or_another_line_makes_another_prompt() {
        let first = "for a\r\nGröße [y/N]: ";
        for then in [
            "\r\nGröße [y/N]: ",
            "\r\nfor b\r\nGröße [y/N]: ",
            "\r\x1b[Kfor b\r\x1b[KGröße [y/N]: ",
            "\x1b[2J\x1b[Hfor b\x1b[2;1HGröße [y/N]: ",
            "\x1b\nGröße [y/N]: ",
            "\x0bGröße [y/N]: ",
        ] {
            let other = place(&format!("{first}{then}"));
            assert!(!other.is_same(place(first)), "{then:?}: {other:?}");
        }
    }

    #[test]
    fn on_a_pipe_it_is_the_end() {
        assert!(PromptPlace::at_end(7).is_same(PromptPlace::at_end(7)));
        assert!(!PromptPlace::at_end(7).is_same(PromptPlace::at_end(8)));
        assert!(PromptPlace::at_end(7).is_at_end(7));
        assert!(PromptPlace::at_end(8).is_after(PromptPlace::at_end(7)));
        assert!(!PromptPlace::at_end(7).is_after(PromptPlace::at_end(7)));
    }
}
