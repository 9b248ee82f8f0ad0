//! Times as text.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use ostler_model::duration;

/// Formats a number of seconds, for example `1h 5m`.
pub(crate) fn format_duration(seconds: f64) -> String {
    duration::compact(duration::from_seconds(seconds))
}

/// Formats the age of `then` at `now`, for example `5m ago`; a time in the future is `just now`.
pub(crate) fn format_age(then: Timestamp, now: Timestamp) -> String {
    duration::age(duration::between(then, now))
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
    fn times_are_shown_as_ages() {
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
