//! The state of a scanner as a checkpoint stores it.

use ostler_escape::{EscapeParser, SEQUENCE_BYTES};
use serde::{Deserialize, Serialize};

use super::TITLES_MAX;
use crate::modes::PrivateModes;

/// What sequences have set in a terminal.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct TerminalState {
    pub(super) private: PrivateModes,
    /// The cursor's shape (DECSCUSR), 0 for the terminal's default.
    pub(super) cursor_shape: u8,
    pub(super) title: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) titles: Vec<String>,
}

impl TerminalState {
    /// Sequences that set a real terminal's modes, cursor shape and title to these.
    pub(super) fn repaint(&self) -> String {
        let mut text = self.private.repaint();
        text.push_str(&format!("\u{1b}[{} q", self.cursor_shape));
        if !self.title.is_empty() {
            text.push_str(&format!("\u{1b}]2;{}\u{7}", self.title));
        }
        text
    }
}

/// The state of a [`Scanner`](super::Scanner), as a checkpoint stores it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ScannerState {
    place: SequenceState,
    /// The offset of the ESC of the incomplete sequence.
    from: u64,
    /// The bytes of that sequence so far, without its introducer.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pending: Vec<u8>,
    /// Whether that sequence is too long to be evaluated.
    overlong: bool,
    #[serde(flatten)]
    terminal: TerminalState,
}

/// The state in the grammar of control sequences (ECMA-48).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum SequenceState {
    /// In text.
    #[default]
    Text,
    /// After an ESC.
    Escape,
    /// After ESC and an intermediate byte.
    EscapeMore,
    /// In a control sequence (CSI).
    Control,
    /// In an operating system command (OSC).
    Osc,
    /// After an ESC in an OSC: its end, if a backslash follows.
    OscEscape,
    /// In a string that is ignored: DCS, SOS, PM, APC.
    Other,
}

impl SequenceState {
    /// The bytes that lead there, before what a state keeps of the sequence.
    const fn introducer(self) -> &'static [u8] {
        match self {
            Self::Text => b"",
            Self::Escape => b"\x1b",
            // Which one it was makes no difference: no such sequence is evaluated.
            Self::EscapeMore => b"\x1b ",
            Self::Control => b"\x1b[",
            Self::Osc | Self::OscEscape => b"\x1b]",
            Self::Other => b"\x1bP",
        }
    }
}

impl ScannerState {
    pub(super) fn new(parser: &EscapeParser, terminal: &TerminalState) -> Self {
        let (place, pending) = match parser.incomplete_sequence() {
            [] => (SequenceState::Text, [].as_slice()),
            [_, b'[', pending @ ..] => (SequenceState::Control, pending),
            [_, b']', pending @ .., b'\x1b'] => (SequenceState::OscEscape, pending),
            [_, b']', pending @ ..] => (SequenceState::Osc, pending),
            [_, b'P' | b'X' | b'^' | b'_', ..] => (SequenceState::Other, [].as_slice()),
            [_, b' '..=b'/', ..] => (SequenceState::EscapeMore, [].as_slice()),
            [_, ..] => (SequenceState::Escape, [].as_slice()),
        };
        let overlong = parser.is_cut();
        Self {
            place,
            from: parser.sequence_offset(),
            pending: if overlong {
                Vec::new()
            } else {
                pending.to_vec()
            },
            overlong,
            terminal: terminal.clone(),
        }
    }

    /// The scanner's parser at this offset, and what was set. A stored state may have been
    /// modified; the limits hold all the same.
    pub(super) fn restore(mut self, offset: u64) -> (EscapeParser, TerminalState) {
        self.pending.truncate(SEQUENCE_BYTES);
        let mut sequence = self.place.introducer().to_vec();
        if matches!(
            self.place,
            SequenceState::Control | SequenceState::Osc | SequenceState::OscEscape
        ) {
            sequence.append(&mut self.pending);
        }
        if self.place == SequenceState::OscEscape {
            sequence.push(b'\x1b');
        }
        let from = self.from.min(offset);
        let parser = EscapeParser::resume(&sequence, self.overlong, from..offset);
        self.terminal.titles.truncate(TITLES_MAX);
        (parser, self.terminal)
    }
}
