//! HTTP: one file per resource, put together by [`router`].

mod caller;
mod event_stream;
mod events;
mod executions;
mod export;
mod extract;
mod health;
mod history;
mod in_flight;
mod interactions;
mod metrics;
mod observe;
mod output;
mod processes;
mod query;
mod raw;
mod response;
mod routes;
mod services;
mod shell;
mod small_body;
mod start_request;
mod state;
mod tasks;
mod terminal;
mod usage;
mod workspace;
mod ws;

pub use export::LOST_BYTES_HEADER;
pub(crate) use extract::BodyLimit;
pub use extract::REQUEST_BODY_BYTES;
pub use in_flight::count_in_flight;
pub use observe::{REQUEST_ID_HEADER, observe};
pub use routes::router;
pub use state::RestState;
