//! From the engine's types to the bodies of [`ostler_api`], and back where a request is made of one.
//! Plain functions: neither side is this crate's, so neither can have a `From` impl here.

mod context;
mod environment;
mod event;
mod execution;
mod gap;
mod history;
mod interaction;
mod policy;
mod resources;
mod service;
mod service_report;
mod template;
mod terminal;
mod wait;

pub use context::{context_body, context_request};
pub use environment::environment_body;
pub use event::{damaged_entries, event_body};
pub use execution::{execution_body, process_body, queue_wait_body, queued_start_body};
pub use gap::gap_body;
pub use history::{history_entry_body, history_freshness_body, run_statistics_body};
pub use interaction::{answered_body, interaction_body};
pub use policy::{policy_body, policy_verdict_body};
pub use resources::{execution_usage_body, resources_body, usage_history_body};
pub use service::{
    detected_service_body, ensure_response, readiness_wait_body, service_body,
    service_body_of_execution, service_diagnosis_body, service_request, service_stop_response,
    start_failure_body,
};
pub use service_report::ensure_message;
pub use service_report::service_report;
pub use template::{command_template_body, command_templates_body};
pub use terminal::screen_body;
pub use wait::{prompt_body, shell_run_outcome, wait_end_kind, wait_error};
