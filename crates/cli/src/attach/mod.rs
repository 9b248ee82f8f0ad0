//! Our terminal as a window onto a session's.
//!
//! * [`session`]: from the first connection to the end, over as many daemons as it takes.
//! * `connection`: one connection.
//! * `input_gate`: whether what is typed goes to the session. Pure.
//! * `tty`: our terminal: raw mode, and everything put back on the way out.
//! * `mode_tracker`: what the session's program asked of our terminal. Pure.
//! * `key_parser`: what is typed, between the detach key and the session. Pure.

mod connection;
mod input_gate;
mod key_parser;
mod mode_tracker;
mod session;
mod signals;
mod tty;

pub(crate) use key_parser::{DETACH_KEY, DetachKey};
pub(crate) use session::{AttachOptions, InitialView, attach};
pub(crate) use tty::window_size;
