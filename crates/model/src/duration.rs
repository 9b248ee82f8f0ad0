//! Durations as text and as plain numbers: each form is made here, whoever shows or reads it.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

/// Units of settings and definitions, in milliseconds.
pub const CLOCK_UNITS: [(&str, u64); 4] = [
    ("ms", MILLISECOND_MS),
    ("s", SECOND_MS),
    ("m", MINUTE_MS),
    ("h", HOUR_MS),
];
/// Units of times before now, in milliseconds.
pub const CALENDAR_UNITS: [(&str, u64); 8] = [
    ("ms", MILLISECOND_MS),
    ("s", SECOND_MS),
    ("sec", SECOND_MS),
    ("m", MINUTE_MS),
    ("min", MINUTE_MS),
    ("h", HOUR_MS),
    ("d", 24 * HOUR_MS),
    ("w", 7 * 24 * HOUR_MS),
];

const MILLISECOND_MS: u64 = 1;
const SECOND_MS: u64 = 1_000;
const MINUTE_MS: u64 = 60 * SECOND_MS;
const HOUR_MS: u64 = 60 * MINUTE_MS;

const MINUTE_S: u64 = 60;
const HOUR_S: u64 = 60 * MINUTE_S;
const DAY_S: u64 = 24 * HOUR_S;

/// Whole milliseconds; the largest number for more.
#[must_use]
pub fn as_millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// Seconds, rounded to a millisecond.
#[must_use]
pub fn as_seconds(duration: Duration) -> f64 {
    (duration.as_secs_f64() * 1_000.0).round() / 1_000.0
}

/// A number of seconds as a duration: zero for less than that, the longest one for more.
#[must_use]
pub fn from_seconds(seconds: f64) -> Duration {
    match Duration::try_from_secs_f64(seconds) {
        Ok(duration) => duration,
        Err(_) if seconds > 0.0 => Duration::MAX,
        Err(_) => Duration::ZERO,
    }
}

/// The time from one moment to a later one; zero for an earlier one.
#[must_use]
pub fn between(from: Timestamp, to: Timestamp) -> Duration {
    Duration::try_from(to.duration_since(from)).unwrap_or_default()
}

/// Seconds, rounded to a millisecond: `0.2 s`.
#[must_use]
pub fn seconds(duration: Duration) -> String {
    format!("{} s", as_seconds(duration))
}

/// At most two units: `1h 5m`; below ten seconds with a fraction: `0.25s`.
#[must_use]
pub fn compact(duration: Duration) -> String {
    const FRACTION_S: u64 = 10;
    let two_units = |large: &str, large_s: u64, small: &str, small_s: u64| {
        let seconds = duration.as_secs();
        let (count, rest) = (seconds / large_s, seconds % large_s / small_s);
        match rest {
            0 => format!("{count}{large}"),
            rest => format!("{count}{large} {rest}{small}"),
        }
    };
    match duration.as_secs() {
        0..FRACTION_S => format!("{:.2}s", duration.as_secs_f64()),
        seconds @ FRACTION_S..MINUTE_S => format!("{seconds}s"),
        MINUTE_S..HOUR_S => two_units("m", MINUTE_S, "s", 1),
        HOUR_S..DAY_S => two_units("h", HOUR_S, "m", MINUTE_S),
        DAY_S.. => two_units("d", DAY_S, "h", HOUR_S),
    }
}

/// One unit, rounded down: `12 min`; a unit is used from two of it on.
#[must_use]
pub fn rounded(duration: Duration) -> String {
    match duration.as_secs() {
        0 => format!("{} ms", duration.as_millis()),
        seconds if seconds < 2 * MINUTE_S => format!("{seconds} s"),
        seconds if seconds < 2 * HOUR_S => format!("{} min", seconds / MINUTE_S),
        seconds if seconds < 2 * DAY_S => format!("{} h", seconds / HOUR_S),
        seconds => format!("{} days", seconds / DAY_S),
    }
}

/// How long ago something was, in one unit: `5m ago`.
#[must_use]
pub fn age(duration: Duration) -> String {
    match duration.as_secs() {
        0..2 => "just now".to_owned(),
        seconds @ 2..MINUTE_S => format!("{seconds}s ago"),
        seconds @ MINUTE_S..HOUR_S => format!("{}m ago", seconds / MINUTE_S),
        seconds @ HOUR_S..DAY_S => format!("{}h ago", seconds / HOUR_S),
        seconds => format!("{}d ago", seconds / DAY_S),
    }
}

/// Parses a duration as people type it: `90`, `1.5s`, `500ms`, `1h30m`; a bare number is in seconds.
#[must_use]
pub fn parse(text: &str) -> Option<Duration> {
    if let Ok(seconds) = text.parse::<f64>() {
        return Duration::try_from_secs_f64(seconds).ok();
    }
    let signed: SignedDuration = text.parse().ok()?;
    Duration::try_from(signed).ok()
}

/// Parses a whole number of one of `units`.
#[must_use]
pub fn parse_unit(number: &str, unit: &str, units: &[(&str, u64)]) -> Option<Duration> {
    let number: u64 = number.parse().ok()?;
    let (_, millis) = units.iter().find(|(name, _)| *name == unit)?;
    Some(Duration::from_millis(number.saturating_mul(*millis)))
}

/// Parses a sum of whole numbers of `units`, with or without spaces between them: `1h30m`.
#[must_use]
pub fn parse_sum(text: &str, units: &[(&str, u64)]) -> Option<Duration> {
    let mut rest = text;
    let mut sum = None;
    while !rest.is_empty() {
        let number_end = rest.find(|c: char| !c.is_ascii_digit())?;
        let (number, after) = rest.split_at(number_end);
        let unit_end = after.find(|c: char| !c.is_ascii_alphabetic());
        let (unit, after) = after.split_at(unit_end.unwrap_or(after.len()));
        let part = parse_unit(number, unit, units)?;
        sum = Some(sum.unwrap_or(Duration::ZERO).saturating_add(part));
        rest = after.trim_start();
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn from_secs(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn numbers_are_rounded_and_never_wrap() {
        assert_eq!(as_millis(Duration::MAX), u64::MAX);
        assert_eq!(as_millis(Duration::from_micros(1_999)), 1);
        assert!((as_seconds(Duration::from_micros(1_600)) - 0.002).abs() < f64::EPSILON);
        assert_eq!(from_seconds(1.5), Duration::from_millis(1_500));
        assert_eq!(from_seconds(-1.0), Duration::ZERO);
        assert_eq!(from_seconds(1e30), Duration::MAX);
        assert_eq!(from_seconds(f64::NAN), Duration::ZERO);
        assert_eq!(seconds(Duration::from_millis(200)), "0.2 s");
        assert_eq!(seconds(from_secs(3)), "3 s");
    }

    #[test]
    fn time_does_not_run_backwards() {
        let (early, late) = (Timestamp::UNIX_EPOCH, Timestamp::UNIX_EPOCH + from_secs(5));
        assert_eq!(between(early, late), from_secs(5));
        assert_eq!(between(late, early), Duration::ZERO);
    }

    #[test]
    fn compact_takes_two_units() {
        let formatted = [0.0, 9.99, 10.0, 59.9, 60.0, 61.0, 3_660.0, 90_000.0]
            .map(|seconds| compact(from_seconds(seconds)));
        let wanted = [
            "0.00s", "9.99s", "10s", "59s", "1m", "1m 1s", "1h 1m", "1d 1h",
        ];
        assert_eq!(formatted, wanted);
    }

    #[test]
    fn rounded_takes_one_unit() {
        for (seconds, text) in [
            (0, "0 ms"),
            (5, "5 s"),
            (119, "119 s"),
            (720, "12 min"),
            (7_200, "2 h"),
            (200_000, "2 days"),
        ] {
            assert_eq!(rounded(from_secs(seconds)), text);
        }
    }

    #[test]
    fn ages_take_one_unit() {
        assert_eq!(
            [0, 1, 5, 60, 7_200, 200_000].map(|seconds| age(from_secs(seconds))),
            [
                "just now", "just now", "5s ago", "1m ago", "2h ago", "2d ago"
            ]
        );
    }

    #[test]
    fn durations_are_parsed_as_people_type_them() {
        let parsed = |text: &str| parse(text).map(as_millis);
        assert_eq!(parsed("90"), Some(90_000));
        assert_eq!(parsed("1.5"), Some(1_500));
        assert_eq!(parsed("500ms"), Some(500));
        assert_eq!(parsed("1h30m"), Some(5_400_000));
        assert_eq!(parsed("0"), Some(0));
        for invalid in ["", "-1", "-1s", "soon", "1e400", "nan", "inf"] {
            assert_eq!(parsed(invalid), None, "{invalid}");
        }
    }

    #[test]
    fn sums_have_whole_numbers_and_known_units() {
        let parsed = |text: &str| parse_sum(text, &CALENDAR_UNITS).map(as_millis);
        assert_eq!(parsed("1h30m"), Some(5_400_000));
        assert_eq!(parsed("1d 12h"), Some(129_600_000));
        assert_eq!(parsed("250ms"), Some(250));
        assert_eq!(parsed("99999999999999999w"), Some(u64::MAX));
        for invalid in ["", "10", "10x", "m", "1.5s", "-5m", "10 m", "5sé"] {
            assert_eq!(parsed(invalid), None, "{invalid}");
        }
        assert_eq!(parse_sum("1d", &CLOCK_UNITS), None);
        assert_eq!(parse_unit("5", "m", &CLOCK_UNITS), Some(from_secs(300)));
        assert_eq!(parse_unit("", "m", &CLOCK_UNITS), None);
    }
}
