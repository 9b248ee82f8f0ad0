//! Parses moments as people write them, and formats time prefixes.

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::fmt::strtime;
use jiff::tz::TimeZone;
use ostler_model::{Cursor, duration};
use thiserror::Error;

/// The default prefix of log lines.
const DEFAULT_FORMAT: &str = "%Y-%m-%d %H:%M:%S";
/// The accepted forms of a moment.
const ALLOWED: &str = "an ISO time (2023-05-06T14:30:00, local unless it has an offset), \
                       a time span before now (10m, 2h, 1d12h), or a cursor of an earlier answer";

/// A moment, or a position in the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimeOrCursor {
    /// A point in time.
    Time(Timestamp),
    /// A position.
    Cursor(Cursor),
}

/// An invalid moment or format.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum TimeError {
    /// Not a moment.
    #[error("parameter '{name}' is '{given}'; allowed: {ALLOWED}")]
    Moment {
        /// The parameter's name.
        name: &'static str,
        /// The value as given.
        given: String,
    },
    /// Not a strftime format.
    #[error("parameter '{name}' is '{given}': {problem}; allowed: strftime(3) conversions")]
    Format {
        /// The parameter's name.
        name: &'static str,
        /// The value as given.
        given: String,
        /// The problem with it.
        problem: String,
    },
}

/// Parses a time: RFC 3339, ISO in `zone`, a span before `now`, or a cursor.
///
/// # Errors
/// When it has none of these forms.
pub fn parse_time_or_cursor(
    name: &'static str,
    given: &str,
    now: Timestamp,
    zone: &TimeZone,
) -> Result<TimeOrCursor, TimeError> {
    let text = given.trim();
    let parsed = parse_cursor(text)
        .map(TimeOrCursor::Cursor)
        .or_else(|| parse_ago(text, now).map(TimeOrCursor::Time))
        .or_else(|| text.parse().ok().map(TimeOrCursor::Time))
        .or_else(|| parse_local(text, zone).map(TimeOrCursor::Time));
    parsed.ok_or_else(|| TimeError::Moment {
        name,
        given: given.to_owned(),
    })
}

/// A cursor; of those without an event only `0`, as another number may be a time without its unit.
fn parse_cursor(text: &str) -> Option<Cursor> {
    if text == "0" {
        return Some(Cursor::START);
    }
    let (offset, event) = text.split_once('.')?;
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    (digits(offset) && digits(event))
        .then(|| text.parse().ok())
        .flatten()
}

fn parse_local(text: &str, zone: &TimeZone) -> Option<Timestamp> {
    let civil: DateTime = text.parse().ok()?;
    let zoned = civil.to_zoned(zone.clone()).ok()?;
    Some(zoned.timestamp())
}

/// `10m`, `1h30m`, `2d ago`.
fn parse_ago(text: &str, now: Timestamp) -> Option<Timestamp> {
    let text = text.strip_suffix("ago").unwrap_or(text).trim();
    let ago = duration::parse_sum(text, &duration::CALENDAR_UNITS)?;
    now.checked_sub(ago).ok()
}

/// Formats the times before lines.
#[derive(Debug, Clone)]
pub struct TimestampPrefix {
    format: String,
    zone: TimeZone,
    cached: Option<(i64, String)>,
    whole_seconds: bool,
}

impl TimestampPrefix {
    /// Prefixes in `format` (strftime), or in the default one.
    ///
    /// # Errors
    /// When the format is invalid.
    pub fn new(
        name: &'static str,
        format: Option<String>,
        zone: TimeZone,
    ) -> Result<Self, TimeError> {
        let format = format.unwrap_or_else(|| DEFAULT_FORMAT.to_owned());
        let whole_seconds = format == DEFAULT_FORMAT;
        let probe = Timestamp::UNIX_EPOCH.to_zoned(zone.clone());
        match strtime::format(&format, &probe) {
            Ok(_) => Ok(Self {
                format,
                zone,
                cached: None,
                whole_seconds,
            }),
            Err(error) => Err(TimeError::Format {
                name,
                given: format,
                problem: error.to_string(),
            }),
        }
    }

    /// The prefix for one moment.
    pub fn at(&mut self, at: Timestamp) -> &str {
        let key = at.as_second();
        let fresh = |cached: &(i64, String)| cached.0 == key && self.whole_seconds;
        if !self.cached.as_ref().is_some_and(fresh) {
            let zoned = at.to_zoned(self.zone.clone());
            let text = strtime::format(&self.format, &zoned).unwrap_or_default();
            self.cached = Some((key, text));
        }
        self.cached.as_ref().map_or("", |(_, text)| text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Result<TimeOrCursor, TimeError> {
        let now: Timestamp = "2026-11-21T12:00:00Z".parse().unwrap();
        let zone = TimeZone::fixed(jiff::tz::offset(2));
        parse_time_or_cursor("since", text, now, &zone)
    }

    fn moment_at(text: &str) -> Result<TimeOrCursor, TimeError> {
        Ok(TimeOrCursor::Time(text.parse().unwrap()))
    }

    #[test]
    fn without_offset_is_local() {
        assert_eq!(at("2026-11-21T14:30:00"), moment_at("2026-11-21T12:30:00Z"));
        assert_eq!(at("2026-11-21 14:30"), moment_at("2026-11-21T12:30:00Z"));
        assert_eq!(at("2026-11-21"), moment_at("2026-11-20T22:00:00Z"));
    }

    #[test]
    fn rfc_3339_says_its_offset() {
        assert_eq!(
            at("2026-11-21T14:30:00Z"),
            moment_at("2026-11-21T14:30:00Z")
        );
        assert_eq!(
            at("2026-11-21T14:30:00.5+05:30"),
            moment_at("2026-11-21T09:00:00.5Z")
        );
    }

    #[test]
    fn spans_count_back_from_now() {
        assert_eq!(at("10m"), moment_at("2026-11-21T11:50:00Z"));
        assert_eq!(at("2h"), moment_at("2026-11-21T10:00:00Z"));
        assert_eq!(at("1h30m"), moment_at("2026-11-21T10:30:00Z"));
        assert_eq!(at("1d ago"), moment_at("2026-11-20T12:00:00Z"));
        assert_eq!(at("250ms"), moment_at("2026-11-21T11:59:59.75Z"));
    }

    #[test]
    fn a_cursor_is_a_position() {
        let cursor = Cursor {
            offset: 4096,
            event: 7,
        };
        assert_eq!(at("4096.7"), Ok(TimeOrCursor::Cursor(cursor)));
    }

    #[test]
    fn everything_else_is_refused_with_what_is_allowed() {
        for text in [
            "",
            "yesterday",
            "10",
            "10x",
            "m",
            "2026-13-01",
            "-5m",
            "99999999999999d",
            "1.2.3",
        ] {
            let error = at(text).unwrap_err().to_string();
            assert!(
                error.contains(&format!("'since' is '{text}'; allowed")),
                "{error}"
            );
        }
    }

    #[test]
    fn prefixes_follow_their_format() {
        let zone = TimeZone::fixed(jiff::tz::offset(2));
        let moment: Timestamp = "2026-11-21T12:00:00.25Z".parse().unwrap();
        let mut plain = TimestampPrefix::new("f", None, zone.clone()).unwrap();
        assert_eq!(plain.at(moment), "2026-11-21 14:00:00");
        let format = Some("%H:%M:%S%.3f %z".to_owned());
        let mut fine = TimestampPrefix::new("f", format, zone.clone()).unwrap();
        assert_eq!(fine.at(moment), "14:00:00.250 +0200");
        for wrong in ["%", "%&", "%!"] {
            let error = TimestampPrefix::new("f", Some(wrong.to_owned()), zone.clone());
            assert!(error.is_err(), "{wrong}");
        }
    }
}
