//! The one task of an execution: it carries out what the supervisor decides, and tells.

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
