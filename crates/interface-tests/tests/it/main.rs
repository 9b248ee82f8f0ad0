//! The remote interfaces as clients see them: REST and MCP over HTTP as the daemon mounts them, MCP
//! over any byte stream. Real commands run behind them.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod common;
mod http_batches;
mod http_notifications;
mod listening;
mod logs;
mod mcp_calls;
mod mcp_core;
mod mcp_http;
mod mcp_notifications;
mod mcp_protocol;
mod mcp_pty;
mod mcp_resources;
mod mcp_service;
mod mcp_shell;
mod mcp_tools;
mod rest;
mod rest_services;
mod rest_terminal;
mod socket;
mod sse;
mod web;
