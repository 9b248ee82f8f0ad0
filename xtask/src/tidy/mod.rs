//! The rules of the house that neither rustc nor clippy know: which crate may use which, how
//! large things may grow, and which calls belong to which room.

mod arrows;
mod check;
mod finding;
mod forbidden;
mod maps;
mod paths;
mod requirements;
mod sizes;
mod source;
#[cfg(test)]
mod tests;

pub(crate) use check::{Args, run};
