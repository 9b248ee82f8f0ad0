//! Control sequences that tell about the program rather than paint: title, modes, the marks
//! of OSC 133 and the directory of OSC 7, each with its place in the stream.

mod scanner;

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::modes::{Modes, Private};

/// One mark with its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LocatedEvent {
    /// Offset of the mark's first byte (its ESC).
    pub from: u64,
    /// Offset after its last byte.
    pub to: u64,
    /// Which.
    pub mark: ControlEvent,
}

/// What a sequence told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ControlEvent {
    /// OSC 133;A: a prompt begins. `believed` on all four: it carried our nonce.
    PromptStart {
        /// Whether it carried the nonce.
        believed: bool,
        /// Whether it is a continuation prompt (`k=s`): the command is not complete.
        continuation: bool,
    },
    /// OSC 133;B: the prompt ends, the person types.
    PromptEnd {
        /// Whether it carried the nonce.
        believed: bool,
    },
    /// OSC 133;C: the command begins to run; its output begins here.
    CommandStart {
        /// Whether it carried the nonce.
        believed: bool,
    },
    /// OSC 133;D: the command ended; its output ends here.
    CommandEnd {
        /// Whether it carried the nonce.
        believed: bool,
        /// Its exit status, where the shell told.
        status: Option<i32>,
    },
    /// OSC 7: the working directory, decoded.
    Directory(Vec<u8>),
    /// OSC 0 or 2: the title.
    Title(String),
    /// The modes are these now.
    Modes(Modes),
}

/// The longest sequence that is looked at; a longer one is passed over.
pub const SEQUENCE_BYTES: usize = 8 * 1024;

/// The longest title that is kept; the rest of it is cut off.
pub const TITLE_BYTES: usize = 1024;

/// How many titles a program can put aside (`CSI 22 t`).
const TITLES_MAX: usize = 10;

/// Finds marks in a stream cut anywhere. Remembers what is incomplete, at most
/// [`SEQUENCE_BYTES`].
#[derive(Clone, Default)]
pub struct Scanner {
    at: u64,
    nonce: Option<String>,
    state: ScanState,
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

/// What a [`Scanner`] remembers.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ScanState {
    place: SequenceState,
    /// Offset of the ESC of the sequence that is not complete.
    from: u64,
    /// What came of that sequence, without what introduces it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pending: Vec<u8>,
    /// Whether that sequence is too long to be looked at.
    overlong: bool,
    private: Private,
    /// DECSCUSR: the cursor's shape, 0 for the terminal's own.
    cursor_shape: u8,
    title: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    titles: Vec<String>,
}

/// Where in the grammar of control sequences a stream stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum SequenceState {
    /// In text.
    #[default]
    Text,
    /// After ESC.
    Escape,
    /// After ESC and an intermediate byte.
    EscapeMore,
    /// In a control sequence.
    Control,
    /// In an operating system command.
    Osc,
    /// After an ESC in one: its end, when a backslash follows.
    OscEscape,
    /// In a string that says nothing to us: DCS, SOS, PM, APC.
    Other,
}

impl Scanner {
    /// A scanner at `offset`; marks are believed when they carry `nonce`.
    #[must_use]
    pub fn new(offset: u64, nonce: Option<&str>) -> Self {
        Self::restore(offset, nonce, ScanState::default())
    }

    /// A scanner that goes on from what another remembered.
    #[must_use]
    pub fn restore(offset: u64, nonce: Option<&str>, mut state: ScanState) -> Self {
        // What was stored may have been changed; the bounds hold all the same.
        state.pending.truncate(SEQUENCE_BYTES);
        state.titles.truncate(TITLES_MAX);
        state.from = state.from.min(offset);
        Self {
            at: offset,
            nonce: nonce.map(str::to_owned),
            state,
        }
    }

    /// What it remembers.
    #[must_use]
    pub fn state(&self) -> &ScanState {
        &self.state
    }

    /// The offset up to which bytes were taken in.
    #[must_use]
    pub fn offset(&self) -> u64 {
        self.at
    }

    /// The modes as they are now.
    #[must_use]
    pub fn modes(&self) -> Modes {
        self.state.private.modes()
    }

    /// The title as it is now.
    #[must_use]
    pub fn title(&self) -> &str {
        &self.state.title
    }

    /// Bytes up to `offset` are gone: a sequence they broke off is forgotten.
    pub fn skip_to(&mut self, offset: u64) {
        self.at = offset;
        self.state.place = SequenceState::Text;
        self.state.begin_sequence();
    }

    /// Takes in the next bytes; the marks that ended in them.
    pub fn feed(&mut self, bytes: &[u8]) -> Vec<LocatedEvent> {
        let mut marks = Vec::new();
        let mut at = 0;
        while at < bytes.len() {
            at = self.step(bytes, at, &mut marks);
        }
        self.at += bytes.len() as u64;
        marks
    }
}

impl ScanState {
    fn begin_sequence(&mut self) {
        self.pending.clear();
        self.overlong = false;
    }

    /// Sequences that set a real terminal's modes, cursor shape and title as they are here.
    pub(crate) fn paint(&self) -> String {
        let mut text = self.private.paint();
        text.push_str(&format!("\u{1b}[{} q", self.cursor_shape));
        if !self.title.is_empty() {
            text.push_str(&format!("\u{1b}]2;{}\u{7}", self.title));
        }
        text
    }
}

#[cfg(test)]
mod tests;
