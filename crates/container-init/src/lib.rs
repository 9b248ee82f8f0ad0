//! What runs inside a container: an init, pid 1, and for each attempt a runner that spawns the
//! command, signals its tree and reports its end to the shim outside.
//!
//! The binary of this crate is linked statically, so that it runs in any image of its architecture.
//! It is bind-mounted into the container, and everything that must outlive a container stays
//! outside: no journal, no deadlines, no policy. Must never know of the container engine.
//!
//! [`protocol`] is what a shim and a runner say to each other, [`init`] accepts connections and reaps
//! orphans, `runner` serves one connection, `launch` turns its request into a running tree, `program` finds its program,
//! `secret_files` writes secrets to memory, `counters` reads the counters of the container's cgroup.
#![forbid(unsafe_code)]

mod counters;
pub mod init;
mod launch;
mod launch_error;
mod program;
pub mod protocol;
mod runner;
mod secret_files;
