//! Streamable HTTP, both protocol eras on one path.
//!
//! The library answers the requests (`endpoint`), whose bodies are checked first (`body_check`);
//! `batch` handles JSON-RPC batches. `sessions` keeps the sessions of the handshake era, so that the
//! embedding router is notified when one starts and ends, `streams` their response streams, and
//! `event_ids` what a client sends back to resume one. `delivered` keeps answers that a client may have
//! lost with its connection.

mod batch;
mod body_check;
mod config;
mod delivered;
mod endpoint;
mod event_ids;
mod sessions;
mod streams;

pub(super) use config::StreamableConfig;
#[cfg(feature = "conformance-fixtures")]
pub(super) use endpoint::streamable_over;
pub(super) use endpoint::{StreamableHttp, streamable};
