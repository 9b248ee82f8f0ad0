//! What walls cost: a start at each level, the proxy of an allow list, and the commit of an
//! overlay.

mod commits;
mod gate;
mod starts;
mod suite;

pub(super) use suite::ALL;
