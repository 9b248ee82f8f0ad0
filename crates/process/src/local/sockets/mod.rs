//! Listening sockets: what the kernel tells of them, whose they are, how they are dialled.

mod diag;
mod dial;
mod holders;
mod listing;
mod tables;

pub(super) use dial::dial;
pub(super) use holders::holders;
pub(super) use listing::{Asked, Found, Memory, look};
pub(super) use tables::{Inside, Tables};
