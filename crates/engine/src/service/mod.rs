//! Services by name: definitions, ensure, dependencies, ports, why (E6–E8).
//!
//! A service is an execution that is meant to stay; what is here knows which execution a name
//! means now, what was defined, and in what order things start and stop. It keeps nothing the
//! registry knows already.

mod anew;
mod book;
mod clerk;
mod compose;
mod condition;
pub mod definition;
mod definitions;
pub(crate) mod dismissal;
mod ensure;
pub mod error;
mod facade;
mod graph;
pub mod import;
pub mod info;
mod locks;
mod lookup;
pub mod manifest;
pub(crate) mod names;
mod ports;
pub(crate) mod reload;
pub mod request;
mod stopping;
mod up;
mod view;
mod watching;
mod why;
mod words;
mod workspace;

pub(crate) use book::Book;
pub use definition::Definition;
pub use error::ServiceError;
pub use info::{Ensured, ServiceInfo, ServiceStopped, Why};
pub use request::{PortWish, ServiceRequest};
