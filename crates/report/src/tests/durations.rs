//! Durations as test runners print them.

use std::time::Duration;

/// Parses `0.004s`, `5ms`, `1.2 s`, `3 ms`, `1m 2s`.
pub(super) fn parse_duration(text: &str) -> Option<Duration> {
    let text = text.trim();
    if let Some((minutes, rest)) = text.split_once("m ") {
        let minutes: u32 = minutes.parse().ok()?;
        return Some(Duration::from_secs(u64::from(minutes) * 60) + parse_duration(rest)?);
    }
    if let Some(number) = text.strip_suffix("ms") {
        return parse_number(number, 1e-3);
    }
    parse_number(text.strip_suffix('s')?, 1.0)
}

/// Parses a number of milliseconds.
pub(super) fn parse_milliseconds(text: &str) -> Option<Duration> {
    parse_number(text, 1e-3)
}

fn parse_number(text: &str, seconds: f64) -> Option<Duration> {
    let number: f64 = text.trim().parse().ok()?;
    Duration::try_from_secs_f64(number * seconds).ok()
}

/// Splits ` (5 ms)` off the end of a name.
pub(super) fn split_duration_in_parens(text: &str) -> (&str, Option<Duration>) {
    let split = || {
        let (name, inner) = text.trim_end().strip_suffix(')')?.rsplit_once(" (")?;
        Some((name, parse_duration(inner)?))
    };
    match split() {
        Some((name, duration)) => (name, Some(duration)),
        None => (text.trim_end(), None),
    }
}
