//! The shim: runs one plan after another, each to its end, whether a daemon is connected or not.
//! Synchronous and single-threaded; it runs as a process of its own, forked by the zygote, or on a
//! thread where there is no zygote.
//!
//! [`serve`] waits for plans, [`spawn`] turns a plan into a running tree, inside a jail by [`jailed`],
//! in a container by [`container_tree`], [`event_loop`] runs it to its end; [`kill_escalation`]
//! decides the steps of ending it, [`attempt_tree`] finds and ends the processes, wherever they are,
//! [`streams`] moves output from each
//! [`output_source`] to the [`output_sink`](ostler_backend::output_sink),
//! [`canonical_line`](mod@canonical_line) limits input to the length of a terminal's line,
//! [`daemon_connection`] exchanges messages with the daemon. The files for recovery are written by
//! [`execution_dir`](ostler_backend::execution_dir), into a directory that is
//! [prepared](ostler_backend::prepared_dir) before.

mod attempt_tree;
mod canonical_line;
mod container_tree;
pub(crate) mod daemon_connection;
mod event_loop;
mod jailed;
mod kill_escalation;
mod launch_failure;
mod output_notify;
mod output_source;
mod pinned_files;
mod serve;
mod spawn;
mod state;
mod streams;
mod terminal_queries;

pub(crate) use container_tree::socket_in_container;
pub(crate) use ostler_sandbox::tree::{EXECUTION_VARIABLE, marker};
pub(crate) use serve::{ShimSetup, serve};
pub(crate) use state::{ShimInfo, ShimMode};
