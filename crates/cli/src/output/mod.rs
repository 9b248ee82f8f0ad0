//! Output for people and scripts: lines, tables, times, colours, and a standard output whose reader
//! may close it.
//!
//! Commands, labels, paths, names and messages are untrusted text. This module is the only path
//! from them to a terminal, and it escapes them by `ostler_model::visible`.

mod stderr;
mod stdout;
mod style;
mod styled_line;
mod table;
mod time;
mod usage;

pub(crate) use stderr::{
    StderrWriter, print_error, print_note, print_prompt, redraw, write_stderr_raw,
};
pub(crate) use stdout::{StdoutWriter, print_json};
pub(crate) use style::Style;
pub(crate) use styled_line::{StyledLine, cells, line};
pub(crate) use table::TextTable;
pub(crate) use time::{format_age, format_duration, format_time};
pub(crate) use usage::print_usage;
