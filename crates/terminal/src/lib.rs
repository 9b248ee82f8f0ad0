//! A terminal without a device: a screen folded from bytes, keys encoded as the bytes a terminal
//! sends, and the marks by which a shell reports the beginning and the end of commands.
//!
//! Everything here is pure: no files, no clock, no processes. The emulator of [`Screen`] is behind
//! the trait [`Emulator`](emulator::Emulator), so that it can be replaced.
#![forbid(unsafe_code)]

mod avt;
pub mod control_sequences;
pub mod device_reports;
pub mod emulator;
mod graphemes;
pub mod input;
pub mod key;
pub mod modes;
pub mod screen;
pub mod shell;
pub mod snapshot;
mod utf8;

pub use control_sequences::{ControlEvent, LocatedEvent, Scanner};
pub use input::{InputPiece, encode};
pub use key::{Key, KeyError};
pub use modes::Modes;
pub use screen::{Checkpoint, CheckpointError, Screen};
pub use shell::ShellState;
pub use snapshot::{CursorPosition, ScreenSnapshot};
