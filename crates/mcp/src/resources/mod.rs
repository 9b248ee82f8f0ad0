//! `proc://…`: executions and their output as resources, with templates and completion.
//!
//! A resource is named by a URI (`uri`), found in lists and by completion (`list`), and read
//! (`read`, `log`). All of them see what the caller sees; unknown and foreign resources get the
//! same error.

mod list;
mod log;
mod log_query;
mod read;
mod uri;

pub(super) use list::{complete, list, templates};
pub(super) use read::read;
pub(super) use uri::{ResourceTarget, UriError, log_link, quota_error};
