//! One file per verb.

pub(crate) mod clear;
pub(crate) mod completions;
pub(crate) mod config;
mod dispatch;
pub(crate) mod export;
mod follow;
mod ids;
pub(crate) mod info;
pub(crate) mod kill;
pub(crate) mod logs;
pub(crate) mod mcp;
mod parse;
mod passthrough;
pub(crate) mod ps;
pub(crate) mod rm;
pub(crate) mod run;
pub(crate) mod serve;
pub(crate) mod shutdown;
pub(crate) mod stop;
pub(crate) mod token;
pub(crate) mod version;
pub(crate) mod wait;

pub(crate) use dispatch::run;
