//! What this machine can enforce, found out by doing it.
//!
//! * [`bench`]: an engine of its own on a scratch directory, and the command that is walled off.
//! * [`witness`]: that command: tries what must be denied, and what must work.
//! * [`levels`]: what each level comes to here; [`remedy`]: what helps.
//! * [`checks`]: directories, keeper, cgroups, secrets, the daemon.
//! * [`report`]: all of it, for people and programs.

mod bench;
mod checks;
mod levels;
mod remedy;
mod report;
mod witness;

pub(crate) use bench::examine;
pub(crate) use witness::{WITNESS_ARGUMENT, main as witness_main};
