//! The per-user daemon: who starts it, what it holds, when it ends.
//!
//! * [`launch`]: how any command reaches it, starting it on demand.
//! * [`file_lock`]: one per state directory.
//! * [`socket_watch`]: waits for a daemon that somebody else started.
//! * [`log`]: its log, on a disk that may be full.
//! * [`run`]: its life, from the lock to the orderly shutdown.
//! * [`stdio_server`]: takes over the standard streams of `ostler mcp`.
//! * [`stdio_sessions`]: ends the sessions of fronts that went away while no daemon lived.
//! * [`rest_server`] and [`http_listener`]: HTTP on the socket, and on TCP.
//! * [`listeners`]: what it listens at, made anew where it is removed.
//! * [`secret_handover`]: secrets on their way to it.
//! * [`daemon_location`]: who serves what, for those who find nobody, or somebody else.
//! * [`idle_tracker`]: who is connected, and when nobody has been for long enough.
//! * [`in_process`]: the same engine inside a front (`--no-daemon`).

mod daemon_location;
mod file_lock;
mod http_listener;
mod idle_tracker;
pub(crate) mod in_process;
mod launch;
mod listeners;
mod log;
mod rest_server;
mod run;
mod secret_handover;
mod socket_watch;
mod stdio_server;
mod stdio_sessions;
pub(crate) mod streams;

pub(crate) use daemon_location::{check_state_dir, state_dir_mismatch, unreachable_message};
pub(crate) use http_listener::{HttpListener, TokenStatus, own_principal};
pub(crate) use launch::{DaemonLauncher, connect_or_start};
pub(crate) use run::{StartMode, executable, run, wait_for_shutdown_signal};
pub(crate) use secret_handover::{SecretVariables, is_secret};
pub(crate) use stdio_server::tool_set;
pub(crate) use stdio_sessions::{
    caller as stdio_session_caller, end as end_session, is_stdio_session, stdio_session,
};
