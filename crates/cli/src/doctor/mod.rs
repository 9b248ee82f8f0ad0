//! Tests of what this machine can enforce, by doing it.
//!
//! * [`examine`]: a test engine on a temporary directory, and the sandboxed command.
//! * [`sandbox_probe`]: that command: attempts what must be denied, and what must work.
//! * [`level_reports`]: what each level provides; [`remedy`]: advice on missing capabilities.
//! * [`containers`]: the container engine, and what its containers provide.
//! * [`checks`]: directories, zygote, cgroups, secrets, the daemon.
//! * [`examiner`]: the same for clients of the daemon.
//! * [`report`]: all results, for people and programs.

mod checks;
mod containers;
mod examine;
mod examiner;
mod level_reports;
mod remedy;
mod report;
mod sandbox_probe;

pub(crate) use examine::examine;
pub(crate) use examiner::DoctorExaminer;
pub(crate) use sandbox_probe::{PROBE_ARGUMENT, main as sandbox_probe_main};
