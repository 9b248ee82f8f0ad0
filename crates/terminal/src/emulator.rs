//! The border to the terminal emulator.

use ostler_model::TermSize;
use serde::{Deserialize, Serialize};

/// A grid of cells that control sequences are applied to.
pub trait Emulator: Send + std::fmt::Debug {
    /// Applies text and control sequences.
    fn feed(&mut self, text: &str);
    /// Changes the size as a terminal does, cut to what is [fitting](TermSize::fitting).
    fn resize(&mut self, size: TermSize);
    /// Its size.
    fn size(&self) -> TermSize;
    /// The visible rows, trailing blanks cut.
    fn rows(&self) -> Vec<String>;
    /// The cursor's column and row, from 0, and whether it is shown. A cursor that stands
    /// behind the last column, about to wrap, is told to stand in the last column.
    fn cursor(&self) -> (u16, u16, bool);
    /// Whether the alternate screen is shown.
    fn is_alternate(&self) -> bool;
    /// What brings an emulator of the same size, fresh from its making, to what is visible
    /// here: both screens, cursor, modes and a sequence that is not complete.
    fn dump(&self) -> EmulatorState;
    /// Takes in a dump; on an emulator fresh from its making.
    fn load(&mut self, dump: &EmulatorState);
    /// Forgets a sequence that is not complete: its rest will never come.
    fn forget_incomplete(&mut self);
    /// Sequences that paint this onto a real terminal of the same size that shows a blank
    /// primary screen and has its modes reset, and a sequence that is not complete.
    fn paint(&self) -> Repaint;
}

/// What an emulator is, as text.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct EmulatorState {
    /// Text and control sequences, in the emulator's own dialect.
    pub text: String,
    /// Characters in `text` that stand for several in one cell, with what they stand for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub clusters: Vec<(char, String)>,
}

/// What is sent to a real terminal.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Repaint {
    /// Text and control sequences that paint.
    pub text: String,
    /// The beginning of a sequence whose rest is still to come; to be sent last.
    pub incomplete: String,
}
