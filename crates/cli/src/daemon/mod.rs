//! The per-user daemon: who starts it, what it holds, when it ends.
//!
//! * [`launch`]: how any command reaches it, starting it on demand.
//! * [`lock`]: one per state directory.
//! * [`run`]: its life, from the lock to the orderly shutdown.
//! * [`fronts`]: takes over the standard streams of `ostler mcp`.
//! * [`splice`]: lets a conversation go on that began with an earlier daemon.
//! * [`sessions`]: ends the sessions of fronts that went away while no daemon lived.
//! * [`http`] and [`web`]: HTTP on the socket, and on TCP.
//! * [`presence`]: who is connected, and when nobody has been for long enough.
//! * [`embedded`]: the same engine inside a front (`--no-daemon`).

pub(crate) mod embedded;
mod fronts;
mod http;
mod launch;
mod lock;
mod presence;
mod run;
mod sessions;
mod splice;
pub(crate) mod streams;
mod web;

pub(crate) use fronts::tool_set;
pub(crate) use launch::{Launch, reach};
pub(crate) use run::{How, executable, run, told_to_end};
pub(crate) use sessions::{
    caller as session_caller, end as end_session, front_session, is_front_session,
};
pub(crate) use web::{Pass, Web, own_principal};
