//! What sequences do to a terminal, and the events that they are.

use ostler_escape::{ControlSequence, EscapeEvent};

use super::scanner_state::TerminalState;
use super::{ControlEvent, TITLE_BYTES, TITLES_MAX};
use crate::modes::{KEYPAD, PrivateModes};

/// The highest cursor shape (DECSCUSR).
const CURSOR_SHAPE_MAX: u16 = 6;

impl TerminalState {
    /// Applies a part of the stream; marks are believed if they carry `nonce`.
    pub(super) fn apply(
        &mut self,
        event: EscapeEvent<'_>,
        nonce: Option<&str>,
    ) -> Option<ControlEvent> {
        match event {
            EscapeEvent::ControlSequence(sequence) => self.apply_control(&sequence),
            EscapeEvent::Escape {
                intermediates: [],
                last,
            } => self.apply_escape(last),
            EscapeEvent::Osc {
                content,
                is_cut: false,
            } => self.apply_osc(content, nonce),
            EscapeEvent::Text(_)
            | EscapeEvent::Control(_)
            | EscapeEvent::Escape { .. }
            | EscapeEvent::Osc { is_cut: true, .. } => None,
        }
    }

    fn apply_escape(&mut self, last: u8) -> Option<ControlEvent> {
        match last {
            b'=' => self.change_modes(|private| private.set(KEYPAD, true)),
            b'>' => self.change_modes(|private| private.set(KEYPAD, false)),
            b'c' => {
                self.cursor_shape = 0;
                self.change_modes(PrivateModes::clear)
            }
            _ => None,
        }
    }

    fn apply_control(&mut self, sequence: &ControlSequence<'_>) -> Option<ControlEvent> {
        match (sequence.intermediates(), sequence.last()) {
            (b"?", last @ (b'h' | b'l')) => self.change_modes(|private| {
                for mode in sequence.params() {
                    private.set(mode, last == b'h');
                }
            }),
            (b"!", b'p') => self.change_modes(PrivateModes::soft_reset),
            (b" ", b'q') => {
                let shape = sequence.first_param();
                if shape <= CURSOR_SHAPE_MAX {
                    self.cursor_shape = u8::try_from(shape).unwrap_or(0);
                }
                None
            }
            (b"", b't') => self.change_title_stack(sequence),
            _ => None,
        }
    }

    /// Changes the modes; an event if they differ then.
    fn change_modes(&mut self, change: impl FnOnce(&mut PrivateModes)) -> Option<ControlEvent> {
        let before = self.private.modes();
        change(&mut self.private);
        let after = self.private.modes();
        (before != after).then_some(ControlEvent::Modes(after))
    }

    /// XTWINOPS 22 and 23: pushes and pops the title.
    fn change_title_stack(&mut self, sequence: &ControlSequence<'_>) -> Option<ControlEvent> {
        let mut params = sequence.params();
        let (operation, which) = (params.next()?, params.next().unwrap_or(0));
        if !matches!(which, 0 | 2) {
            return None;
        }
        match operation {
            22 => {
                if self.titles.len() == TITLES_MAX {
                    self.titles.remove(0);
                }
                self.titles.push(self.title.clone());
                None
            }
            23 => {
                self.title = self.titles.pop()?;
                Some(ControlEvent::Title(self.title.clone()))
            }
            _ => None,
        }
    }

    fn apply_osc(&mut self, content: &[u8], nonce: Option<&str>) -> Option<ControlEvent> {
        let cut = memchr::memchr(b';', content).unwrap_or(content.len());
        let (number, rest) = content.split_at(cut);
        let rest = rest.strip_prefix(b";").unwrap_or(rest);
        match number {
            b"0" | b"2" => {
                self.title = title(rest);
                Some(ControlEvent::Title(self.title.clone()))
            }
            b"7" => directory(rest).map(ControlEvent::Directory),
            b"133" => parse_shell_event(rest, nonce),
            _ => None,
        }
    }
}

/// Parses OSC 133 (FinalTerm's marks, with kitty's `k=s` for continuation prompts).
fn parse_shell_event(fields: &[u8], nonce: Option<&str>) -> Option<ControlEvent> {
    let mut fields = fields.split(|byte| *byte == b';');
    let kind = fields.next()?;
    let fields: Vec<&[u8]> = fields.collect();
    let is_trusted = nonce.is_some_and(|nonce| {
        let has_nonce = |field: &&[u8]| field.strip_prefix(b"ostler=") == Some(nonce.as_bytes());
        !nonce.is_empty() && fields.iter().any(has_nonce)
    });
    match kind {
        b"A" => Some(ControlEvent::PromptStart {
            is_trusted,
            continuation: fields.contains(&b"k=s".as_slice()),
        }),
        b"B" => Some(ControlEvent::PromptEnd { is_trusted }),
        b"C" => Some(ControlEvent::CommandStart { is_trusted }),
        b"D" => Some(ControlEvent::CommandEnd {
            is_trusted,
            status: fields
                .first()
                .and_then(|field| str::from_utf8(field).ok()?.parse().ok()),
        }),
        _ => None,
    }
}

/// Normalizes a title: text without controls, cut to [`TITLE_BYTES`].
fn title(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let mut title: String = text.chars().filter(|c| !c.is_control()).collect();
    title.truncate(title.floor_char_boundary(TITLE_BYTES));
    title
}

/// The path of a `file://host/path` URL, percent-decoded.
fn directory(url: &[u8]) -> Option<Vec<u8>> {
    let location = url.strip_prefix(b"file://")?;
    let path = &location[memchr::memchr(b'/', location)?..];
    let mut decoded = Vec::with_capacity(path.len());
    let mut rest = path;
    while let Some((&byte, after)) = rest.split_first() {
        let (byte, after) = match (byte, after) {
            (b'%', [high, low, after @ ..]) => match (hex(*high), hex(*low)) {
                (Some(high), Some(low)) => (high << 4 | low, after),
                _ => (byte, after_percent(rest)),
            },
            _ => (byte, after),
        };
        decoded.push(byte);
        rest = after;
    }
    (!decoded.contains(&0)).then_some(decoded)
}

/// A percent sign that does not begin an escape stands for itself.
fn after_percent(rest: &[u8]) -> &[u8] {
    &rest[1..]
}

fn hex(digit: u8) -> Option<u8> {
    char::from(digit)
        .to_digit(16)
        .and_then(|value| u8::try_from(value).ok())
}
