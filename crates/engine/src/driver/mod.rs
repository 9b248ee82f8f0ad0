//! The driver: the one task of an execution, which performs what the supervisor decides and
//! publishes the state.

mod disk_quota;
mod effects;
mod event_loop;
mod freeze;
mod input_queue;
mod mirror;
mod output_readers;
mod recorder;
mod resize;
pub(crate) mod run_totals;
mod service_monitor;
mod trim;

pub(crate) use event_loop::{Driver, DriverInit};
