//! Helpers for tests. Nothing here may prove a behaviour claimed of the public interface: that
//! takes real processes.
#![forbid(unsafe_code)]

pub mod scripted;

pub use scripted::{Act, Scripted};
