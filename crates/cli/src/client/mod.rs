//! The client of the daemon: HTTP over its Unix socket.

mod frames;
mod http;

pub(crate) use frames::Frames;
pub(crate) use http::{Answer, Body, Client};
