//! The beginning of a line that names a place: `file:line:column: …`.

use crate::diagnostic::SourceLocation;
use crate::limits::NAME_BYTES;

/// Splits `file:line: rest` or `file:line:column: rest`.
pub(crate) fn split_location(text: &str) -> Option<(SourceLocation, &str)> {
    if text.starts_with(char::is_whitespace) {
        return None;
    }
    let colons = text.match_indices(':').map(|(at, _)| at);
    for at in colons.take_while(|&at| at <= NAME_BYTES) {
        let Some((line, after)) = leading_number(&text[at + 1..]) else {
            continue;
        };
        let (column, after) = match after.strip_prefix(':').and_then(leading_number) {
            Some((column, after)) => (Some(column), after),
            None => (None, after),
        };
        if let Some(rest) = after.strip_prefix(": ")
            && at > 0
        {
            let location = SourceLocation {
                file: text[..at].to_owned(),
                line: Some(line),
                column,
            };
            return Some((location, rest));
        }
    }
    None
}

/// Parses `file:line:column` as a whole.
pub(super) fn whole_location(text: &str) -> Option<SourceLocation> {
    let (rest, column) = text.trim_end().rsplit_once(':')?;
    let (file, line) = rest.rsplit_once(':')?;
    (!file.is_empty()).then_some(SourceLocation {
        file: file.to_owned(),
        line: Some(line.parse().ok()?),
        column: Some(column.parse().ok()?),
    })
}

/// The number that a text begins with, and what follows it.
pub(super) fn leading_number(text: &str) -> Option<(u32, &str)> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, rest) = text.split_at(digits);
    Some((number.parse().ok()?, rest))
}
