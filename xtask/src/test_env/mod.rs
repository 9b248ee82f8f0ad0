//! A test environment for the real binary: temporary directories, its processes found and killed by
//! pid, requests to its socket.

mod cli;
mod env;
mod http;
mod mcp;
mod mcp_http;
mod procs;

pub(crate) use cli::CliInfo;
pub(crate) use env::TestEnv;
pub(crate) use mcp::McpClient;
pub(crate) use mcp_http::{HttpMcpClient, HttpServer, ProtocolEra};
pub(crate) use procs::ProcessHandle;
