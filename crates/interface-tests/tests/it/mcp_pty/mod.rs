//! Profile `pty`: terminal sessions through whole conversations.

mod agent;
mod errors;
mod offered;
mod programs;
mod screens;
mod sessions;
mod shells;
