//! Spawning a process: one clone3(2), the steps of the child before exec(2), and the memory and
//! wait functions they need. Used by the local backend for every command, and by
//! [`crate::Sandbox`], so that there is one way only.

#[expect(unsafe_code, reason = "the child before exec")]
mod child;
#[expect(unsafe_code, reason = "clone3(2)")]
mod clone3;
#[expect(unsafe_code, reason = "anonymous mappings")]
pub mod memory;
#[expect(unsafe_code, reason = "wait4(2), which tells usage")]
pub mod wait;

pub use clone3::{
    CArray, ExpectedFile, STACK_BYTES, SpawnSpec, SpawnStep, SpawnStepError, SpawnedChild, spawn,
};
pub use memory::Pages;
