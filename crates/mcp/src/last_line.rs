//! The last line an execution printed, as progress and tasks show it.

use ostler_engine::{Engine, ExecutionInfo};
use ostler_journal::{LineQuery, OpenLineMode};
use ostler_model::Caller;
use ostler_render::truncated;

use ostler_interface::output_reader::read_slice;

/// The most characters of a line shown.
pub(super) const LAST_LINE_CHARS: usize = 200;
/// Lines examined for one that is not blank.
const LINES: u64 = 3;
/// The most bytes read of each line.
const LINE_BYTES: u64 = 4 * 1024;

/// The last line that is not blank, unfinished ones included, as a terminal would display it now.
pub(super) async fn last_line(
    engine: &Engine,
    caller: &Caller,
    info: &ExecutionInfo,
) -> Option<String> {
    if info.output_end == 0 {
        return None;
    }
    let journal = engine.journal(caller, &info.id.short()).ok()?;
    let query = LineQuery {
        tail: Some(LINES),
        max_lines: LINES,
        max_bytes: LINES * LINE_BYTES,
        max_line_bytes: LINE_BYTES,
        count_omitted: false,
        unfinished: OpenLineMode::Preview,
        ..LineQuery::default()
    };
    let slice = read_slice(&journal, info, query).await.ok()?;
    let mut rows = slice.front.iter().chain(&slice.back);
    let last = rows.rfind(|row| !row.text.trim().is_empty())?;
    Some(truncated(last.text.trim(), LAST_LINE_CHARS))
}
