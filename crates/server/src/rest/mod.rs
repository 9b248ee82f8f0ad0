//! HTTP: one file per resource, put together by [`router`].

mod answer;
mod caller;
mod counted;
mod events;
mod executions;
mod export;
mod extract;
mod health;
mod interactions;
mod output;
mod processes;
mod query;
mod raw;
mod routes;
mod services;
mod shell;
mod socket;
mod state;
mod terminal;
mod walls;
mod workspace;

pub use caller::SESSION_HEADER;
pub(crate) use caller::session_name;
pub use counted::counted;
pub use export::LOST_BYTES;
pub(crate) use extract::BodyLimit;
pub use routes::{REQUEST_BODY_BYTES, router};
pub use state::RestState;
