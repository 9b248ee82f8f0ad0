//! Confinement, limits and accounting of process trees: cgroups of either version, and
//! setrlimit(2). Must never know of async runtimes or journals.

pub mod cgroup;
#[expect(unsafe_code, reason = "a child that enters a cgroup and ends")]
mod probe;
pub mod rlimit;

pub use probe::probe;
