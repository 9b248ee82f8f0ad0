//! The library as an embedder uses it.

mod alerts;
mod examples;
