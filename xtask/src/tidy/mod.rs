//! The rules of the house that neither rustc nor clippy know: which crate may use which, how
//! large things may grow, and which calls belong to which room.

mod banned_words;
mod check;
mod crate_deps;
mod diagnostic;
mod forbidden;
mod mod_files;
mod module_cycles;
mod orphans;
mod paths;
mod requirements;
mod sizes;
mod source;
#[cfg(test)]
mod tests;
mod type_names;

pub(crate) use check::{TidyArgs, run};
