//! Services by name: definitions, ensure, dependencies, ports, diagnosis.
//!
//! A service is an execution that is meant to stay up. This module knows which execution a name
//! refers to, which definitions exist, and in which order services start and stop. It duplicates
//! nothing that the registry of executions holds.

mod api;
mod build_request;
mod caller_services;
mod condition;
pub mod definition;
mod definition_form;
mod definition_store;
mod diagnosis;
mod dismissal;
mod ensure;
mod failed_starts;
mod format;
mod graph;
pub mod import;
pub mod info;
mod legacy;
mod locks;
mod lookup;
mod manager;
pub mod manifest;
mod pending;
mod pending_start_file;
mod plan_task;
mod ports;
mod registry;
pub(crate) mod reload;
pub mod request;
mod restart_request;
mod start_plan;
mod start_progress;
mod start_within;
mod starter;
mod stop_service;
mod up;
mod wait_ready;
mod workspace;

pub use crate::error::ServiceError;
pub use definition::ServiceDefinition;
pub use info::{
    Diagnosis, EnsureResult, ServiceInfo, ServiceQuestion, ServiceStart, ServiceStopped,
    StartFailure, UpResult,
};
pub(crate) use manager::ServiceManager;
pub(crate) use registry::ServiceRegistry;
pub use request::{ServiceRequest, ServiceReuse, StartLimits};
