//! Long calls: progress, cancellation, tasks and questions, over raw JSON streams of both protocol
//! eras.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

#[path = "../common/mod.rs"]
mod common;
#[path = "../web/mod.rs"]
mod web;

mod cancel;
mod elicit;
mod http;
mod progress;
mod sync;
mod tasks;
mod wire;
