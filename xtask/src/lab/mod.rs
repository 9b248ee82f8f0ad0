//! A place of its own for the real binary: temporary directories, its processes found and
//! killed by id, its socket spoken to.

mod cli;
mod home;
mod http;
mod mcp;
mod mcp_http;
mod procs;

pub(crate) use cli::Info;
pub(crate) use home::Lab;
pub(crate) use mcp::Mcp;
pub(crate) use mcp_http::{Era, HttpMcp, Served};
pub(crate) use procs::Proc;
