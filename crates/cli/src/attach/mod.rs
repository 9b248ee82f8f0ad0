//! Our terminal as a window onto a session's.
//!
//! * [`session`]: from the first connection to the end, over as many daemons as it takes.
//! * `talk`: one connection.
//! * `turn`: whether what is typed goes to the session. Pure.
//! * `window`: our terminal: raw mode, and everything put back on the way out.
//! * `modes`: what the session's program asked of our terminal. Pure.
//! * `keys`: what is typed, between the detach key and the session. Pure.

mod keys;
mod modes;
mod session;
mod signals;
mod talk;
mod turn;
mod window;

pub(crate) use keys::{DETACH_KEY, DetachKey};
pub(crate) use session::{Begin, Wish, attach};
pub(crate) use window::window_size;
