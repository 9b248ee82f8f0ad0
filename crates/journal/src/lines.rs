//! Line queries: the range, the page, the cursor of the next page.

use crate::line_range::LineRange;
use crate::page_builder::LinePageBuilder;
use crate::pattern::{BudgetedMatcher, Pattern};
use crate::query::{LinePage, LineQuery};
use crate::segment::SegmentError;
use crate::snapshot::JournalSnapshot;

/// Answers a query on one snapshot.
pub(crate) fn page(
    snapshot: &JournalSnapshot<'_>,
    query: &LineQuery,
) -> Result<LinePage, SegmentError> {
    let budget = query.grep.as_ref().map(Pattern::budget);
    let matcher = BudgetedMatcher::new(query.budget.or(budget).unwrap_or_default());
    let mut range = LineRange::resolve(snapshot, query)?;
    if let Some(head) = query.head.filter(|_| query.tail.is_some()) {
        range.seek_head(snapshot, query, head, &matcher)?;
    }
    if let Some(tail) = query.tail {
        range.seek_tail(snapshot, query, tail, &matcher)?;
    }
    let builder = LinePageBuilder::new(query, &range, matcher.clone());
    builder.build(snapshot, &range, &matcher)
}
