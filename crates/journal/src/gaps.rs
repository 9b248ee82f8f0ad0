//! Ranges of output that cannot be read.

use std::ops::Range;

use crate::query::Gap;
use crate::record_iter::{ForwardRecords, RecordBlock, RecordStep};
use crate::segment::SegmentError;
use crate::snapshot::JournalSnapshot;

/// How many bytes of output are checked for damage at each end of a range.
const CHECKED_BYTES: u64 = 1024 * 1024;

/// The gaps in a range, in ascending order: what no segment holds, the damaged chunks at both ends
/// of the range, and those that readers have `found`.
pub(crate) fn within(
    view: &JournalSnapshot<'_>,
    range: Range<u64>,
    found: &[Gap],
) -> Result<Vec<Gap>, SegmentError> {
    let mut gaps = between_segments(view)?;
    gaps.extend_from_slice(found);
    let (from, to) = (range.start.max(view.start()?), range.end.min(view.end));
    let head = from..to.min(from.saturating_add(CHECKED_BYTES));
    let tail = to.saturating_sub(CHECKED_BYTES).max(head.end)..to;
    for checked in [head, tail] {
        add_damaged(view, checked, &mut gaps)?;
    }
    gaps.sort_unstable_by_key(|gap| gap.from);
    let within = gaps.into_iter().map(|gap| Gap {
        from: gap.from.max(range.start),
        to: gap.to.min(range.end),
    });
    Ok(merge(within.filter(|gap| gap.from < gap.to)))
}

/// What no segment holds, by the headers alone.
pub(crate) fn between_segments(view: &JournalSnapshot<'_>) -> Result<Vec<Gap>, SegmentError> {
    let mut gaps = Vec::new();
    let mut from = 0;
    for extent in view.extents()? {
        let base = extent.from.max(view.floor);
        if from < base {
            gaps.push(Gap { from, to: base });
        }
        from = from.max(base).max(extent.to);
    }
    if from < view.end {
        gaps.push(Gap { from, to: view.end });
    }
    Ok(gaps)
}

/// Adds the gaps that a reader of this range finds.
fn add_damaged(
    view: &JournalSnapshot<'_>,
    range: Range<u64>,
    gaps: &mut Vec<Gap>,
) -> Result<(), SegmentError> {
    if range.is_empty() {
        return Ok(());
    }
    let mut forward = ForwardRecords::new(view, range.start)?;
    let mut block = RecordBlock::default();
    loop {
        match forward.next_block(&mut block)? {
            RecordStep::Block if block.end() < range.end => {}
            RecordStep::Gap(gap) if gap.from < range.end => gaps.push(gap),
            RecordStep::Damaged(from) => gaps.push(Gap { from, to: view.end }),
            RecordStep::Block | RecordStep::Gap(_) | RecordStep::End => return Ok(()),
        }
    }
}

/// Joins gaps that overlap; they are sorted by where they begin.
fn merge(sorted: impl Iterator<Item = Gap>) -> Vec<Gap> {
    let mut merged: Vec<Gap> = Vec::new();
    for gap in sorted {
        match merged.last_mut() {
            Some(last) if gap.from <= last.to => last.to = last.to.max(gap.to),
            Some(_) | None => merged.push(gap),
        }
    }
    merged
}
