//! The one task of an execution: it carries out what the supervisor decides, and tells.

mod act;
mod input;
mod mirror;
mod prompt;
mod record;
mod run;
mod trim;
pub(crate) mod wait;

pub(crate) use input::Write;
pub(crate) use run::{Ask, Driver, Errand};
