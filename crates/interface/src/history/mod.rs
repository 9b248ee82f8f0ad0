//! The history of executions: kept up to date beside the engine, and queried by the interfaces.

pub mod arguments;
mod service;
mod update_loop;

pub use service::{History, HistoryAnswer};
