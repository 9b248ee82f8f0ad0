//! The steps of a [`Scanner`] through a stream.

use super::{
    ControlEvent, LocatedEvent, SEQUENCE_BYTES, Scanner, SequenceState, TITLE_BYTES, TITLES_MAX,
};

const ESC: u8 = 0x1b;
const BEL: u8 = 0x07;
/// CAN and SUB cancel any sequence.
const CANCEL: [u8; 2] = [0x18, 0x1a];
/// The highest cursor shape (DECSCUSR).
const CURSOR_SHAPE_MAX: u8 = 6;

impl Scanner {
    /// Makes one step from `bytes[at]` on and returns the index at which the next begins.
    pub(super) fn scan_step(
        &mut self,
        bytes: &[u8],
        at: usize,
        events: &mut Vec<LocatedEvent>,
    ) -> usize {
        match self.state.place {
            SequenceState::Text => match memchr::memchr(ESC, &bytes[at..]) {
                Some(escape) => self.escape_at(at + escape),
                None => bytes.len(),
            },
            SequenceState::Escape => self.escape(bytes[at], at, events),
            SequenceState::EscapeMore => {
                match bytes[at] {
                    ESC => return self.escape_at(at),
                    b if CANCEL.contains(&b) => self.state.place = SequenceState::Text,
                    0x00..=0x2f => {}
                    _ => self.state.place = SequenceState::Text,
                }
                at + 1
            }
            SequenceState::Control => self.control(bytes, at, events),
            SequenceState::Osc => self.osc(bytes, at, events),
            SequenceState::OscEscape => self.osc_escape(bytes[at], at, events),
            SequenceState::Other => {
                let end = |byte: &u8| *byte == ESC || CANCEL.contains(byte);
                let Some(end) = bytes[at..].iter().position(end) else {
                    return bytes.len();
                };
                if bytes[at + end] == ESC {
                    return self.escape_at(at + end);
                }
                self.state.place = SequenceState::Text;
                at + end + 1
            }
        }
    }

    /// Handles the ESC at index `at`.
    fn escape_at(&mut self, at: usize) -> usize {
        self.state.from = self.at + at as u64;
        self.state.place = SequenceState::Escape;
        self.state.begin_sequence();
        at + 1
    }

    /// Returns to text.
    fn abort_sequence(&mut self) {
        self.state.place = SequenceState::Text;
        self.state.begin_sequence();
    }

    /// Handles the byte after an ESC.
    fn escape(&mut self, byte: u8, at: usize, events: &mut Vec<LocatedEvent>) -> usize {
        let to = self.at + at as u64 + 1;
        self.state.place = match byte {
            ESC => return self.escape_at(at),
            b'[' => SequenceState::Control,
            b']' => SequenceState::Osc,
            // `ESC k` is a title for screen and tmux; see the emulator.
            b'P' | b'X' | b'^' | b'_' | b'k' => SequenceState::Other,
            b' '..=b'/' => SequenceState::EscapeMore,
            b if CANCEL.contains(&b) => SequenceState::Text,
            // Other controls are executed in the middle of a sequence.
            0x00..=0x1f | 0x7f => SequenceState::Escape,
            _ => SequenceState::Text,
        };
        match byte {
            b'=' => self.change_modes(to, events, |scanner| {
                scanner.state.private.set(crate::modes::KEYPAD, true);
            }),
            b'>' => self.change_modes(to, events, |scanner| {
                scanner.state.private.set(crate::modes::KEYPAD, false);
            }),
            b'c' => self.change_modes(to, events, |scanner| {
                scanner.state.private.clear();
                scanner.state.cursor_shape = 0;
            }),
            _ => {}
        }
        at + 1
    }

    /// Reads a control sequence up to its final byte.
    fn control(&mut self, bytes: &[u8], at: usize, events: &mut Vec<LocatedEvent>) -> usize {
        let part = &bytes[at..];
        let length = part
            .iter()
            .position(|byte| !matches!(byte, b' '..=b'?'))
            .unwrap_or(part.len());
        let end = at + length;
        let Some(&last) = bytes.get(end) else {
            self.buffer(part);
            return end;
        };
        match last {
            ESC => return self.escape_at(end),
            b'@'..=b'~' => {
                self.state.place = SequenceState::Text;
                let to = self.at + end as u64 + 1;
                if matches!(last, b'h' | b'l' | b'p' | b'q' | b't') {
                    self.buffer(&part[..length]);
                    self.finish_control(last, to, events);
                }
                self.state.begin_sequence();
            }
            b if CANCEL.contains(&b) || b >= 0x80 => self.abort_sequence(),
            _ => self.buffer(&part[..length]),
        }
        end + 1
    }

    /// Reads an operating system command up to its end.
    fn osc(&mut self, bytes: &[u8], at: usize, events: &mut Vec<LocatedEvent>) -> usize {
        let part = &bytes[at..];
        let end = |byte: &u8| matches!(*byte, ESC | BEL) || CANCEL.contains(byte);
        let Some(length) = part.iter().position(end) else {
            self.buffer(part);
            return bytes.len();
        };
        let end = at + length;
        self.buffer(&part[..length]);
        match bytes[end] {
            ESC => self.state.place = SequenceState::OscEscape,
            BEL => self.finish_osc(self.at + end as u64 + 1, events),
            _ => self.abort_sequence(),
        }
        end + 1
    }

    /// Handles the byte after an ESC in an operating system command.
    fn osc_escape(&mut self, byte: u8, at: usize, events: &mut Vec<LocatedEvent>) -> usize {
        if byte == b'\\' {
            self.finish_osc(self.at + at as u64 + 1, events);
            return at + 1;
        }
        // Another sequence begins: the ESC was the byte before, perhaps in an earlier piece.
        self.state.from = (self.at + at as u64).saturating_sub(1);
        self.state.place = SequenceState::Escape;
        self.state.begin_sequence();
        at
    }

    /// Buffers a part of a sequence, unless it gets too long.
    fn buffer(&mut self, part: &[u8]) {
        let state = &mut self.state;
        if state.overlong {
            return;
        }
        if state.pending.len() + part.len() > SEQUENCE_BYTES {
            state.overlong = true;
            state.pending = Vec::new();
        } else {
            state.pending.extend_from_slice(part);
        }
    }

    fn locate_event(&self, to: u64, mark: ControlEvent) -> LocatedEvent {
        LocatedEvent {
            from: self.state.from,
            to,
            event: mark,
        }
    }

    /// Changes the modes and reports an event if they differ then.
    fn change_modes(
        &mut self,
        to: u64,
        events: &mut Vec<LocatedEvent>,
        change: impl FnOnce(&mut Self),
    ) {
        let before = self.modes();
        change(self);
        let after = self.modes();
        if before != after {
            events.push(self.locate_event(to, ControlEvent::Modes(after)));
        }
    }

    /// Evaluates a complete control sequence: its parameters in `pending`, `last` its final byte.
    fn finish_control(&mut self, last: u8, to: u64, events: &mut Vec<LocatedEvent>) {
        if self.state.overlong {
            return;
        }
        let pending = std::mem::take(&mut self.state.pending);
        match (pending.as_slice(), last) {
            ([b'?', modes @ ..], b'h' | b'l') => self.change_modes(to, events, |scanner| {
                for mode in numbers(modes) {
                    scanner.state.private.set(mode, last == b'h');
                }
            }),
            ([b'!'], b'p') => self.change_modes(to, events, |scanner| {
                scanner.state.private.soft_reset();
            }),
            ([shape @ .., b' '], b'q') => {
                let shape = numbers(shape).next().and_then(|n| u8::try_from(n).ok());
                let known = shape.filter(|shape| *shape <= CURSOR_SHAPE_MAX);
                self.state.cursor_shape = known.unwrap_or(self.state.cursor_shape);
            }
            (operation, b't') => self.title_stack(operation, to, events),
            _ => {}
        }
    }

    /// XTWINOPS 22 and 23: pushes and pops the title.
    fn title_stack(&mut self, operation: &[u8], to: u64, events: &mut Vec<LocatedEvent>) {
        let mut numbers = numbers(operation);
        let (operation, which) = (numbers.next(), numbers.next().unwrap_or(0));
        if !matches!(which, 0 | 2) {
            return;
        }
        match operation {
            Some(22) => {
                if self.state.titles.len() == TITLES_MAX {
                    self.state.titles.remove(0);
                }
                self.state.titles.push(self.state.title.clone());
            }
            Some(23) => {
                if let Some(title) = self.state.titles.pop() {
                    self.state.title.clone_from(&title);
                    events.push(self.locate_event(to, ControlEvent::Title(title)));
                }
            }
            _ => {}
        }
    }

    fn finish_osc(&mut self, to: u64, events: &mut Vec<LocatedEvent>) {
        self.state.place = SequenceState::Text;
        let overlong = std::mem::take(&mut self.state.overlong);
        let pending = std::mem::take(&mut self.state.pending);
        if overlong {
            return;
        }
        let cut = memchr::memchr(b';', &pending).unwrap_or(pending.len());
        let (number, rest) = pending.split_at(cut);
        let rest = rest.strip_prefix(b";").unwrap_or(rest);
        let event = match number {
            b"0" | b"2" => {
                self.state.title = title(rest);
                Some(ControlEvent::Title(self.state.title.clone()))
            }
            b"7" => directory(rest).map(ControlEvent::Directory),
            b"133" => self.parse_shell_event(rest),
            _ => None,
        };
        events.extend(event.map(|mark| self.locate_event(to, mark)));
    }

    /// Parses OSC 133 (FinalTerm's marks, with kitty's `k=s` for continuation prompts).
    fn parse_shell_event(&self, fields: &[u8]) -> Option<ControlEvent> {
        let mut fields = fields.split(|byte| *byte == b';');
        let kind = fields.next()?;
        let fields: Vec<&[u8]> = fields.collect();
        let is_trusted = self.nonce.as_ref().is_some_and(|nonce| {
            let has_nonce =
                |field: &&[u8]| field.strip_prefix(b"ostler=") == Some(nonce.as_bytes());
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
}

/// The parameters of a control sequence; what is not a number is zero, as terminals take it.
fn numbers(parameters: &[u8]) -> impl Iterator<Item = u16> {
    parameters.split(|byte| *byte == b';').map(|number| {
        let digits = str::from_utf8(number).ok();
        digits.and_then(|digits| digits.parse().ok()).unwrap_or(0)
    })
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
