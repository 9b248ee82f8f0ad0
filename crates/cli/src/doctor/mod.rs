//! What this machine can enforce, found out by doing it.
//!
//! * [`examine`]: an engine of its own on a scratch directory, and the command that is walled off.
//! * [`sandbox_probe`]: that command: tries what must be denied, and what must work.
//! * [`level_reports`]: what each level comes to here; [`remedy`]: what helps.
//! * [`checks`]: directories, keeper, cgroups, secrets, the daemon.
//! * [`report`]: all of it, for people and programs.

mod checks;
mod examine;
mod level_reports;
mod remedy;
mod report;
mod sandbox_probe;

pub(crate) use examine::examine;
pub(crate) use sandbox_probe::{PROBE_ARGUMENT, main as sandbox_probe_main};
