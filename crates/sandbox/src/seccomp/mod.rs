//! The third wall: a seccomp(2) filter that lets ordinary programs do everything and refuses
//! what only escapes need. `rules` is the table and what it means in plain Rust,
//! `assembler` writes classic BPF, `program` turns the one into the other, `install`
//! puts it on the calling thread.
//!
//! The kernel remembers by itself which calls a filter allows whatever their arguments (since
//! 5.11), so that only calls that the table names pay for it.

mod assembler;
#[expect(unsafe_code, reason = "seccomp(2) between clone and exec")]
mod install;
mod program;
mod rules;
#[cfg(test)]
mod tests;

pub use install::{missing, supported};
pub use program::{Program, program};
pub use rules::{Sockets, Verdict, verdict};
