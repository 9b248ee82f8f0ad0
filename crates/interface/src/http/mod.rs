//! What REST and MCP over HTTP share: identities, problem documents, limits.

mod access_end;
mod body_encoding;
mod body_limit;
mod guarded_body;
mod identity;
mod problem;
mod project_name;
mod session_name;
mod session_uses;

pub use access_end::AccessEnd;
pub use body_encoding::encoding_problem;
pub use body_limit::{BODY_BYTES, too_large};
pub use guarded_body::hold_until_sent;
pub use identity::{HttpIdentity, identity};
pub use problem::{HttpProblem, SentProblem};
pub use project_name::PROJECT_HEADER;
pub use session_name::{SESSION_HEADER, parse_session_name, requested_session};
pub use session_uses::{SessionUseGuard, SessionUses};
