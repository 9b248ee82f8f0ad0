//! The beginnings of session names that are generated, which no client over HTTP may choose.

/// Of the session of a stdio proxy, which ends with that process.
pub(super) const STDIO_PREFIX: &str = "front-";
/// Of the own session of an MCP session.
pub(super) const MCP_PREFIX: &str = "mcp-";
/// Of the own session of a stream of HTTP+SSE.
pub(super) const SSE_PREFIX: &str = "sse-";
/// All of them.
pub(super) const RESERVED_PREFIXES: [&str; 3] = [STDIO_PREFIX, MCP_PREFIX, SSE_PREFIX];
