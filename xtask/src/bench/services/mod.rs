//! The cost of services: from a listening socket to `ready`, a scan of the sockets, a hundred idle
//! services, and detection.

mod detection;
mod idle;
mod listen;
mod ready;
mod scan;
mod suite;

pub(crate) use listen::{ListenArgs, listen};
pub(super) use suite::ALL;
