//! `ostler service`: one file per verb, and what they share.

mod answer;
mod args;
mod ask;
mod board;
mod control;
mod define;
mod detect;
mod dispatch;
mod down;
mod import;
mod list;
mod logs;
mod manifest;
mod start;
mod up;
mod verbs;
mod waiting;
mod why;

pub(crate) use dispatch::run;
pub(crate) use verbs::ServiceVerb;
