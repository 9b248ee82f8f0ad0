//! Line queries: the range, the page, the cursor of the next page.

use crate::line_range::LineRange;
use crate::page_builder::LinePageBuilder;
use crate::pattern::{BudgetedMatcher, Pattern};
use crate::query::{LinePage, LineQuery};
use crate::segment::SegmentError;
use crate::snapshot::JournalSnapshot;

/// Answers a query on one snapshot.
pub(crate) fn page(
    view: &JournalSnapshot<'_>,
    query: &LineQuery,
) -> Result<LinePage, SegmentError> {
    let budget = query.grep.as_ref().map(Pattern::budget);
    let watch = BudgetedMatcher::new(query.budget.or(budget).unwrap_or_default());
    let mut bounds = LineRange::of(view, query)?;
    if let Some(head) = query.head.filter(|_| query.tail.is_some()) {
        bounds.seek_head(view, query, head, &watch)?;
    }
    if let Some(tail) = query.tail {
        bounds.seek_tail(view, query, tail, &watch)?;
    }
    let sink = LinePageBuilder::new(query, &bounds, watch.clone());
    sink.build(view, &bounds, &watch)
}
