//! Output by line number: pages, searches, and how many lines were printed when.
//!
//! A line's *number* counts the lines of all output streams in the order in which they end, from 1.
//! So a number never changes, whatever is printed or dropped later. A line that has not ended yet
//! has the number that it would have if it ended now.

mod line_count;
mod page;
mod query;
mod search;
mod shape;
#[cfg(test)]
mod tests;

pub(crate) use page::page;
pub use query::{
    LinePosition, LineSearch, NumberedLine, NumberedPage, NumberedQuery, OutputShape, SearchPage,
    SearchedLines, ShapeBucket,
};
pub(crate) use search::search;
pub(crate) use shape::shape;
