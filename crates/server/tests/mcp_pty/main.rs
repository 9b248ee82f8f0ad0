//! Profile `pty`: terminal sessions through whole conversations.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

#[path = "../common/mod.rs"]
mod common;

mod agent;
mod errors;
mod offered;
mod programs;
mod screens;
mod sessions;
mod shells;
