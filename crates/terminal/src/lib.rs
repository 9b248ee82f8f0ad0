//! What a terminal is, without having one: a screen folded from bytes, keys as the bytes a
//! terminal sends, the marks of a shell that tells where commands begin and end.
//!
//! Everything here is pure: no files, no clock, no processes. The emulator behind [`Screen`]
//! stands behind the trait [`Emulator`](emulator::Emulator), so that it can be replaced.
#![forbid(unsafe_code)]

pub mod answers;
mod avt;
mod clusters;
pub mod emulator;
pub mod input;
pub mod key;
pub mod marks;
pub mod modes;
pub mod screen;
pub mod shell;
mod utf8;
pub mod view;

pub use input::{Piece, encode};
pub use key::{Key, KeyError};
pub use marks::{Mark, Marked, Scanner};
pub use modes::Modes;
pub use screen::{Checkpoint, CheckpointError, Screen};
pub use shell::ShellState;
pub use view::{CursorAt, View};
