//! The engine over this machine's processes, without a zygote.

mod executions;
mod overlay;
mod prompts;
mod services;
mod shells;
mod terminal_prompts;
mod terminals;
mod test_engine;
