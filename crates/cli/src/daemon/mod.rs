//! The per-user daemon: who starts it, what it holds, when it ends.
//!
//! * [`launch`]: how any command reaches it, starting it on demand.
//! * [`lock`]: one per state directory.
//! * [`socket_watch`]: waits for a daemon that somebody else started.
//! * [`log`]: its log, on a disk that may be full.
//! * [`run`]: its life, from the lock to the orderly shutdown.
//! * [`fronts`]: takes over the standard streams of `ostler mcp`.
//! * [`sessions`]: ends the sessions of fronts that went away while no daemon lived.
//! * [`http`] and [`web`]: HTTP on the socket, and on TCP.
//! * [`sockets`]: what it listens at, made anew where it is removed.
//! * [`handover`]: secrets on their way to it.
//! * [`whereabouts`]: who serves what, for those who find nobody, or somebody else.
//! * [`presence`]: who is connected, and when nobody has been for long enough.
//! * [`embedded`]: the same engine inside a front (`--no-daemon`).

pub(crate) mod embedded;
mod fronts;
mod handover;
mod http;
mod launch;
mod lock;
mod log;
mod presence;
mod run;
mod sessions;
mod socket_watch;
mod sockets;
pub(crate) mod streams;
mod web;
mod whereabouts;

pub(crate) use fronts::tool_set;
pub(crate) use handover::{SecretVariables, is_secret};
pub(crate) use launch::{Launch, reach};
pub(crate) use run::{How, executable, run, told_to_end};
pub(crate) use sessions::{
    caller as session_caller, end as end_session, front_session, is_front_session,
};
pub(crate) use web::{Pass, Web, own_principal};
pub(crate) use whereabouts::{other_state, serves_our_state, unreachable};
