//! Output that is gone: dropped on purpose, or lost.

use std::ops::Range;

use ostler_journal::{Gap, Journal, ReadError};

use crate::info::ExecutionInfo;

/// How many bytes of `within` were lost, that is missing without having been dropped on purpose;
/// `info` is called after the files were read. Damage is looked for at both ends of the range; what
/// is farther from them is found only by who reads it, and given as `found`.
///
/// # Errors
/// When the files cannot be read.
pub fn lost_bytes<E: From<ReadError>>(
    info: impl FnOnce() -> Result<ExecutionInfo, E>,
    journal: &Journal,
    within: Range<u64>,
    found: &[Gap],
) -> Result<u64, E> {
    let gaps = journal.gaps_within(within.clone(), found)?;
    let info = info()?;
    let gaps = gaps.into_iter().chain(lost_tail(&info, journal)?);
    let lost = gaps.map(|gap| {
        let (from, to) = (gap.from.max(within.start), gap.to.min(within.end));
        info.lost_bytes(from, to)
    });
    Ok(lost.sum())
}

/// The last output of an ended execution that no file holds.
///
/// # Errors
/// When the files cannot be read.
pub fn lost_tail(info: &ExecutionInfo, journal: &Journal) -> Result<Option<Gap>, ReadError> {
    if !info.state.is_finished() {
        return Ok(None);
    }
    let (from, to) = (journal.end()?, info.output_end);
    Ok((from < to).then_some(Gap { from, to }))
}

/// The output from `damaged_from` on, where the files are damaged: none of it can be read.
///
/// # Errors
/// When the files cannot be read.
pub fn damaged_output(
    info: &ExecutionInfo,
    journal: &Journal,
    damaged_from: u64,
) -> Result<Gap, ReadError> {
    let to = journal.end()?.max(info.output_end).max(damaged_from);
    Ok(Gap {
        from: damaged_from,
        to,
    })
}
