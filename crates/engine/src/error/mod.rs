//! The [`enum@Error`] of the engine: every way a request can fail, with its
//! [`ErrorCode`](ostler_model::ErrorCode) and hint. One enum per subject; nothing here knows the
//! modules that return them.

mod allow_list;
mod argument;
mod context;
mod engine_error;
mod hint;
mod interaction;
mod program;
mod project;
mod quota;
mod service;
mod storage_hint;

pub use allow_list::AllowListError;
pub use argument::ArgumentError;
pub use context::ContextError;
pub(crate) use engine_error::PLAN_STEP;
pub use engine_error::{Error, OPEN_FILES_HINT};
pub(crate) use interaction::retry_hint;
pub use interaction::{InteractionBound, InteractionError};
pub use program::ProgramError;
pub use project::ProjectError;
pub use quota::{
    HOLDER_COMMAND_CHARS, HOLDERS_LISTED_MAX, QuotaExceeded, QuotaHolder, WAITING_STARTS,
};
pub use service::ServiceError;
pub(crate) use service::describe_port_holder;
