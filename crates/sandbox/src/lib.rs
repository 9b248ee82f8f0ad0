//! Isolation, limits and accounting of process trees: jails (namespaces and a file system view),
//! restrictions (capabilities, Landlock, seccomp), overlays, cgroups of either version, and
//! setrlimit(2). Does not depend on an async runtime and knows nothing of journals.
//!
//! [`Sandbox`] combines all of it for one command; [`probe`] finds out what this machine supports.

pub mod autorun;
pub mod cgroup;
mod clone_args;
pub mod fs_probe;
pub mod jail;
pub mod landlock;
mod openat2;
pub mod overlay;
#[expect(unsafe_code, reason = "a child that enters a cgroup and ends")]
mod probe;
pub mod restrictions;
pub mod rlimit;
mod sandbox;
pub mod seccomp;
pub mod spawn;
pub mod stdio;
pub mod tree;
mod whiteout;

pub use jail::{HostFacts, Jail, JailError, JailOptions, JailPlan, OverlayDirs};
pub use probe::probe;
pub use restrictions::Restrictions;
pub use sandbox::{Sandbox, SandboxChild, SandboxCommand, SandboxError, SandboxStdio};
