//! The library as an embedder uses it.

mod examples;
