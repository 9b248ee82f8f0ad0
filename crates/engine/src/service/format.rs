//! Text fragments about services, for people.

use std::time::Duration;

use ostler_journal::{LineQuery, OpenLineMode};
use ostler_model::{DependencyCondition, Timestamp};

use crate::execution::ExecutionHandle;
use crate::prompt::visible_line;

/// The most bytes read for the last lines.
const TAIL_BYTES: u64 = 64 * 1024;
/// The most characters of a quoted line.
const LINE_CHARS: usize = 300;

/// A rounded duration: `12 min`.
pub(crate) fn format_duration(time: Duration) -> String {
    const MINUTE_S: u64 = 60;
    const HOUR_S: u64 = 60 * MINUTE_S;
    const DAY_S: u64 = 24 * HOUR_S;
    match time.as_secs() {
        0 => format!("{} ms", time.as_millis()),
        seconds if seconds < 2 * MINUTE_S => format!("{seconds} s"),
        seconds if seconds < 2 * HOUR_S => format!("{} min", seconds / MINUTE_S),
        seconds if seconds < 2 * DAY_S => format!("{} h", seconds / HOUR_S),
        seconds => format!("{} days", seconds / DAY_S),
    }
}

/// The time between two timestamps, whichever is earlier.
pub(crate) fn elapsed(from: Timestamp, to: Timestamp) -> Duration {
    Duration::try_from(to.duration_since(from)).unwrap_or_default()
}

/// A dependency condition, for people.
pub(crate) const fn condition_name(condition: DependencyCondition) -> &'static str {
    match condition {
        DependencyCondition::Started => "started",
        DependencyCondition::Listening => "listening",
        DependencyCondition::Ready => "ready",
        DependencyCondition::Completed => "completed",
    }
}

/// The last lines it printed, oldest first, as a person would see them; empty ones left out.
pub(crate) fn last_lines(entry: &ExecutionHandle, count: u64) -> Vec<String> {
    let query = LineQuery {
        tail: Some(count),
        unfinished: OpenLineMode::Preview,
        count_omitted: false,
        max_bytes: TAIL_BYTES,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_told_roughly() {
        for (seconds, told) in [
            (0, "0 ms"),
            (5, "5 s"),
            (119, "119 s"),
            (720, "12 min"),
            (7_200, "2 h"),
            (200_000, "2 days"),
        ] {
            assert_eq!(format_duration(Duration::from_secs(seconds)), told);
        }
    }
}
