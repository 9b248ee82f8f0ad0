//! A screen as a fold of bytes and sizes, in the order of the journal's offsets.

use ostler_model::TermSize;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::avt::Avt;
use crate::control_sequences::{ScanState, Scanner};
use crate::emulator::{Emulator, EmulatorState};
use crate::modes::Modes;
use crate::shell::ShellState;
use crate::snapshot::{CursorPosition, ScreenSnapshot};
use crate::utf8::Utf8Remainder;

/// A screen, its title, its modes, and where its shell stands.
#[derive(Debug)]
pub struct Screen {
    emulator: Box<dyn Emulator>,
    scanner: Scanner,
    carry: Utf8Remainder,
    shell: ShellState,
    exact: bool,
}

/// A screen to go on from, small enough to be stored: what [`Screen::restore`] needs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checkpoint {
    /// Its format, now [`CHECKPOINT_VERSION`].
    pub version: u8,
    /// The journal's offset at which it stands.
    pub offset: u64,
    /// The size.
    pub size: TermSize,
    /// Text that brings a fresh emulator of this size here.
    pub dump: EmulatorState,
    /// Bytes of a character that is not complete.
    #[serde(default)]
    pub carry: Vec<u8>,
    /// The title, as [`Self::scanner`] has it.
    #[serde(default)]
    pub title: String,
    /// The modes, as [`Self::scanner`] has them.
    #[serde(default)]
    pub modes: Modes,
    /// What the scanner remembers: modes, titles, a sequence that is not complete.
    #[serde(default)]
    pub scan: ScanState,
    /// The shell.
    #[serde(default)]
    pub shell: ShellState,
    /// As [`ScreenSnapshot::exact`].
    pub exact: bool,
}

/// The version of [`Checkpoint`].
pub const CHECKPOINT_VERSION: u8 = 1;

/// A checkpoint that cannot be gone on from.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum CheckpointError {
    /// It is of another format.
    #[error("screen checkpoint of version {0}, which this program does not know")]
    Version(u8),
    /// Its size is none a screen can have.
    #[error("screen checkpoint of {cols} x {rows} cells")]
    Size {
        /// Columns.
        cols: u16,
        /// Rows.
        rows: u16,
    },
}

impl Screen {
    /// A blank screen at offset 0. `nonce` is the secret of its shell's marks, where it has an
    /// integrated shell: marks without it are not believed. A size that no terminal can have
    /// is cut to what is [fitting](TermSize::fitting).
    #[must_use]
    pub fn new(size: TermSize, nonce: Option<&str>) -> Self {
        Self {
            emulator: Box::new(Avt::new(size)),
            scanner: Scanner::new(0, nonce),
            carry: Utf8Remainder::default(),
            shell: ShellState::default(),
            exact: true,
        }
    }

    /// A blank screen at `offset`: a new terminal whose bytes begin there.
    #[must_use]
    pub fn starting_at(offset: u64, size: TermSize, nonce: Option<&str>) -> Self {
        Self {
            scanner: Scanner::new(offset, nonce),
            ..Self::new(size, nonce)
        }
    }

    /// The screen a checkpoint was made of.
    ///
    /// # Errors
    /// [`CheckpointError`].
    pub fn restore(checkpoint: &Checkpoint, nonce: Option<&str>) -> Result<Self, CheckpointError> {
        if checkpoint.version != CHECKPOINT_VERSION {
            return Err(CheckpointError::Version(checkpoint.version));
        }
        let size = checkpoint.size;
        if !size.is_fitting() {
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
            carry: Utf8Remainder::restored(&checkpoint.carry),
            shell: checkpoint.shell.clone(),
            exact: checkpoint.exact,
        })
    }

    /// Takes in bytes as the terminal gave them, cut anywhere.
    pub fn feed(&mut self, bytes: &[u8]) {
        for marked in self.scanner.feed(bytes) {
            self.shell.apply(&marked);
        }
        let emulator = &mut self.emulator;
        self.carry.decode(bytes, |text| emulator.feed(text));
    }

    /// The terminal changed its size.
    pub fn resize(&mut self, size: TermSize) {
        self.emulator.resize(size);
    }

    /// Bytes up to `offset` are gone: what follows is no longer exact.
    pub fn skip_to(&mut self, offset: u64) {
        if offset == self.offset() {
            return;
        }
        self.scanner.skip_to(offset);
        self.carry = Utf8Remainder::default();
        self.emulator.forget_incomplete();
        self.exact = false;
    }

    /// Its size.
    #[must_use]
    pub fn size(&self) -> TermSize {
        self.emulator.size()
    }

    /// The journal's offset up to which bytes were taken in.
    #[must_use]
    pub fn offset(&self) -> u64 {
        self.scanner.offset()
    }

    /// What the program asked of its terminal.
    #[must_use]
    pub fn modes(&self) -> Modes {
        self.scanner.modes()
    }

    /// Where its shell stands; [`ShellState::Unknown`] without integration.
    #[must_use]
    pub fn shell(&self) -> &ShellState {
        &self.shell
    }

    /// What is on it.
    #[must_use]
    pub fn view(&self) -> ScreenSnapshot {
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

    /// Something to go on from.
    #[must_use]
    pub fn checkpoint(&self) -> Checkpoint {
        Checkpoint {
            version: CHECKPOINT_VERSION,
            offset: self.offset(),
            size: self.emulator.size(),
            dump: self.emulator.dump(),
            carry: self.carry.bytes().to_vec(),
            title: self.scanner.title().to_owned(),
            modes: self.modes(),
            scan: self.scanner.state().clone(),
            shell: self.shell.clone(),
            exact: self.exact,
        }
    }

    /// Bytes that paint this screen onto a terminal of the same size: what somebody who
    /// attaches is sent first. What that terminal shows and its modes are reset before.
    /// Ends with what there is of a sequence or character that is not complete, so that the
    /// bytes that follow [`Screen::offset`] can be sent right after.
    #[must_use]
    pub fn repaint(&self) -> Vec<u8> {
        let painting = self.emulator.paint();
        let mut text = String::from(RESET);
        text.push_str(&painting.text);
        text.push_str(&self.scanner.state().paint());
        text.push_str(&painting.incomplete);
        let mut bytes = text.into_bytes();
        bytes.extend_from_slice(self.carry.bytes());
        bytes
    }
}

/// Leaves the alternate screen, resets what DECSTR resets, wraps at the margin, and clears.
const RESET: &str = "\x1b[?1047l\x1b[!p\x1b[?7h\x1b[m\x1b[H\x1b[2J";

#[cfg(test)]
mod tests;
