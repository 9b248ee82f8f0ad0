//! What the remote interfaces share: conversions between the engine's types and those of the API,
//! parameters as data, errors, pages of lists, reads of output.
//!
//! * [`convert`]: the engine's types as bodies of [`ostler_api`], and requests back.
//! * [`params`]: one table per tool or route, with its schema, validation and errors.
//! * [`cursor_argument`], [`past_time`]: the parameters that several tools and routes share.
//! * [`error`]: every error as `{code, message, hint, retryable}`.
//! * [`pagination`], [`output_reader`], [`egress_log`]: lists, output and decisions in pages.
//! * [`history`]: the history of executions, kept up to date and queried.
//! * [`templates`]: command templates, and starts that are made from them.
//! * [`project_access`]: what the scopes of a token permit in projects;
//!   [`project_history`]: the history as one sees it who is limited to some.
//! * [`http`]: identities, problem documents and limits of what is served over HTTP.
#![forbid(unsafe_code)]

pub mod convert;
pub mod cursor_argument;
pub mod egress_log;
pub mod error;
pub mod history;
pub mod http;
pub mod output_reader;
pub mod pagination;
pub mod params;
pub mod past_time;
pub mod project_access;
pub mod project_history;
pub mod templates;
