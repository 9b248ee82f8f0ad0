//! Parsers of test results.

mod cargo_test;
mod durations;
mod go_test;
mod nextest;
mod parsers;
mod unittest;

pub(crate) use parsers::TestParsers;
