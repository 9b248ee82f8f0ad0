//! The tool of profile `service` (E, F2): servers and watchers by name, in the words of
//! document 004; and what the tools that start commands need to run one as a service.

mod automatic;
mod begin;
mod body;
mod change;
mod launch;
mod look;
mod offered;
mod outcome;
mod ready;
mod request;
mod tool;

pub(super) use automatic::{Way, one_shot, recognised};
pub(super) use body::{ServiceBody, name};
pub(super) use launch::{Launched, launch};
pub(super) use offered::TOOLS;
pub(super) use outcome::failed_to_start;
