//! The remote interfaces of the engine: REST over HTTP, and MCP over any byte stream.
//!
//! A face frames, identifies the caller, turns bodies into the engine's types and renders what
//! comes back; it decides nothing. Only this crate knows MCP and JSON schema, and inside it
//! only [`mcp`] knows the MCP library.
//!
//! * [`rest`]: one file per resource, [`rest::router`] puts them together.
//! * [`listen`]: serves a router on a Unix socket, with the peer's credential as identity.
//! * [`http`]: the network face: MCP and REST on TCP, with tokens and sessions.
//! * [`mcp`]: [`mcp::serve`] speaks MCP over any reader and writer; one file per tool.
//!
//! Output becomes text in [`ostler_render`]; `output_reader` reads journals for it. The bodies of
//! REST are [`ostler_api`]'s; `convert` makes them of the engine's types.
#![forbid(unsafe_code)]

mod convert;
mod egress_log;
pub mod error;
pub mod http;
pub mod listen;
pub mod mcp;
mod output_reader;
mod pagination;
mod params;
mod problem;
pub mod rest;

pub use convert::ensure_message;
