//! The verbs, one file each.

pub(crate) mod approve;
pub(crate) mod args;
pub(crate) mod attach;
mod attached_run;
pub(crate) mod clear;
pub(crate) mod complete;
pub(crate) mod completions;
pub(crate) mod config;
mod dispatch;
pub(crate) mod doctor;
pub(crate) mod events;
pub(crate) mod exec;
pub(crate) mod export;
pub(crate) mod info;
mod interrupt_handler;
pub(crate) mod isolation_args;
pub(crate) mod kill;
pub(crate) mod logs;
pub(crate) mod mcp;
mod output_tail;
pub(crate) mod pause;
pub(crate) mod policy;
pub(crate) mod ps;
pub(crate) mod resize;
pub(crate) mod restart;
pub(crate) mod resume;
pub(crate) mod rm;
pub(crate) mod run;
pub(crate) mod screen;
pub(crate) mod send;
pub(crate) mod serve;
pub(crate) mod service;
pub(crate) mod shell;
pub(crate) mod shutdown;
mod start;
pub(crate) mod stats;
pub(crate) mod stop;
pub(crate) mod token;
mod value_parsers;
pub(crate) mod version;
pub(crate) mod wait;
mod watch;
pub(crate) mod workspace;

pub(crate) use dispatch::run;

use crate::executions::{id_alias, ids, refused_hosts};
