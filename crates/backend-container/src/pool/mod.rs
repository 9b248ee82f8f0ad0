//! The containers of a daemon: which one serves a start ([`state`], pure), and making, adopting and
//! removing them.

mod adoption;
mod container_use;
mod driver;
mod facts;
mod init_socket;
mod make;
mod state;

pub(crate) use container_use::ContainerUse;
pub(crate) use driver::{ContainerPool, PoolConfig, local_image};
pub use facts::ContainerFacts;
