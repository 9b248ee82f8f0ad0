//! A terminal over a WebSocket: `GET /api/v1/executions/{id}/terminal`.
//!
//! One task per connection with two halves that never wait for each other: [`eyes`] show the
//! terminal, [`hands`] do what the client says. The lease lives in the hands, so it ends with
//! the connection. What is said is in [`wire::socket`](crate::wire::socket).

mod enter;
mod eyes;
mod hands;
mod spot;

pub(super) use enter::attach;
