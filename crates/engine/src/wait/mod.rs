//! Waiting for an execution: for its end, a line, quiet output, a prompt. Everything here reads what
//! the driver publishes; nothing polls, except for prompts.

mod pattern;
mod prompt;
mod wait_for;

pub(crate) use prompt::{
    find_prompt, find_quiet_prompt, has_input, is_output_end, waits_at_prompt,
};
pub(crate) use wait_for::{wait, wait_started};
