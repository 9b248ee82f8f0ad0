//! Times in words.

use jiff::Timestamp;
use jiff::tz::TimeZone;

const MINUTE_S: u64 = 60;
const HOUR_S: u64 = 60 * MINUTE_S;
const DAY_S: u64 = 24 * HOUR_S;

/// Formats a number of seconds in at most two units, for example `1h 5m`; below ten seconds with a
/// fraction.
pub(crate) fn format_duration(seconds: f64) -> String {
    if seconds < 10.0 {
        return format!("{seconds:.2}s");
    }
    let whole = std::time::Duration::try_from_secs_f64(seconds).map_or(u64::MAX, |d| d.as_secs());
    match whole {
        0..MINUTE_S => format!("{whole}s"),
        MINUTE_S..HOUR_S => format_units(whole, (MINUTE_S, "m"), (1, "s")),
        HOUR_S..DAY_S => format_units(whole, (HOUR_S, "h"), (MINUTE_S, "m")),
        DAY_S.. => format_units(whole, (DAY_S, "d"), (HOUR_S, "h")),
    }
}

fn format_units(seconds: u64, large: (u64, &str), small: (u64, &str)) -> String {
    let (count, rest) = (seconds / large.0, seconds % large.0 / small.0);
    match rest {
        0 => format!("{count}{}", large.1),
        rest => format!("{count}{} {rest}{}", large.1, small.1),
    }
}

/// Formats the age of `then` at `now`, for example `5m ago`; a time in the future is `just now`.
pub(crate) fn format_age(then: Timestamp, now: Timestamp) -> String {
    let seconds = u64::try_from(now.duration_since(then).as_secs()).unwrap_or(0);
    match seconds {
        0..2 => "just now".to_owned(),
        2..MINUTE_S => format!("{seconds}s ago"),
        MINUTE_S..HOUR_S => format!("{}m ago", seconds / MINUTE_S),
        HOUR_S..DAY_S => format!("{}h ago", seconds / HOUR_S),
        DAY_S.. => format!("{}d ago", seconds / DAY_S),
    }
}

/// Formats a local time with milliseconds.
pub(crate) fn format_time(at: Timestamp, zone: &TimeZone) -> String {
    let zoned = at.to_zoned(zone.clone());
    zoned.strftime("%Y-%m-%d %H:%M:%S%.3f").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_take_two_units() {
        let formatted = [0.0, 9.99, 10.0, 59.9, 60.0, 61.0, 3_660.0, 90_000.0].map(format_duration);
        let wanted = [
            "0.00s", "9.99s", "10s", "59s", "1m", "1m 1s", "1h 1m", "1d 1h",
        ];
        assert_eq!(formatted, wanted);
    }

    #[test]
    fn moments_are_told_as_ages() {
        let now = Timestamp::from_second(1_000_000).unwrap();
        let age = |back: i64| format_age(Timestamp::from_second(1_000_000 - back).unwrap(), now);
        assert_eq!(
            [-5, 1, 5, 60, 7_200, 200_000].map(age),
            [
                "just now", "just now", "5s ago", "1m ago", "2h ago", "2d ago"
            ]
        );
    }

    #[test]
    fn the_clock_shows_milliseconds() {
        let at = Timestamp::from_millisecond(1_234).unwrap();
        assert_eq!(format_time(at, &TimeZone::UTC), "1970-01-01 00:00:01.234");
    }
}
