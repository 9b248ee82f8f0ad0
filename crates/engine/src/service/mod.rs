//! Services by name: definitions, ensure, dependencies, ports, why (E6–E8).
//!
//! A service is an execution that is meant to stay; what is here knows which execution a name
//! means now, what was defined, and in what order things start and stop. It keeps nothing the
//! registry knows already.

mod api;
mod build_request;
mod caller_services;
mod condition;
pub mod definition;
mod definition_store;
mod diagnosis;
mod dismissal;
mod ensure;
pub mod error;
mod file_watch;
mod format;
mod graph;
pub mod import;
pub mod info;
mod locks;
mod lookup;
pub mod manifest;
mod ports;
mod registry;
pub(crate) mod reload;
pub mod request;
mod restart_request;
mod start_plan;
mod starter;
mod stop_service;
mod workspace;

pub use definition::ServiceDefinition;
pub use error::ServiceError;
pub use info::{Diagnosis, EnsureResult, ServiceInfo, ServiceStopped};
pub(crate) use registry::ServiceRegistry;
pub use request::{PortRequest, ServiceRequest};
