//! The jail: the namespaces and the view that a command of level high lives in.
//!
//! The order is the design:
//!
//! 1. [`HostFacts`] is what of the machine a plan depends on, looked at once.
//! 2. [`JailPlan::compile`] turns a confinement and those facts into a list of plain steps;
//!    it is pure, and no decision is left for later.
//! 3. [`Jail::build`] makes the *init*, pid 1 of new namespaces, gives it ids that are
//!    the caller's own or, for root, nobody's, and lets it carry the steps out.
//! 4. The init is system calls on prepared data only: it opens sources while it still has
//!    the caller's id, becomes inside ids, builds a new root in one tmpfs, seals it read-only,
//!    puts what is writable on top, pivots, lets go of the old root, puts its
//!    capabilities away, and from then on only waits: for its orphans, and for the end of whoever built it.
//! 5. A command enters by [`crate::spawn`] and [`crate::Restrictions`].
//!
//! Whoever kills the init ends everything inside; the init ends by itself when its builder
//! does, because its end of their socket is then closed.

mod build;
mod error;
mod host_facts;
mod idmap;
mod init;
mod mount_exec;
mod mount_op;
mod paths;
mod plan;
#[expect(
    unsafe_code,
    reason = "mount_setattr(2), interface flags, clone3(2), waitpid(2)"
)]
pub(crate) mod sys;
#[cfg(test)]
mod tests;

pub use build::{Jail, JailOptions, OverlayDirs};
pub use error::{JailError, namespace_hint};
pub use host_facts::HostFacts;
pub use plan::{EGRESS_PROXY_ADDRESS, JailPlan};
