//! The driver: the one task of an execution, which performs what the supervisor decides and
//! publishes the state.

mod disk_quota;
mod effects;
mod event_loop;
mod freeze;
mod input_queue;
mod mirror;
mod output_readers;
mod pattern_wait;
pub(crate) mod prompt_wait;
mod recorder;
mod resize;
mod service_monitor;
mod trim;
pub(crate) mod wait;

pub(crate) use event_loop::{Driver, DriverCommand, DriverInit};
pub(crate) use freeze::FreezeRequest;
pub(crate) use input_queue::{InputWrite, ProgressReply, WriteKind, WriteResult};
