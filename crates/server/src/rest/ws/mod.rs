//! A terminal over a WebSocket: `GET /api/v1/executions/{id}/terminal`.
//!
//! One task per connection with two halves that never wait for each other: [`sender`] show the
//! terminal, [`receiver`] do what the client says. The lease lives in the hands, so it ends with
//! the connection. What is said is in [`from_json::socket`](crate::from_json::socket).

mod receiver;
mod sender;
mod session;
mod upgrade;

pub(super) use upgrade::attach;
