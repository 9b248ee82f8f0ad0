//! Parsers of diagnostics.

mod eslint;
mod located_line;
mod location;
mod parsers;
mod rustc;
mod tsc;

pub(crate) use location::split_location;
pub(crate) use parsers::DiagnosticParsers;
