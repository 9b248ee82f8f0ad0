//! Parsers of test results.

mod cargo_test;
mod durations;
mod go_test;
mod jest;
mod nextest;
mod parsers;
mod pytest;
mod tap;
mod unittest;
mod vitest;

pub(crate) use parsers::TestParsers;
