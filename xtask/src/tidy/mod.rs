//! Project rules that neither rustc nor clippy check: dependencies between crates, sizes of files
//! and functions, and calls that only certain crates may make.

mod banned_words;
mod check;
mod crate_deps;
mod diagnostic;
mod forbidden;
mod hosts;
mod mod_files;
mod module_cycles;
#[cfg(test)]
mod module_cycles_tests;
mod orphans;
mod paths;
mod requirements;
mod sizes;
mod source;
#[cfg(test)]
mod tests;
mod tuple_params;
mod type_names;

pub(crate) use check::{TidyArgs, run};
