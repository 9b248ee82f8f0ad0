//! The one task of an execution: it carries out what the supervisor decides, and tells.

mod act;
mod disk;
mod freeze;
mod input;
mod lookout;
mod mirror;
mod pattern;
pub(crate) mod prompt;
mod readers;
mod record;
mod resize;
mod run;
mod trim;
pub(crate) mod wait;

pub(crate) use freeze::Freeze;
pub(crate) use input::{ProgressAnswer, Purpose, Taken, Write};
pub(crate) use run::{Ask, Driver, Errand};
