//! The client of the daemon: HTTP and WebSocket over its Unix socket.

mod frames;
mod http;
mod socket;

pub(crate) use frames::Frames;
pub(crate) use http::{Answer, Body, Client};
pub(crate) use socket::{Heard, Socket};
