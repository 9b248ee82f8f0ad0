//! Wake-up (F8): what happened to an agent's commands and has not been told to it yet.
//!
//! One task per [`Desk`](super::Desk) hears every event of the engine (`feed`) and puts what
//! matters on the board: one bounded queue per session (`session`). From there it goes out as
//! a line on the next tool answer, as log messages and as resource updates; the latter two
//! only look at the board when it changed, so that a client that does not read costs nothing.

mod board;
mod feed;
mod item;
mod session;
mod watching;

pub(super) use board::{Attending, News, Signal};
pub(super) use item::Item;
