//! What a terminal is, without having one: a screen folded from bytes, keys as the bytes a
//! terminal sends, the marks of a shell that tells where commands begin and end.
//!
//! Everything here is pure: no files, no clock, no processes. The emulator behind [`Screen`]
//! stands behind the trait [`Emulator`](emulator::Emulator), so that it can be replaced.
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
