//! Tests of the remote interfaces, `tests/it`: they need both [`ostler_http`] and [`ostler_mcp`],
//! which do not know each other.
#![forbid(unsafe_code)]
