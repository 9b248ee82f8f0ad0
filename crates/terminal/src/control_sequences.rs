//! Control sequences that carry information rather than paint: the title, modes, the shell marks
//! of OSC 133 and the working directory of OSC 7, each with its position in the stream.

mod events;
mod scanner_state;

use std::fmt;

use ostler_escape::EscapeParser;

use crate::modes::Modes;

pub use self::scanner_state::ScannerState;
use self::scanner_state::TerminalState;

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

/// The longest title in bytes; the rest is cut off.
pub const TITLE_BYTES: usize = 1024;

/// The most titles on the title stack (`CSI 22 t`).
const TITLES_MAX: usize = 10;

/// Finds control events in a stream split at any byte. Sequences that are longer than
/// [`ostler_escape::SEQUENCE_BYTES`] are skipped.
#[derive(Clone, Default)]
pub struct Scanner {
    nonce: Option<String>,
    parser: EscapeParser,
    terminal: TerminalState,
}

impl fmt::Debug for Scanner {
    // The nonce is a secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scanner")
            .field("nonce", &self.nonce.is_some())
            .field("parser", &self.parser)
            .field("terminal", &self.terminal)
            .finish()
    }
}

impl Scanner {
    /// A scanner at `offset`; marks are believed if they carry `nonce`.
    #[must_use]
    pub fn new(offset: u64, nonce: Option<&str>) -> Self {
        Self::restore(offset, nonce, ScannerState::default())
    }

    /// A scanner that continues from a stored state.
    #[must_use]
    pub fn restore(offset: u64, nonce: Option<&str>, state: ScannerState) -> Self {
        let (parser, terminal) = state.restore(offset);
        Self {
            nonce: nonce.map(str::to_owned),
            parser,
            terminal,
        }
    }

    /// The state to be stored.
    #[must_use]
    pub fn state(&self) -> ScannerState {
        ScannerState::new(&self.parser, &self.terminal)
    }

    /// The offset after the last byte consumed.
    #[must_use]
    pub const fn offset(&self) -> u64 {
        self.parser.offset()
    }

    /// The current modes.
    #[must_use]
    pub fn modes(&self) -> Modes {
        self.terminal.private.modes()
    }

    /// The current title.
    #[must_use]
    pub fn title(&self) -> &str {
        &self.terminal.title
    }

    /// Sequences that set a real terminal's modes, cursor shape and title to these.
    pub(crate) fn repaint(&self) -> String {
        self.terminal.repaint()
    }

    /// Skips bytes up to `offset`, which are gone: a sequence they cut off is dropped.
    pub fn skip_to(&mut self, offset: u64) {
        self.parser = EscapeParser::new(offset);
    }

    /// Consumes the next bytes and returns the events that ended in them.
    pub fn feed(&mut self, bytes: &[u8]) -> Vec<LocatedEvent> {
        let Self {
            nonce,
            parser,
            terminal,
        } = self;
        let nonce = nonce.as_deref();
        let mut events = Vec::new();
        parser.advance(bytes, |escape, range| {
            let event = terminal.apply(escape, nonce);
            events.extend(event.map(|event| LocatedEvent {
                from: range.start,
                to: range.end,
                event,
            }));
        });
        events
    }
}

#[cfg(test)]
mod tests;
