//! Measurements. Every figure is a ratio taken in one run against a floor, in interleaved
//! rounds, the first of them thrown away; the table names the machine.

mod echo;
mod engine;
mod faces;
mod floor;
mod isolation;
mod journal;
mod kept;
mod logs;
mod machine;
mod many;
mod orders;
mod output;
mod pty;
mod report;
mod run;
mod services;
mod start;
mod stats;
mod tick;

pub(crate) use pty::{Stamps, stamp};
pub(crate) use run::{Args, run};
pub(crate) use services::{Listens, listen};
pub(crate) use tick::{Ticks, tick};
