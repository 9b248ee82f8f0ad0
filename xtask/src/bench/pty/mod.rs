//! Terminal sessions: each figure beside a bare terminal, and the peers that are here.

mod dialogue;
mod echo;
mod late;
mod many;
mod parse;
mod peer;
mod raw;
mod shell;
mod stamp;
mod suite;

pub(crate) use stamp::{Stamps, stamp};
pub(super) use suite::ALL;
