//! Lines of a journal: where to begin, what to take, where to go on.

use crate::bounds::Bounds;
use crate::pattern::{Pattern, Watch};
use crate::query::{LinePage, LineQuery};
use crate::segment::Trouble;
use crate::taker::Taker;
use crate::view::View;

/// Answers a query on one view.
pub(crate) fn page(view: &View<'_>, query: &LineQuery) -> Result<LinePage, Trouble> {
    let budget = query.grep.as_ref().map(Pattern::budget);
    let watch = Watch::new(query.budget.or(budget).unwrap_or_default());
    let mut bounds = Bounds::of(view, query)?;
    if let Some(head) = query.head.filter(|_| query.tail.is_some()) {
        bounds.seek_head(view, query, head, &watch)?;
    }
    if let Some(tail) = query.tail {
        bounds.seek_tail(view, query, tail, &watch)?;
    }
    let sink = Taker::new(query, &bounds, watch.clone());
    sink.fill(view, &bounds, &watch)
}
