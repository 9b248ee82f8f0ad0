//! The shim: carries out one plan after another, each to its end, whether a daemon lives or
//! not. Synchronous and single-threaded; it runs as a process of its own, forked by the
//! keeper, or on a thread where there is no keeper.
//!
//! [`serve`] waits for plans, [`birth`] turns a plan into a running tree
//! on [`channels`], within walls by [`confined`], [`run`] carries it
//! to its end; [`ladder`] decides what happens when, [`tree`] knows and ends the processes,
//! [`streams`] moves output from each [`source`] to the [`sink`], [`line`](mod@line) keeps
//! input within what a terminal's line holds, [`link`] talks to the daemon, [`record`] writes
//! what recovery reads, into a directory that is [`prepared`] before.

mod birth;
mod channels;
mod confined;
mod ladder;
mod line;
pub(crate) mod link;
mod marks;
mod pinned;
mod prepared;
mod questions;
pub(crate) mod record;
pub(crate) mod redact;
mod run;
mod serve;
mod sink;
mod source;
mod streams;
mod tree;

pub(crate) use prepared::PREPARED_PREFIX;
pub(crate) use serve::{Identity, Mode, Setup, serve};
pub(crate) use tree::{EXECUTION_VARIABLE, marker};
