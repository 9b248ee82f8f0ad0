//! What people and scripts see: lines, tables, times, colours, and a standard output whose
//! reader may go away.
//!
//! Commands, labels, paths, names and messages are anybody's text. Here is the only way from
//! them to a terminal, and it goes through `ostler_model::visible`.

mod line;
mod nearest;
mod notes;
mod out;
mod style;
mod table;
mod time;
mod usage;

pub(crate) use line::{Line, cells, line};
pub(crate) use nearest::nearest;
pub(crate) use notes::{ErrorStream, ask, raw_error, redraw, report, tell};
pub(crate) use out::{Out, print_json};
pub(crate) use style::Style;
pub(crate) use table::Table;
pub(crate) use time::{ago, clock, span};
pub(crate) use usage::print_usage;
