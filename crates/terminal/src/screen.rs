//! The screen: a fold of bytes and sizes, in the order of the journal's offsets.

use ostler_model::TermSize;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::avt::Avt;
use crate::control_sequences::{Scanner, ScannerState};
use crate::emulator::{Emulator, EmulatorState};
use crate::modes::Modes;
use crate::shell::ShellState;
use crate::snapshot::{CursorPosition, ScreenSnapshot};
use crate::utf8::Utf8Remainder;

/// A screen with its title, its modes and the state of its shell.
#[derive(Debug)]
pub struct Screen {
    emulator: Box<dyn Emulator>,
    scanner: Scanner,
    remainder: Utf8Remainder,
    shell: ShellState,
    exact: bool,
}

/// A stored state of a screen, small enough for disk: what [`Screen::restore`] needs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checkpoint {
    /// The version of the format: [`CHECKPOINT_VERSION`].
    pub version: u8,
    /// The journal offset of this state.
    pub offset: u64,
    /// The size.
    pub size: TermSize,
    /// A dump that brings a new emulator of this size to this state.
    pub dump: EmulatorState,
    /// The bytes of an incomplete character.
    #[serde(default)]
    pub carry: Vec<u8>,
    /// The title, as [`Scanner`] has it.
    #[serde(default)]
    pub title: String,
    /// The modes, as [`Scanner`] has them.
    #[serde(default)]
    pub modes: Modes,
    /// The scanner's state: modes, titles, an incomplete sequence.
    #[serde(default)]
    pub scan: ScannerState,
    /// The state of the shell.
    #[serde(default)]
    pub shell: ShellState,
    /// As [`ScreenSnapshot::exact`].
    pub exact: bool,
}

/// The version of [`Checkpoint`].
pub const CHECKPOINT_VERSION: u8 = 1;

/// Why a checkpoint cannot be restored.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum CheckpointError {
    /// It has another format version.
    #[error("screen checkpoint of version {0}, which this program does not know")]
    Version(u8),
    /// Its size is not allowed for a screen.
    #[error("screen checkpoint of {cols} x {rows} cells")]
    Size {
        /// Columns.
        cols: u16,
        /// Rows.
        rows: u16,
    },
}

impl Screen {
    /// A blank screen at offset 0. `nonce` is the nonce of its shell's marks, where it has an
    /// integrated shell: marks without it are ignored. A size that is not allowed is replaced by
    /// the nearest one that [is](TermSize::clamped).
    #[must_use]
    pub fn new(size: TermSize, nonce: Option<&str>) -> Self {
        Self {
            emulator: Box::new(Avt::new(size)),
            scanner: Scanner::new(0, nonce),
            remainder: Utf8Remainder::default(),
            shell: ShellState::default(),
            exact: true,
        }
    }

    /// A blank screen at `offset`: a new terminal whose output begins there.
    #[must_use]
    pub fn starting_at(offset: u64, size: TermSize, nonce: Option<&str>) -> Self {
        Self {
            scanner: Scanner::new(offset, nonce),
            ..Self::new(size, nonce)
        }
    }

    /// Restores the screen that a checkpoint was made of.
    ///
    /// # Errors
    /// When the checkpoint has another version or a size that is not allowed.
    pub fn restore(checkpoint: &Checkpoint, nonce: Option<&str>) -> Result<Self, CheckpointError> {
        if checkpoint.version != CHECKPOINT_VERSION {
            return Err(CheckpointError::Version(checkpoint.version));
        }
        let size = checkpoint.size;
        if !size.is_valid() {
            return Err(CheckpointError::Size {
                cols: size.cols,
                rows: size.rows,
            });
        }
        let mut emulator = Avt::new(size);
        emulator.load(&checkpoint.dump);
        Ok(Self {
            emulator: Box::new(emulator),
            scanner: Scanner::restore(checkpoint.offset, nonce, checkpoint.scan.clone()),
            remainder: Utf8Remainder::from_checkpoint(&checkpoint.carry),
            shell: checkpoint.shell.clone(),
            exact: checkpoint.exact,
        })
    }

    /// Consumes output of the terminal, split at any byte.
    pub fn feed(&mut self, bytes: &[u8]) {
        for event in self.scanner.feed(bytes) {
            self.shell.apply(&event);
        }
        let emulator = &mut self.emulator;
        self.remainder.decode(bytes, |text| emulator.feed(text));
    }

    /// Resizes the screen.
    pub fn resize(&mut self, size: TermSize) {
        self.emulator.resize(size);
    }

    /// Skips bytes up to `offset`, which are gone: the screen is no longer exact.
    pub fn skip_to(&mut self, offset: u64) {
        if offset == self.offset() {
            return;
        }
        self.scanner.skip_to(offset);
        self.remainder = Utf8Remainder::default();
        self.emulator.discard_incomplete();
        self.exact = false;
    }

    /// The size.
    #[must_use]
    pub fn size(&self) -> TermSize {
        self.emulator.size()
    }

    /// The journal offset after the last byte consumed.
    #[must_use]
    pub fn offset(&self) -> u64 {
        self.scanner.offset()
    }

    /// The modes that the program has set.
    #[must_use]
    pub fn modes(&self) -> Modes {
        self.scanner.modes()
    }

    /// The scanner of its output, after the last byte consumed.
    #[must_use]
    pub fn scanner(&self) -> &Scanner {
        &self.scanner
    }

    /// Whether no output before [`Screen::offset`] was skipped.
    #[must_use]
    pub fn is_exact(&self) -> bool {
        self.exact
    }

    /// The state of its shell; [`ShellState::Unknown`] without integration.
    #[must_use]
    pub fn shell(&self) -> &ShellState {
        &self.shell
    }

    /// A snapshot of the visible screen.
    #[must_use]
    pub fn snapshot(&self) -> ScreenSnapshot {
        let (col, row, visible) = self.emulator.cursor();
        ScreenSnapshot {
            size: self.emulator.size(),
            rows: self.emulator.rows(),
            cursor: CursorPosition { col, row, visible },
            title: self.scanner.title().to_owned(),
            alternate: self.emulator.is_alternate(),
            modes: self.modes(),
            offset: self.offset(),
            exact: self.exact,
        }
    }

    /// A checkpoint of the current state.
    #[must_use]
    pub fn checkpoint(&self) -> Checkpoint {
        Checkpoint {
            version: CHECKPOINT_VERSION,
            offset: self.offset(),
            size: self.emulator.size(),
            dump: self.emulator.dump(),
            carry: self.remainder.bytes().to_vec(),
            title: self.scanner.title().to_owned(),
            modes: self.modes(),
            scan: self.scanner.state(),
            shell: self.shell.clone(),
            exact: self.exact,
        }
    }

    /// Bytes that paint this screen onto a terminal of the same size: the first message to a client
    /// that attaches. They reset the terminal's content and modes before. They end with what there
    /// is of an incomplete sequence or character, so that the bytes from [`Screen::offset`] on can
    /// follow directly.
    #[must_use]
    pub fn repaint(&self) -> Vec<u8> {
        let repaint = self.emulator.repaint();
        let mut text = String::from(RESET);
        text.push_str(&repaint.text);
        text.push_str(&self.scanner.repaint());
        text.push_str(&repaint.incomplete);
        let mut bytes = text.into_bytes();
        bytes.extend_from_slice(self.remainder.bytes());
        bytes
    }
}

/// Leaves the alternate screen, soft-resets (DECSTR), enables wrapping, and clears the screen.
const RESET: &str = "\x1b[?1047l\x1b[!p\x1b[?7h\x1b[m\x1b[H\x1b[2J";

#[cfg(test)]
mod tests;
