//! Containers: a backend whose executions may run in containers of a Docker-compatible engine.
//!
//! [`ContainerBackend`] wraps the local backend. It decides *which container* a plan runs in, makes
//! it or finds a warm one, and passes the plan on with the container as its attachment; shims then
//! run the attempt in there, and everything that a backend promises of a running attempt stays the
//! local backend's (`docs/design/037-containers.md`).
//!
//! * `engine`: finding an engine, and the requests to it;
//! * `pool`: warm containers: which one serves a start (pure), making, adopting and removing them;
//! * `container_config`: the configuration of a container (pure);
//! * `image`: images, and the state of the engine;
//! * `init_program`: the static program inside, embedded.
//!
//! Must never know of shims, journals, processes, services, owners or HTTP to clients, and never
//! read the environment.
#![forbid(unsafe_code)]

mod backend;
mod capabilities;
mod container_config;
mod engine;
mod events;
#[cfg(test)]
mod fake_engine;
#[cfg(test)]
mod fixtures;
mod host_paths;
mod identity;
mod image;
mod init_program;
mod pool;
mod reference;
mod state_dirs;

pub use backend::{ContainerBackend, ContainerOpenError};
pub use engine::{EngineDiscovery, EngineFacts, EngineKind};
pub use image::{BuildRequest, EngineStatus, ImageError, ImageStore, ImageSummary, ProgressSink};
pub use pool::ContainerFacts;
