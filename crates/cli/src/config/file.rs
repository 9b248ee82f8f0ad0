//! Configuration files: each value with its line number.

use std::io;
use std::path::Path;

use ostler_model::{ErrorCode, line_number};
use ostler_sys::regular_file;
use toml::de::{DeTable, DeValue};

use super::value::RawValue;
use crate::error::CommandError;

/// The size limit in bytes.
const FILE_BYTES: u64 = 1024 * 1024;

/// One value of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ConfigEntry {
    /// The name of the key: `table.key`.
    pub(crate) name: String,
    pub(crate) value: RawValue,
    /// The line number, from 1.
    pub(crate) line: usize,
}

/// Reads the file at `path`; none if there is no file and it is not required.
///
/// # Errors
/// When it cannot be read or is not TOML; the message names the line.
pub(crate) fn read(path: &Path, required: bool) -> Result<Option<Vec<ConfigEntry>>, CommandError> {
    match read_limited(path) {
        Ok(text) => parse(&text)
            .map(Some)
            .map_err(|(line, problem)| file_error(format!("{}:{line}: {problem}", path.display()))),
        Err(error) if error.kind() == io::ErrorKind::NotFound && !required => Ok(None),
        Err(error) => Err(file_error(format!(
            "{} cannot be read: {error}",
            path.display()
        ))),
    }
}

fn read_limited(path: &Path) -> io::Result<String> {
    // The usual way to say that there is none.
    if path == Path::new("/dev/null") {
        return Ok(String::new());
    }
    let file = regular_file::open(path)?;
    let size = file.metadata()?.len();
    if size > FILE_BYTES {
        return Err(io::Error::other(format!(
            "it has {size} bytes, more than {FILE_BYTES}"
        )));
    }
    io::read_to_string(file)
}

fn file_error(message: String) -> CommandError {
    CommandError::new(ErrorCode::Environment, message)
}

/// Parses a text; an error has its line number.
pub(super) fn parse(text: &str) -> Result<Vec<ConfigEntry>, (usize, String)> {
    let table = DeTable::parse(text).map_err(|error| {
        let at = error.span().map_or(0, |span| span.start);
        (line_number(text, at), error.message().to_owned())
    })?;
    let mut entries = Vec::new();
    collect(text, "", table.get_ref(), &mut entries);
    Ok(entries)
}

fn collect(text: &str, prefix: &str, table: &DeTable<'_>, entries: &mut Vec<ConfigEntry>) {
    for (key, value) in table {
        let name = format!("{prefix}{}", key.get_ref());
        if let DeValue::Table(inner) = value.get_ref() {
            collect(text, &format!("{name}."), inner, entries);
        } else {
            entries.push(ConfigEntry {
                name,
                value: raw_value(value.get_ref(), &text[value.span()]),
                line: line_number(text, key.span().start),
            });
        }
    }
}

fn raw_value(value: &DeValue<'_>, source_text: &str) -> RawValue {
    let unsupported = || RawValue::Unsupported(source_text.to_owned());
    match value {
        DeValue::String(text) => RawValue::Text(text.clone().into_owned()),
        DeValue::Boolean(flag) => RawValue::Flag(*flag),
        DeValue::Integer(number) => i64::from_str_radix(number.as_str(), number.radix())
            .map_or_else(|_| unsupported(), RawValue::Number),
        DeValue::Array(items) => {
            let texts = items.iter().map(|item| item.get_ref().as_str());
            texts
                .map(|text| text.map(str::to_owned))
                .collect::<Option<Vec<String>>>()
                .map_or_else(unsupported, RawValue::List)
        }
        DeValue::Float(_) | DeValue::Datetime(_) | DeValue::Table(_) => unsupported(),
    }
}
