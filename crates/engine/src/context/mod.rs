//! Contexts: a directory with options, variables and secrets that executions of one project and
//! user share. They are created once, used again while they are warm, and end with their files.
//!
//! [`ContextManager`] is above executions: it completes the requests of starts and passes them on.
//! What it knows of executions is which context each one uses, by id, in [`ContextTable`].

mod context_use;
mod directory;
mod execution_uses;
mod info;
mod ledger_entry;
mod manager;
mod record;
mod request;
mod start_checks;
mod store;
mod table;
mod work;

pub use info::ContextInfo;
pub(crate) use manager::ContextManager;
pub use request::ContextRequest;
pub(crate) use table::ContextTable;
