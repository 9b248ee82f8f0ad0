//! The third layer of isolation: a seccomp(2) filter that lets ordinary programs do everything and
//! refuses what only escapes need. `rules` is the table and its meaning in plain Rust, `bpf`
//! assembles classic BPF, `filter` compiles the one into the other, `install` puts it on the
//! calling thread.
//!
//! The kernel caches which calls a filter allows whatever their arguments (since 5.11), so that
//! only calls that the table names have a cost.

mod bpf;
mod filter;
#[expect(unsafe_code, reason = "seccomp(2) between clone and exec")]
mod install;
mod rules;
#[cfg(test)]
mod tests;

pub use filter::{SeccompFilter, build_filter};
pub use install::{supported, unavailable_reason};
pub use rules::{AllowedSockets, SeccompAction, expected_action};
