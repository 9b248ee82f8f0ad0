//! The history of executions: kept up to date beside the engine, and queried by the interfaces.

pub mod arguments;
mod service;
mod update_loop;
mod update_thread;

pub use service::{HISTORY_FILES_MIN, History, HistoryAnswer, HistoryFreshness, no_history};
