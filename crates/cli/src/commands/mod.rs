//! One file per verb.

pub(crate) mod attach;
pub(crate) mod clear;
pub(crate) mod completions;
pub(crate) mod config;
mod dispatch;
pub(crate) mod exec;
pub(crate) mod export;
mod follow;
pub(crate) mod ids;
pub(crate) mod info;
pub(crate) mod kill;
pub(crate) mod logs;
pub(crate) mod mcp;
mod parse;
mod passthrough;
pub(crate) mod ps;
pub(crate) mod resize;
pub(crate) mod rm;
pub(crate) mod run;
pub(crate) mod screen;
pub(crate) mod send;
pub(crate) mod serve;
pub(crate) mod shell;
pub(crate) mod shutdown;
mod start;
pub(crate) mod stop;
pub(crate) mod token;
pub(crate) mod version;
pub(crate) mod wait;

pub(crate) use dispatch::run;
pub(crate) use follow::Attempts;
pub(crate) use passthrough::{end as passed, feed};
