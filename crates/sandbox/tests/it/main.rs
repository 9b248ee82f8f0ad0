//! Jails and filters over the kernel of this machine.

mod filters;
mod jail;
