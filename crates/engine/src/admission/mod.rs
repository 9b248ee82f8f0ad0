//! From a request to a spec and a plan, or a refusal. Nothing is started or kept here.

pub mod allow;
pub mod arguments;
pub mod bindings;
pub mod confinement;
#[cfg(test)]
mod confinement_tests;
pub mod credentials;
pub mod directory;
pub mod environment;
pub mod escapes;
pub(crate) mod named_files;
mod path_facts;
pub mod policy;
pub mod program;
pub mod quota;
#[cfg(test)]
mod quota_tests;
mod resolve;
pub mod secrets;
#[cfg(test)]
mod secrets_tests;
pub(crate) mod service;
#[cfg(test)]
mod tests;
mod wrapper;
mod writable;

pub(crate) use resolve::{Admitted, Draft, Prepared, Rules, admit, again};
