//! Every tool, one folder per profile and one file per tool. Tools speak in
//! [`Reply`](super::reply::Reply) and [`Failure`](crate::error::Failure) and never see the MCP
//! library.

mod command;
mod core;
mod ends;
mod interaction;
mod listing;
mod offered;
mod pty;
mod registry;
mod service;
mod shell;
mod walls;

pub(super) use offered::of;
pub(super) use registry::{Answer, Definition, call};
