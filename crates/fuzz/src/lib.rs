//! Fuzzing on the stable toolchain: inputs are seeds of a corpus with random mutations.
//!
//! A target is a test whose name begins with `fuzz_`; it gives [`fuzz`] its corpus (a directory of
//! files), seeds that it generates itself, and a check that panics on an error. Every seed is
//! checked unchanged; then come mutated ones: in the quick tier a few hundred, the same in each
//! run; in the full tier as many as fit into `OSTLER_FUZZ_SECONDS`, different in each run (`cargo
//! xtask test --full --only fuzz`). A failing input is minimized and added to the corpus.
#![forbid(unsafe_code)]

mod edit;
mod run;

pub use run::{SECONDS_VARIABLE, fuzz};
