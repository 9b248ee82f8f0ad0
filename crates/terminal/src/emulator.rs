//! The interface to the terminal emulator.

use ostler_model::TermSize;
use serde::{Deserialize, Serialize};

/// A grid of cells that control sequences are applied to.
pub trait Emulator: Send + std::fmt::Debug {
    /// Applies text and control sequences.
    fn feed(&mut self, text: &str);
    /// Changes the size as a terminal does, cut to the nearest [allowed](TermSize::clamped) one.
    fn resize(&mut self, size: TermSize);
    /// The size.
    fn size(&self) -> TermSize;
    /// The visible rows without trailing blanks.
    fn rows(&self) -> Vec<String>;
    /// The cursor's column and row, from 0, and whether it is visible. A cursor behind the last
    /// column, about to wrap, is reported in the last column.
    fn cursor(&self) -> (u16, u16, bool);
    /// Whether the alternate screen is active.
    fn is_alternate(&self) -> bool;
    /// A dump that brings a new emulator of the same size to the same visible state: both screens,
    /// cursor, modes and an incomplete sequence.
    fn dump(&self) -> EmulatorState;
    /// Loads a dump into a new emulator.
    fn load(&mut self, dump: &EmulatorState);
    /// Drops an incomplete sequence: its rest will never come.
    fn discard_incomplete(&mut self);
    /// Sequences that paint this state onto a real terminal of the same size that shows a blank
    /// primary screen and has its modes reset, and an incomplete sequence.
    fn repaint(&self) -> Repaint;
}

/// The state of an emulator as text.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct EmulatorState {
    /// Text and control sequences, in the dialect of the emulator.
    pub text: String,
    /// Stand-in characters in `text`, and the clusters that they stand for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub clusters: Vec<(char, String)>,
}

/// What is sent to a real terminal to repaint it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Repaint {
    /// Text and control sequences that paint.
    pub text: String,
    /// The beginning of an incomplete sequence; to be sent last.
    pub incomplete: String,
}
