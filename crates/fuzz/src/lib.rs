//! Fuzzing on the stable toolchain: inputs are seeds of a corpus with random edits.
//!
//! A target is a test whose name begins with `fuzz_`; it gives [`fuzz`] its corpus, a directory of files, seeds that
//! it makes itself, and a check that panics where something is wrong. Every seed is checked as it is; then come edited ones: a few
//! hundred, the same each time, in the quick tier; as many as fit into `OSTLER_FUZZ_SECONDS`, never the same, in
//! the full one (`cargo xtask test --full --only fuzz`). An input that fails is made as small as possible and kept in the corpus.
#![forbid(unsafe_code)]

mod edit;
mod run;

pub use run::{SECONDS_VARIABLE, fuzz};
