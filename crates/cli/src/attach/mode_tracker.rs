//! Tracks the terminal modes that a program sets, so that the local terminal can be restored.

use std::collections::BTreeSet;

/// The length in bytes of the longest control sequence that is evaluated.
const SEQUENCE_BYTES: usize = 256;
/// Private modes that are set in a new terminal: autowrap, cursor visible.
const DEFAULT_ON: [u16; 2] = [7, 25];
/// Private modes of the alternate screen; left last, when everything else is restored.
const ALTERNATE: [u16; 3] = [47, 1_047, 1_049];
const ESC: u8 = 0x1b;
const BEL: u8 = 0x07;
const CAN: u8 = 0x18;
const SUB: u8 = 0x1a;

/// The state of the parser.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ParserState {
    Text,
    Escape,
    /// After ESC and an intermediate byte.
    Intermediate,
    /// In a string, which BEL or ST ends.
    Csi,
    /// In a string that BEL or ST ends.
    Str,
    /// After an ESC in a string.
    StrEscape,
}

/// Tracks output and knows how to restore the terminal.
#[derive(Debug)]
pub(crate) struct ModeTracker {
    state: ParserState,
    sequence: Vec<u8>,
    /// Private modes that differ from those of a new terminal.
    changed: BTreeSet<u16>,
    /// Other modes that differ.
    other_modes: BTreeSet<OtherMode>,
}

/// Other modes that can be changed, each restored by one sequence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum OtherMode {
    Keypad,
    Region,
    CursorShape,
    Insert,
    ModifyKeys,
    KittyKeys,
    Title,
}

impl OtherMode {
    const fn reset_sequence(self) -> &'static [u8] {
        match self {
            Self::Keypad => b"\x1b>",
            // Setting the scroll region moves the cursor.
            Self::Region => b"\x1b7\x1b[r\x1b8",
            Self::CursorShape => b"\x1b[0 q",
            Self::Insert => b"\x1b[4l",
            Self::ModifyKeys => b"\x1b[>4m",
            Self::KittyKeys => b"\x1b[<9u",
            Self::Title => b"\x1b[23;2t",
        }
    }
}

impl ModeTracker {
    /// The sequence that pushes the title onto the title stack, for [`ModeTracker::restore`].
    pub(crate) const SAVE_TITLE: &'static [u8] = b"\x1b[22;2t";

    /// A tracker of a terminal in its initial state.
    pub(crate) const fn new() -> Self {
        Self {
            state: ParserState::Text,
            sequence: Vec::new(),
            changed: BTreeSet::new(),
            other_modes: BTreeSet::new(),
        }
    }

    /// Tracks output, split at any byte.
    pub(crate) fn feed(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.advance(byte);
        }
    }

    /// Whether the alternate screen is active.
    pub(crate) fn is_alternate(&self) -> bool {
        ALTERNATE.iter().any(|mode| self.changed.contains(mode))
    }

    /// The sequences that restore the terminal; the tracker is in its initial state afterwards.
    pub(crate) fn restore(&mut self) -> Vec<u8> {
        // Cancels an incomplete sequence, then resets colours and the character set.
        let mut out = vec![CAN];
        out.extend_from_slice(b"\x1b[0m\x0f\x1b(B");
        for extra in &self.other_modes {
            out.extend_from_slice(extra.reset_sequence());
        }
        let (alternate, others): (Vec<u16>, Vec<u16>) = self
            .changed
            .iter()
            .partition(|mode| ALTERNATE.contains(mode));
        for mode in others.into_iter().chain(alternate) {
            let suffix = if DEFAULT_ON.contains(&mode) { 'h' } else { 'l' };
            out.extend_from_slice(format!("\x1b[?{mode}{suffix}").as_bytes());
        }
        *self = Self::new();
        out
    }

    fn advance(&mut self, byte: u8) {
        match (self.state, byte) {
            (_, CAN | SUB) => self.state = ParserState::Text,
            (ParserState::Str, BEL) => self.finish_string(),
            (ParserState::Str, ESC) => self.state = ParserState::StrEscape,
            (ParserState::StrEscape, b'\\') => self.finish_string(),
            (_, ESC) => self.enter_state(ParserState::Escape),
            (ParserState::Text, _) => {}
            (ParserState::Escape, b'[') => self.enter_state(ParserState::Csi),
            (ParserState::Escape, b']' | b'P' | b'X' | b'^' | b'_') => {
                self.enter_state(ParserState::Str);
                self.sequence.push(byte);
            }
            (ParserState::Escape, 0x20..=0x2f) => self.state = ParserState::Intermediate,
            (ParserState::Escape, _) => {
                self.finish_escape(byte);
                self.state = ParserState::Text;
            }
            (ParserState::Intermediate, 0x30..=0x7e) => self.state = ParserState::Text,
            (ParserState::Intermediate, _) => {}
            (ParserState::Csi, 0x40..=0x7e) => self.finish_csi(byte),
            (ParserState::Csi, 0x20..=0x3f) => self.push_byte(byte),
            // Control characters within a sequence are executed and are not part of it.
            (ParserState::Csi, _) => {}
            (ParserState::Str, _) => self.push_byte(byte),
            (ParserState::StrEscape, _) => {
                // The string was aborted, and this byte follows an ESC.
                self.enter_state(ParserState::Escape);
                self.advance(byte);
            }
        }
    }

    fn enter_state(&mut self, state: ParserState) {
        self.sequence.clear();
        self.state = state;
    }

    fn push_byte(&mut self, byte: u8) {
        if self.sequence.len() < SEQUENCE_BYTES {
            self.sequence.push(byte);
        }
    }

    fn finish_string(&mut self) {
        self.state = ParserState::Text;
        let starts = |begin: &[u8]| self.sequence.starts_with(begin);
        if starts(b"]0;") || starts(b"]2;") {
            self.other_modes.insert(OtherMode::Title);
        }
    }

    fn finish_escape(&mut self, byte: u8) {
        match byte {
            b'=' => drop(self.other_modes.insert(OtherMode::Keypad)),
            b'>' => drop(self.other_modes.remove(&OtherMode::Keypad)),
            b'c' => {
                // Everything except the title is in its initial state.
                let title = self.other_modes.contains(&OtherMode::Title);
                *self = Self::new();
                if title {
                    self.other_modes.insert(OtherMode::Title);
                }
            }
            _ => {}
        }
    }

    fn finish_csi(&mut self, last: u8) {
        self.state = ParserState::Text;
        let sequence = std::mem::take(&mut self.sequence);
        match (sequence.as_slice(), last) {
            ([b'?', modes @ ..], b'h' | b'l') => {
                for mode in numbers(modes) {
                    self.set_private_mode(mode, last == b'h');
                }
            }
            (b"4", b'h') => drop(self.other_modes.insert(OtherMode::Insert)),
            (b"4", b'l') => drop(self.other_modes.remove(&OtherMode::Insert)),
            ([b'>', keys @ ..], b'm') if numbers(keys).next() == Some(4) => {
                self.other_modes.insert(OtherMode::ModifyKeys);
            }
            ([b'>', ..], b'u') => drop(self.other_modes.insert(OtherMode::KittyKeys)),
            ([.., b' '], b'q') => drop(self.other_modes.insert(OtherMode::CursorShape)),
            (b"" | [b'0'..=b'9' | b';', ..], b'r') => {
                self.other_modes.insert(OtherMode::Region);
            }
            (b"!", b'p') => {
                self.changed.retain(|mode| ALTERNATE.contains(mode));
                self.other_modes.retain(|extra| *extra == OtherMode::Title);
            }
            _ => {}
        }
    }

    fn set_private_mode(&mut self, mode: u16, on: bool) {
        if on == DEFAULT_ON.contains(&mode) {
            self.changed.remove(&mode);
        } else {
            self.changed.insert(mode);
        }
    }
}

fn numbers(text: &[u8]) -> impl Iterator<Item = u16> + '_ {
    text.split(|&byte| byte == b';')
        .filter_map(|word| std::str::from_utf8(word).ok()?.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn left(output: &str) -> String {
        let mut whole = ModeTracker::new();
        whole.feed(output.as_bytes());
        let mut pieces = ModeTracker::new();
        for byte in output.bytes() {
            pieces.feed(&[byte]);
        }
        let left = String::from_utf8(whole.restore()).unwrap();
        assert_eq!(left.as_bytes(), pieces.restore(), "{output:?} in pieces");
        left.strip_prefix("\x18\x1b[0m\x0f\x1b(B")
            .unwrap()
            .to_owned()
    }

    #[test]
    fn what_was_changed_is_put_back_and_nothing_else() {
        assert_eq!(left("plain\r\n\x1b[31mred\x1b[0m\x1b[2J\x1b[1;1H"), "");
        assert_eq!(left("\x1b[?2004h"), "\x1b[?2004l");
        assert_eq!(left("\x1b[?2004h\x1b[?2004l"), "");
        assert_eq!(left("\x1b[?25l"), "\x1b[?25h");
        assert_eq!(left("\x1b[?1000;1006h"), "\x1b[?1000l\x1b[?1006l");
        assert_eq!(left("\x1b="), "\x1b>");
        assert_eq!(left("\x1b[2 q"), "\x1b[0 q");
        assert_eq!(left("\x1b[5;10r"), "\x1b7\x1b[r\x1b8");
        assert_eq!(left("\x1b[>4;2m\x1b[>1u"), "\x1b[>4m\x1b[<9u");
        assert_eq!(left("\x1b]0;vim\x07"), "\x1b[23;2t");
        assert_eq!(left("\x1b]2;vim\x1b\\"), "\x1b[23;2t");
        assert_eq!(left("\x1b]52;c;\x1b[?25l"), "\x1b[?25h");
    }

    #[test]
    fn the_alternate_screen_is_left_last() {
        assert_eq!(
            left("\x1b[?1049h\x1b[?25l\x1b[?2004h"),
            "\x1b[?25h\x1b[?2004l\x1b[?1049l"
        );
        let mut modes = ModeTracker::new();
        modes.feed(b"\x1b[?1049h");
        assert!(modes.is_alternate());
        modes.feed(b"\x1b[?1049l");
        assert!(!modes.is_alternate());
    }

    #[test]
    fn resets_and_broken_sequences_are_understood() {
        assert_eq!(left("\x1b[?25l\x1b[?2004h\x1bc"), "");
        assert_eq!(left("\x1b[?25l\x1b[!p"), "");
        assert_eq!(left("\x1b[?25\x18l"), "");
        assert_eq!(left("\x1b[?25\x1b[?2004h"), "\x1b[?2004l");
        assert_eq!(left("\x1bP1$r0m\x1b\\\x1b[?25l"), "\x1b[?25h");
        assert_eq!(left("\x1b(0\x1b[?9999999h"), "");
    }
}
