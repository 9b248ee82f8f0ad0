//! The tools of profile `pty`: terminal sessions for agents. Typing and reading the effect are one
//! call, so that a dialogue with a program takes one call per turn.

mod activity;
mod family;
mod fullscreen;
mod output_text;
mod prompt_text;
mod pty_close;
mod pty_list;
mod pty_read;
mod pty_resize;
mod pty_run;
mod pty_start;
mod pty_write;
pub(super) mod session;
mod session_reply;
pub(super) mod settle;
mod tool_list;

pub(super) use session_reply::SessionReply;
pub(super) use settle::{SettleUntil, SettleWait};
pub(super) use tool_list::TOOLS;
