//! Control sequences that carry information rather than paint: the title, modes, the shell marks
//! of OSC 133 and the working directory of OSC 7, each with its position in the stream.

mod scanner;

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::modes::{Modes, PrivateModes};

/// One control event with its position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LocatedEvent {
    /// The offset of the sequence's first byte (its ESC).
    pub from: u64,
    /// The offset after its last byte.
    pub to: u64,
    /// The event.
    pub event: ControlEvent,
}

/// The meaning of a control sequence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ControlEvent {
    /// OSC 133;A: a prompt begins. `is_trusted` on all four marks: it carried the shell's nonce.
    PromptStart {
        /// Whether it carried the nonce.
        is_trusted: bool,
        /// Whether it is a continuation prompt (`k=s`): the command is not complete.
        continuation: bool,
    },
    /// OSC 133;B: the prompt ends, and the user types.
    PromptEnd {
        /// Whether it carried the nonce.
        is_trusted: bool,
    },
    /// OSC 133;C: the command starts; its output begins here.
    CommandStart {
        /// Whether it carried the nonce.
        is_trusted: bool,
    },
    /// OSC 133;D: the command ended; its output ends here.
    CommandEnd {
        /// Whether it carried the nonce.
        is_trusted: bool,
        /// Its exit status, where the shell reported one.
        status: Option<i32>,
    },
    /// OSC 7: the working directory, percent-decoded.
    Directory(Vec<u8>),
    /// OSC 0 or 2: the title.
    Title(String),
    /// The modes changed to these.
    Modes(Modes),
}

/// The length in bytes of the longest sequence that is evaluated; a longer one is skipped.
pub const SEQUENCE_BYTES: usize = 8 * 1024;

/// The longest title in bytes; the rest is cut off.
pub const TITLE_BYTES: usize = 1024;

/// The most titles on the title stack (`CSI 22 t`).
const TITLES_MAX: usize = 10;

/// Finds control events in a stream split at any byte. Buffers an incomplete sequence, at most
/// [`SEQUENCE_BYTES`].
#[derive(Clone, Default)]
pub struct Scanner {
    at: u64,
    nonce: Option<String>,
    state: ScannerState,
}

impl fmt::Debug for Scanner {
    // The nonce is a secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scanner")
            .field("at", &self.at)
            .field("nonce", &self.nonce.is_some())
            .field("state", &self.state)
            .finish()
    }
}

/// The state of a [`Scanner`], as a checkpoint stores it.
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
    private: PrivateModes,
    /// The cursor's shape (DECSCUSR), 0 for the terminal's default.
    cursor_shape: u8,
    title: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    titles: Vec<String>,
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

impl Scanner {
    /// A scanner at `offset`; marks are believed if they carry `nonce`.
    #[must_use]
    pub fn new(offset: u64, nonce: Option<&str>) -> Self {
        Self::restore(offset, nonce, ScannerState::default())
    }

    /// A scanner that continues from a stored state.
    #[must_use]
    pub fn restore(offset: u64, nonce: Option<&str>, mut state: ScannerState) -> Self {
        // A stored state may have been modified; the limits hold all the same.
        state.pending.truncate(SEQUENCE_BYTES);
        state.titles.truncate(TITLES_MAX);
        state.from = state.from.min(offset);
        Self {
            at: offset,
            nonce: nonce.map(str::to_owned),
            state,
        }
    }

    /// The state to be stored.
    #[must_use]
    pub fn state(&self) -> &ScannerState {
        &self.state
    }

    /// The offset after the last byte consumed.
    #[must_use]
    pub fn offset(&self) -> u64 {
        self.at
    }

    /// The current modes.
    #[must_use]
    pub fn modes(&self) -> Modes {
        self.state.private.modes()
    }

    /// The current title.
    #[must_use]
    pub fn title(&self) -> &str {
        &self.state.title
    }

    /// Skips bytes up to `offset`, which are gone: a sequence they cut off is dropped.
    pub fn skip_to(&mut self, offset: u64) {
        self.at = offset;
        self.state.place = SequenceState::Text;
        self.state.begin_sequence();
    }

    /// Consumes the next bytes and returns the events that ended in them.
    pub fn feed(&mut self, bytes: &[u8]) -> Vec<LocatedEvent> {
        let mut events = Vec::new();
        let mut at = 0;
        while at < bytes.len() {
            at = self.scan_step(bytes, at, &mut events);
        }
        self.at += bytes.len() as u64;
        events
    }
}

impl ScannerState {
    fn begin_sequence(&mut self) {
        self.pending.clear();
        self.overlong = false;
    }

    /// Sequences that set a real terminal's modes, cursor shape and title to these.
    pub(crate) fn repaint(&self) -> String {
        let mut text = self.private.repaint();
        text.push_str(&format!("\u{1b}[{} q", self.cursor_shape));
        if !self.title.is_empty() {
            text.push_str(&format!("\u{1b}]2;{}\u{7}", self.title));
        }
        text
    }
}

#[cfg(test)]
mod tests;
