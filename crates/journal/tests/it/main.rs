//! The public interface of the journal, tested in one binary.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod common;
mod concurrent;
mod damage;
mod fixtures;
mod follow;
mod fuzz;
mod numbered;
mod oracles;
mod properties;
mod retention;
