//! Admission: turns a request into a spec and a launch plan, or refuses it. Nothing is started or
//! stored here.

mod admit;
pub mod allow_list;
pub mod allow_list_warnings;
pub(crate) mod approval;
pub mod arguments;
pub mod command_policy;
pub mod credentials;
pub mod environment;
pub(crate) mod named_files;
mod path_facts;
pub mod program;
pub mod quota;
#[cfg(test)]
mod quota_tests;
pub mod sandbox;
#[cfg(test)]
mod sandbox_tests;
pub mod secret_bindings;
pub mod secrets;
#[cfg(test)]
mod secrets_tests;
pub(crate) mod service_plan;
#[cfg(test)]
mod tests;
pub mod working_dir;
mod wrapper;
mod writable_paths;

pub(crate) use admit::{
    AdmissionContext, AdmittedStart, LaunchTemplate, PreparedRequest, admit, relaunch_template,
};
