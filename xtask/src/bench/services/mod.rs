//! What services cost: the way from a listening socket to `ready`, a look at the sockets, a
//! hundred that are idle, and recognising one.

mod detection;
mod idle;
mod listen;
mod ready;
mod scan;
mod suite;

pub(crate) use listen::{ListenArgs, listen};
pub(super) use suite::ALL;
