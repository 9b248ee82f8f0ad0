//! A parameter that names a time in the past.

use jiff::tz::TimeZone;
use ostler_model::Timestamp;
use ostler_render::{TimeOrCursor, parse_time_or_cursor};

use crate::error::ApiError;

/// The time that a parameter names: a time, or how long ago. A cursor is none.
///
/// # Errors
/// When it is no time.
pub fn past_time(name: &'static str, given: &str) -> Result<Timestamp, ApiError> {
    match parse_time_or_cursor(name, given, Timestamp::now(), &TimeZone::system())? {
        TimeOrCursor::Time(at) => Ok(at),
        TimeOrCursor::Cursor(_) => Err(ApiError::value(format!(
            "parameter '{name}' is '{given}'; allowed: a time, or how long ago as in 10m"
        ))),
    }
}
