//! The start of an execution: from a request to a running driver.

mod guard;
mod launch;
mod queue;

pub use guard::StartGuard;
pub(crate) use launch::{ApprovalMode, Launcher, find_existing_after_starts};
pub use queue::QUEUE_WAIT_MS;
pub(crate) use queue::StartAdmission;
