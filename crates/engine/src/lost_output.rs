//! Output that is gone: dropped on purpose, or lost.

use std::ops::Range;

use ostler_journal::{Gap, Journal, ReadError};

use crate::info::ExecutionInfo;

/// How many bytes of `within` were lost, that is missing without having been dropped on purpose.
/// Unless the disk refused writes there are none, and nothing is read.
///
/// # Errors
/// When the files cannot be read.
pub fn lost_bytes(
    info: &ExecutionInfo,
    journal: &Journal,
    within: Range<u64>,
) -> Result<u64, ReadError> {
    if info.state.degraded.is_empty() {
        return Ok(0);
    }
    let gaps = journal.gaps()?.into_iter().chain(lost_tail(info, journal)?);
    let lost = gaps.map(|gap| {
        let (from, to) = (gap.from.max(within.start), gap.to.min(within.end));
        info.state.lost_bytes(from, to)
    });
    Ok(lost.sum())
}

/// The last output of an ended execution that no file holds.
///
/// # Errors
/// When the files cannot be read.
pub fn lost_tail(info: &ExecutionInfo, journal: &Journal) -> Result<Option<Gap>, ReadError> {
    if !info.state.is_finished() || info.state.degraded.is_empty() {
        return Ok(None);
    }
    let (from, to) = (journal.end()?, info.output_end);
    Ok((from < to).then_some(Gap { from, to }))
}
