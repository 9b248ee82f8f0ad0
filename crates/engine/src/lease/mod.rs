//! The writer's lease of a session: a table beside the executions, keyed by their ids.

mod guard;
mod reservation;
mod table;

pub(crate) use guard::acquire_lease;
pub use guard::{LEASE_NAME_BYTES, Lease};
pub(crate) use reservation::{FormerLease, reserve_leases};
pub(crate) use table::WriterLeases;
pub use table::{LeaseHolder, LeaseId};
