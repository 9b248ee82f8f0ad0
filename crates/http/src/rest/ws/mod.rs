//! WebSockets: a terminal, `GET /api/v1/executions/{id}/terminal`; the events of a task,
//! `GET /api/v1/tasks/{id}/events`, which [`task`] sends; interactions,
//! `GET /api/v1/interactions/events`, which [`interactions`] serves.
//!
//! A terminal has one task per connection with two halves that never wait for each other: [`sender`] sends output
//! and state, [`receiver`] carries out the client's messages. The receiver owns the lease, so it
//! ends with the connection. The messages are in [`wire::websocket`](crate::wire::websocket).

mod connection;
mod interactions;
mod receiver;
mod sender;
mod session;
mod task;
mod upgrade;

pub(super) use connection::UpgradeRequest;
pub(super) use interactions::serve_interactions;
pub(super) use task::send_task_events;
pub(super) use upgrade::attach;
