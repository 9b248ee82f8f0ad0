//! The client of a container engine: finding it, its requests with their time limits, its errors.

mod api_version;
mod client;
mod connection;
mod discovery;
mod error;
mod facts;
mod init_output;
mod tolerant;

pub(crate) use client::EngineClient;
pub(crate) use connection::{ContainerStatus, EngineConnection, ListedContainer, LocalImage};
pub use discovery::EngineDiscovery;
pub(crate) use error::{EngineError, shortened};
pub use facts::{EngineFacts, EngineKind};
pub(crate) use init_output::InitOutput;
