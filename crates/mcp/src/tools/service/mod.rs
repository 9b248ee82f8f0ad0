//! The tool of profile `service`: servers and watchers by name; and the parts that other tools need
//! to run a command as a service.

mod auto_service;
mod launch_wait;
mod modify;
mod query;
mod ready;
mod request;
mod start;
mod start_result;
mod tool;
mod tool_list;

pub(super) use auto_service::{ServiceReason, detect_service, was_one_shot};
pub(super) use launch_wait::{ServiceLaunch, launch_and_wait};
pub(super) use start_result::start_failure_reply;
pub(super) use tool_list::TOOLS;
