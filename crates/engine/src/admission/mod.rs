//! Admission: turns a request into a spec and a launch plan, or refuses it. Nothing is started or
//! stored here.

mod admit;
pub mod allow_list;
#[cfg(test)]
mod allow_list_tests;
pub mod allow_list_warnings;
pub(crate) mod approval;
mod approval_message;
pub mod arguments;
pub mod command_policy;
pub(crate) mod container;
pub mod container_bounds;
mod container_paths;
#[cfg(test)]
mod container_tests;
pub mod credentials;
pub mod environment;
pub mod isolation_level;
pub(crate) mod named_files;
mod path_facts;
pub mod program;
pub mod quota;
#[cfg(test)]
mod quota_tests;
pub mod sandbox;
mod sandbox_bounds;
#[cfg(test)]
mod sandbox_tests;
pub(crate) mod secret_fields;
pub mod secrets;
#[cfg(test)]
mod secrets_tests;
pub(crate) mod service_plan;
mod task_variables;
#[cfg(test)]
mod template_tests;
#[cfg(test)]
mod tests;
pub mod working_dir;
pub mod workspace_rules;
mod writable_paths;

pub(crate) use admit::{
    AdmissionContext, AdmittedStart, LaunchTemplate, PreparedRequest, admit, relaunch_template,
};
