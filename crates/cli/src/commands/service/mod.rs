//! `ostler service`: one file for each verb, and what they share.

mod args;
mod client;
mod define;
mod detect;
mod dispatch;
mod down;
mod import;
mod list;
mod logs;
mod manifest;
mod print;
mod progress;
mod start;
mod stop_restart;
mod up;
mod verbs;
mod wait;
mod why;

pub(crate) use dispatch::run;
pub(crate) use verbs::ServiceVerb;
