//! Benchmarks. Every figure is a ratio against a baseline of the same run, measured in interleaved
//! rounds, the first of which is discarded; the table names the machine.

mod baseline;
mod concurrency;
mod containers;
mod context;
mod echo;
mod engine;
mod followers;
mod history;
mod isolation;
mod journal;
mod line_process;
mod logs;
mod machine;
mod monitor;
mod output;
mod postgres;
mod pty;
mod report;
mod retained_memory;
mod run;
mod services;
mod start;
mod stats;
mod ticker;
mod transports;

pub(crate) use pty::{StampArgs, stamp};
pub(crate) use run::{BenchArgs, run};
pub(crate) use services::{ListenArgs, listen};
pub(crate) use ticker::{TickArgs, tick};
