//! The tools of profile `pty`, document 002 (C1–C15): terminal sessions for agents. Typing and
//! looking are one call, so that a conversation with a program costs one call a turn.

mod activity;
mod family;
mod offered;
mod paint;
mod pty_close;
mod pty_list;
mod pty_read;
mod pty_resize;
mod pty_run;
mod pty_start;
mod pty_write;
pub(super) mod session;
pub(super) mod settle;
mod span;
mod told;

pub(super) use offered::TOOLS;
pub(super) use settle::{Until, Wait};
pub(super) use told::Telling;
