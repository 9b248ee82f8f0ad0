//! Helpers for tests. Nothing here may prove a behaviour claimed of the public interface: that
//! takes real processes.
#![forbid(unsafe_code)]

pub mod fake_backend;
pub mod fake_containers;

pub use fake_backend::{FakeBackend, SpawnBehavior};
