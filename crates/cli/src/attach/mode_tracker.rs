//! Tracks the terminal modes that a program sets, so that the local terminal can be restored.

use std::collections::BTreeSet;

use ostler_escape::{ControlSequence, EscapeEvent, EscapeParser};

/// Private modes that are set in a new terminal: autowrap, cursor visible.
const DEFAULT_ON: [u16; 2] = [7, 25];
/// Private modes of the alternate screen; left last, when everything else is restored.
const ALTERNATE: [u16; 3] = [47, 1_047, 1_049];
/// Cancels an incomplete sequence.
const CAN: u8 = 0x18;
/// The value of parameters that are beyond all modes.
const PARAM_MAX: u16 = u16::MAX;

/// Tracks output and knows how to restore the terminal.
#[derive(Debug, Default)]
pub(crate) struct ModeTracker {
    parser: EscapeParser,
    modes: ChangedModes,
}

/// What is to be restored.
#[derive(Debug, Default)]
struct ChangedModes {
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

    /// Tracks output, split at any byte.
    pub(crate) fn feed(&mut self, bytes: &[u8]) {
        let Self { parser, modes } = self;
        parser.advance(bytes, |event, _| modes.apply(event));
    }

    /// Whether the alternate screen is active.
    pub(crate) fn is_alternate(&self) -> bool {
        let changed = &self.modes.changed;
        ALTERNATE.iter().any(|mode| changed.contains(mode))
    }

    /// The sequences that restore the terminal; the tracker is in its initial state afterwards.
    pub(crate) fn restore(&mut self) -> Vec<u8> {
        let modes = std::mem::take(self).modes;
        // Cancels an incomplete sequence, then resets colours and the character set.
        let mut out = vec![CAN];
        out.extend_from_slice(b"\x1b[0m\x0f\x1b(B");
        for extra in &modes.other_modes {
            out.extend_from_slice(extra.reset_sequence());
        }
        let (alternate, others): (Vec<u16>, Vec<u16>) = modes
            .changed
            .iter()
            .partition(|mode| ALTERNATE.contains(mode));
        for mode in others.into_iter().chain(alternate) {
            let suffix = if DEFAULT_ON.contains(&mode) { 'h' } else { 'l' };
            out.extend_from_slice(format!("\x1b[?{mode}{suffix}").as_bytes());
        }
        out
    }
}

impl ChangedModes {
    fn apply(&mut self, event: EscapeEvent<'_>) {
        match event {
            EscapeEvent::ControlSequence(sequence) => self.apply_control(&sequence),
            EscapeEvent::Escape {
                intermediates: [],
                last,
            } => self.apply_escape(last),
            EscapeEvent::Osc { content, .. } => {
                if content.starts_with(b"0;") || content.starts_with(b"2;") {
                    self.other_modes.insert(OtherMode::Title);
                }
            }
            EscapeEvent::Text(_) | EscapeEvent::Control(_) | EscapeEvent::Escape { .. } => {}
        }
    }

    fn apply_escape(&mut self, last: u8) {
        match last {
            b'=' => self.set_other_mode(OtherMode::Keypad),
            b'>' => drop(self.other_modes.remove(&OtherMode::Keypad)),
            b'c' => {
                // Everything except the title is in its initial state.
                self.changed.clear();
                self.other_modes.retain(|extra| *extra == OtherMode::Title);
            }
            _ => {}
        }
    }

    fn apply_control(&mut self, sequence: &ControlSequence<'_>) {
        match (sequence.intermediates(), sequence.last()) {
            (b"?", last @ (b'h' | b'l')) => {
                for mode in sequence.params().filter(|mode| *mode != PARAM_MAX) {
                    self.set_private_mode(mode, last == b'h');
                }
            }
            (b"", b'h') if sequence.params().eq([4]) => self.set_other_mode(OtherMode::Insert),
            (b"", b'l') if sequence.params().eq([4]) => {
                self.other_modes.remove(&OtherMode::Insert);
            }
            (b">", b'm') if sequence.first_param() == 4 => {
                self.set_other_mode(OtherMode::ModifyKeys);
            }
            (b">", b'u') => self.set_other_mode(OtherMode::KittyKeys),
            (b" ", b'q') => self.set_other_mode(OtherMode::CursorShape),
            (b"", b'r') => self.set_other_mode(OtherMode::Region),
            (b"!", b'p') => {
                self.changed.retain(|mode| ALTERNATE.contains(mode));
                self.other_modes.retain(|extra| *extra == OtherMode::Title);
            }
            _ => {}
        }
    }

    fn set_other_mode(&mut self, mode: OtherMode) {
        self.other_modes.insert(mode);
    }

    fn set_private_mode(&mut self, mode: u16, on: bool) {
        if on == DEFAULT_ON.contains(&mode) {
            self.changed.remove(&mode);
        } else {
            self.changed.insert(mode);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn left(output: &str) -> String {
        let mut whole = ModeTracker::default();
        whole.feed(output.as_bytes());
        let mut pieces = ModeTracker::default();
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
        let mut modes = ModeTracker::default();
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
