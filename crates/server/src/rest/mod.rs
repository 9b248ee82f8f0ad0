//! HTTP: one file per resource, put together by [`router`].

mod caller;
mod events;
mod executions;
mod export;
mod extract;
mod health;
mod in_flight;
mod interactions;
mod output;
mod processes;
mod query;
mod raw;
mod response;
mod routes;
mod services;
mod shell;
mod state;
mod terminal;
mod usage;
mod workspace;
mod ws;

pub use caller::SESSION_HEADER;
pub(crate) use caller::parse_session_name;
pub use export::LOST_BYTES_HEADER;
pub(crate) use extract::BodyLimit;
pub use in_flight::count_in_flight;
pub use routes::{REQUEST_BODY_BYTES, router};
pub use state::RestState;
