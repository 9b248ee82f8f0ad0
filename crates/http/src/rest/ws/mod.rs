//! A terminal over a WebSocket: `GET /api/v1/executions/{id}/terminal`.
//!
//! One task per connection with two halves that never wait for each other: [`sender`] sends output
//! and state, [`receiver`] carries out the client's messages. The receiver owns the lease, so it
//! ends with the connection. The messages are in [`wire::websocket`](crate::wire::websocket).

mod receiver;
mod sender;
mod session;
mod upgrade;

pub(super) use upgrade::attach;
