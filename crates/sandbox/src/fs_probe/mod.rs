//! Probes what the file systems under a sandbox's paths support, by doing it: idmapped mounts,
//! overlays, Landlock. A feature may work on one file system of a machine and not on the next;
//! nothing is assumed, and each missing feature has its reason.
//!
//! `cache` decides which file system is probed for what and caches the results, `checks` tries a
//! feature on one directory, `scratch_ns` is the temporary namespace where that needs one, `sys`
//! the system calls.

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
