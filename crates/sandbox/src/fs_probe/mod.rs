//! What the file systems under a confinement's paths can do, found out by doing it: idmapped
//! mounts, overlays, Landlock. A machine that can do a thing on one file system may not on
//! the next; nothing is assumed, each missing piece has its reason.
//!
//! `cache` decides which file system is asked about what and remembers the answers,
//! `checks` tries a thing on one directory, `scratch_ns` is the throw-away namespace where
//! that needs one, `sys` the system calls.

mod cache;
mod checks;
mod fs_type;
mod scratch_ns;
#[expect(
    unsafe_code,
    reason = "a child in namespaces of its own; calls without a wrapper"
)]
mod sys;
#[cfg(test)]
mod tests;

pub use cache::{FsProbe, probe_filesystems};
