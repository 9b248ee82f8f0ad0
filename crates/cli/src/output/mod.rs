//! What people and scripts see: tables, times, colours, and a standard output whose reader
//! may go away.

mod nearest;
mod out;
mod style;
mod table;
mod time;

pub(crate) use nearest::nearest;
pub(crate) use out::{Out, print_json};
pub(crate) use style::Style;
pub(crate) use table::Table;
pub(crate) use time::{ago, clock, span};
