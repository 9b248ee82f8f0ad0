//! Text fragments about services, for people.

use ostler_journal::{LineQuery, OpenLineMode};
use ostler_model::{DependencyCondition, Timestamp};

use crate::execution::ExecutionHandle;
use crate::prompt::visible_line;

/// The most bytes read of each line: a line with many drawings of a progress bar is long.
const LINE_BYTES: u64 = 8 * 1024;
/// The most characters of a quoted line.
const LINE_CHARS: usize = 300;

/// A dependency condition, for people.
pub(crate) const fn condition_name(condition: DependencyCondition) -> &'static str {
    match condition {
        DependencyCondition::Started => "started",
        DependencyCondition::Listening => "listening",
        DependencyCondition::Ready => "ready",
        DependencyCondition::Completed => "completed",
    }
}

/// A time, in UTC.
pub(crate) fn time(at: Timestamp) -> String {
    at.strftime("%Y-%m-%d %H:%M:%SZ").to_string()
}

/// The last lines it printed, oldest first, as a person would see them; empty ones left out.
pub(crate) fn last_lines(entry: &ExecutionHandle, count: u64) -> Vec<String> {
    let query = LineQuery {
        tail: Some(count),
        unfinished: OpenLineMode::Preview,
        count_omitted: false,
        max_lines: count,
        // As much as the lines can have: a page that is too small leaves out the last ones.
        max_bytes: count.saturating_mul(LINE_BYTES),
        max_line_bytes: LINE_BYTES,
        ..LineQuery::default()
    };
    // Unreadable output must not fail a response about something else.
    let page = entry.journal().ok().and_then(|it| it.lines(&query).ok());
    let lines = page.into_iter().flat_map(|page| page.lines);
    lines
        .map(|line| visible_line(&String::from_utf8_lossy(&line.bytes)))
        .filter(|line| !line.is_empty())
        .map(|line| line.chars().take(LINE_CHARS).collect())
        .collect()
}
