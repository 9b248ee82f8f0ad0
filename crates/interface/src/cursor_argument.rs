//! The parameter `cursor`, which tools, resources and routes share.

use ostler_engine::ExecutionInfo;
use ostler_model::Cursor;
use ostler_model::cursor::CursorError;

use crate::error::ApiError;
use crate::params::Arguments;

/// What names a position in an execution's output, in errors.
pub const CURSOR_PARAMETER: &str = "parameter 'cursor'";
/// As [`CURSOR_PARAMETER`]: a time, or a position.
pub const SINCE_PARAMETER: &str = "parameter 'since'";

/// Parses `cursor`; none when it is absent.
///
/// # Errors
/// When its value is no cursor.
pub fn parse_cursor(arguments: &mut Arguments) -> Result<Option<Cursor>, ApiError> {
    let given = arguments.text("cursor");
    let cursor = given.map(|given| given.parse()).transpose();
    cursor.map_err(|error: CursorError| ApiError::value(format!("parameter 'cursor': {error}")))
}

/// Refuses a cursor beyond the output of an execution: it is that of another one, and what is
/// printed up to it would be left out. `source` names where it was given, such as
/// [`CURSOR_PARAMETER`]; `info` is of a time after that.
///
/// # Errors
/// When the cursor is beyond the output.
pub fn check_cursor(
    info: &ExecutionInfo,
    source: &str,
    cursor: Option<Cursor>,
) -> Result<(), ApiError> {
    // Where an unfinished line was shown finally, the cursor is one beyond it.
    let end = info.output_end.saturating_add(1);
    match cursor.filter(|cursor| cursor.offset > end) {
        None => Ok(()),
        Some(cursor) => Err(ApiError::value(format!(
            "{source} is \"{cursor}\", beyond the output of {}, which ends at {}; allowed: a cursor \
             of an answer about this process, or none",
            info.id.short(),
            info.output_end
        ))),
    }
}
