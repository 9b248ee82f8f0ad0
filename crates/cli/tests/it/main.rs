//! Tests of the real binary: each test has directories and a daemon of its own, and ends what it
//! started.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on panics")]

mod attach;
mod completions;
mod config;
mod containers;
mod daemon;
mod input;
mod interrupts;
mod isolation;
mod logs;
mod manage;
mod prompt;
mod pty_user;
mod run;
mod serve;
mod service_workspaces;
mod services;
mod shell;
mod stdio_proxy;
mod test_env;
mod unprivileged;
