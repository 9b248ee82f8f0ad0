//! The parameter `cursor`, which tools, resources and routes share.

use ostler_model::Cursor;
use ostler_model::cursor::CursorError;

use crate::error::ApiError;
use crate::params::Arguments;

/// Parses `cursor`; none when it is absent.
///
/// # Errors
/// When its value is no cursor.
pub fn parse_cursor(arguments: &mut Arguments) -> Result<Option<Cursor>, ApiError> {
    let given = arguments.text("cursor");
    let cursor = given.map(|given| given.parse()).transpose();
    cursor.map_err(|error: CursorError| ApiError::value(format!("parameter 'cursor': {error}")))
}
