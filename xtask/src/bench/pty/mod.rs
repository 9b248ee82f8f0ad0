//! Terminal sessions: each figure compared with a raw terminal, and with installed peers.

mod dialogue;
mod echo;
mod event_latency;
mod parse;
mod peers;
mod raw_pty;
mod session_memory;
mod shell;
mod suite;
mod timestamps;

pub(super) use suite::ALL;
pub(crate) use timestamps::{StampArgs, stamp};
