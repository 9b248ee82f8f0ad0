//! What the file systems under a confinement's paths can do, found out by doing it: idmapped
//! mounts, overlays, Landlock. A machine that can do a thing on one file system may not on
//! the next; nothing is assumed, each missing piece has its reason.
//!
//! `look` decides which file system is asked about what and remembers the answers,
//! `trial` tries a thing on one directory, `scratch` is the throw-away namespace where
//! that needs one, `kernel` the system calls.

#[expect(
    unsafe_code,
    reason = "a child in namespaces of its own; calls without a wrapper"
)]
mod kernel;
mod look;
mod scratch;
mod sources;
#[cfg(test)]
mod tests;
mod trial;

pub use look::{Survey, survey};
