//! The client of the daemon: HTTP and WebSocket over its Unix socket.

mod frames;
mod http;
mod interaction_socket;
mod retry;
mod silence;
mod websocket;

pub(crate) use frames::OutputFrames;
pub(crate) use http::{DaemonClient, DaemonResponse, RequestBody, number_in};
pub(crate) use interaction_socket::InteractionSocket;
pub(crate) use retry::{RetryLimit, is_daemon_exiting};
pub(crate) use silence::DaemonState;
pub(crate) use websocket::{SocketEvent, TerminalSocket};
