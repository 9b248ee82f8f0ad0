//! The jail: the namespaces and the file system view of a command of level high.
//!
//! It is built in this order:
//!
//! 1. [`HostFacts`] are the facts about the machine that a plan depends on, read once.
//! 2. [`JailPlan::compile`] turns a sandbox specification and those facts into a list of plain
//!    operations; it is pure, and no decision is left for later.
//! 3. [`Jail::build`] creates the *init*, pid 1 of new namespaces, gives it ids that are the
//!    caller's own or, for root, no user's, and lets it execute the operations.
//! 4. The init makes system calls on prepared data only: it opens sources while it still has the
//!    caller's id, takes the inside ids, builds a new root in one tmpfs, seals it read-only, mounts
//!    what is writable on top, pivots (pivot_root(2)), detaches the old root, drops its
//!    capabilities, and from then on only waits: for its orphans, and for the end of its builder.
//! 5. A command enters by [`crate::spawn`] and [`crate::Restrictions`].
//!
//! Killing the init kills everything inside; the init ends by itself when its builder does, because
//! the builder's end of their socket is then closed.

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
