//! The attach client: the local terminal as a window onto that of a session.
//!
//! * [`session`]: from the first connection to the end, across daemon restarts.
//! * `connection`: one connection.
//! * `input_gate`: whether typed keys go to the session. Pure.
//! * `tty`: the local terminal: raw mode, and its restoration.
//! * `mode_tracker`: the terminal modes that the session's program has set. Pure.
//! * `key_parser`: typed keys: the detach key, and input of the session. Pure.

mod connection;
mod input_gate;
mod key_parser;
mod mode_tracker;
mod session;
mod signals;
mod tty;

pub(crate) use key_parser::{DETACH_KEY, DetachKey};
pub(crate) use session::{AttachOptions, InitialView, attach};
pub(crate) use signals::stop_self;
pub(crate) use tty::{Tty, is_stdin_terminal, window_size};
