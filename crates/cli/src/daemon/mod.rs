//! The daemon of a user: its start, its parts, its end.
//!
//! * [`launch`]: connecting to it, and starting it on demand.
//! * [`file_lock`]: one daemon for each state directory.
//! * [`socket_watch`]: waits for a daemon that another process started.
//! * [`log`]: its log, on a disk that may be full.
//! * [`banner`]: what `ostler serve` prints.
//! * [`run`]: its life, from the lock to the orderly shutdown.
//! * [`stdio_server`]: takes over the standard streams of `ostler mcp`.
//! * [`stdio_sessions`]: ends sessions of stdio proxies that exited while no daemon ran.
//! * [`rest_server`] and [`http_listener`]: HTTP on the unix socket, and on TCP.
//! * [`listeners`]: its listening sockets, recreated when they are removed.
//! * [`daemon_location`]: finds which daemon serves which directory, for error messages.
//! * [`settings_record`]: its settings, for commands that were given others.
//! * [`idle_tracker`]: counts connections, and detects idleness.
//! * [`in_process`]: the engine inside a client process (`--no-daemon`).

mod banner;
mod daemon_location;
mod examination;
mod file_lock;
mod history;
mod http_listener;
mod idle_tracker;
pub(crate) mod in_process;
mod launch;
mod listeners;
mod log;
mod rest_server;
mod run;
mod settings_record;
mod socket_watch;
mod stdio_server;
mod stdio_sessions;
pub(crate) mod streams;

pub(crate) use daemon_location::{
    check_state_dir, state_dir_mismatch, state_holder, unreachable_reason,
    unresponsive_daemon_message, unresponsive_message,
};
pub(crate) use http_listener::own_principal;
pub(crate) use launch::{DaemonLauncher, connect_or_start};
pub(crate) use run::{StartMode, executable, run, wait_for_shutdown_signal};
pub(crate) use settings_record::{check as check_settings, daemon_value};
pub(crate) use stdio_server::tool_set;
pub(crate) use stdio_sessions::{
    caller as stdio_session_caller, end as end_session, is_stdio_session, stdio_session,
};
