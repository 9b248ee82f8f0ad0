//! Output that is gone.

use ostler_api::GapBody;
use ostler_engine::ExecutionInfo;
use ostler_journal::Gap;

/// A gap in the output, with how much of it was lost; `info` was taken after the gap was found.
#[must_use]
pub fn gap_body(info: &ExecutionInfo, gap: Gap) -> GapBody {
    GapBody {
        from: gap.from,
        to: gap.to,
        lost_bytes: info.lost_bytes(gap.from, gap.to),
    }
}
