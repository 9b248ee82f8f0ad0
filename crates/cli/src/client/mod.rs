//! The client of the daemon: HTTP and WebSocket over its Unix socket.

mod attempts;
mod frames;
mod http;
mod socket;

pub(crate) use attempts::{Attempts, is_leaving};
pub(crate) use frames::Frames;
pub(crate) use http::{Answer, Body, Client};
pub(crate) use socket::{Heard, Socket};
