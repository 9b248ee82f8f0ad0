//! The forms in which programs print the value of a secret.

use std::collections::HashSet;
use std::fmt;

/// The shortest form besides the value itself, in bytes: a shorter one would be replaced wherever a
/// word of output happens to contain it.
const FORM_MIN_BYTES: usize = 6;
/// The shortest line of a value that is replaced by itself, in bytes.
const LINE_MIN_BYTES: usize = 8;

/// How a value was changed. The names are part of persisted records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SecretForm {
    /// Not at all.
    Value,
    /// Without the line ends at its end, as `$(…)` passes it on.
    Trimmed,
    /// That, with line ends of one byte.
    LineFeeds,
    /// The same with line ends of two bytes, as a terminal prints it.
    CarriageReturns,
    /// Its words, separated by spaces, as a shell passes it on without quotes.
    Words,
    /// Escaped as a string in JSON.
    Json,
    /// The same in ASCII.
    AsciiJson,
    /// One of its lines, counted from 1.
    Line(usize),
}

impl fmt::Display for SecretForm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Value => "value",
            Self::Trimmed => "trimmed",
            Self::LineFeeds => "lf",
            Self::CarriageReturns => "crlf",
            Self::Words => "words",
            Self::Json => "json",
            Self::AsciiJson => "ascii json",
            Self::Line(number) => return write!(f, "line {number}"),
        })
    }
}

/// The forms of a value, itself first, each once. Empty values have none.
#[must_use]
pub fn secret_forms(value: &[u8]) -> Vec<(SecretForm, Vec<u8>)> {
    if value.is_empty() {
        return Vec::new();
    }
    let mut forms = vec![(SecretForm::Value, value.to_vec())];
    let mut known = HashSet::from([value.to_vec()]);
    let mut add = |form, bytes: Vec<u8>, min_bytes| {
        if bytes.len() >= min_bytes && known.insert(bytes.clone()) {
            forms.push((form, bytes));
        }
    };
    let trimmed = without_last_line_ends(value);
    let lines: Vec<&[u8]> = trimmed
        .split(|byte| *byte == b'\n')
        .map(|line| line.strip_suffix(b"\r").unwrap_or(line))
        .collect();
    let words: Vec<&[u8]> = trimmed
        .split(u8::is_ascii_whitespace)
        .filter(|word| !word.is_empty())
        .collect();
    let whole = [
        (SecretForm::Trimmed, trimmed.to_vec()),
        (SecretForm::LineFeeds, lines.join(&b"\n"[..])),
        (SecretForm::CarriageReturns, lines.join(&b"\r\n"[..])),
        (SecretForm::Words, words.join(&b" "[..])),
        (SecretForm::Json, json_escaped(trimmed)),
        (SecretForm::AsciiJson, ascii_json_escaped(trimmed)),
    ];
    for (form, bytes) in whole {
        add(form, bytes, FORM_MIN_BYTES);
    }
    if lines.len() > 1 {
        for (line, number) in lines.into_iter().zip(1..) {
            let line = line.trim_ascii();
            if !is_boundary(line) {
                add(SecretForm::Line(number), line.to_vec(), LINE_MIN_BYTES);
            }
        }
    }
    forms
}

/// The value without the line ends at its end.
#[must_use]
pub fn without_last_line_ends(value: &[u8]) -> &[u8] {
    let is_text = |byte: &u8| !matches!(byte, b'\n' | b'\r');
    let end = value.iter().rposition(is_text).map_or(0, |last| last + 1);
    &value[..end]
}

/// Whether a line only says what the lines between are: `-----BEGIN CERTIFICATE-----`.
fn is_boundary(line: &[u8]) -> bool {
    (line.starts_with(b"-----BEGIN ") || line.starts_with(b"-----END ")) && line.ends_with(b"-----")
}

fn json_escaped(text: &[u8]) -> Vec<u8> {
    let mut escaped = Vec::with_capacity(text.len());
    for byte in text {
        match byte {
            b'"' => escaped.extend_from_slice(b"\\\""),
            b'\\' => escaped.extend_from_slice(b"\\\\"),
            b'\n' => escaped.extend_from_slice(b"\\n"),
            b'\r' => escaped.extend_from_slice(b"\\r"),
            b'\t' => escaped.extend_from_slice(b"\\t"),
            0x08 => escaped.extend_from_slice(b"\\b"),
            0x0c => escaped.extend_from_slice(b"\\f"),
            0..0x20 => escaped.extend_from_slice(format!("\\u{byte:04x}").as_bytes()),
            _ => escaped.push(*byte),
        }
    }
    escaped
}

fn ascii_json_escaped(text: &[u8]) -> Vec<u8> {
    let escaped = json_escaped(text);
    let Ok(text) = std::str::from_utf8(&escaped) else {
        return escaped;
    };
    let mut ascii = String::with_capacity(text.len());
    for character in text.chars() {
        if character.is_ascii() {
            ascii.push(character);
            continue;
        }
        for unit in character.encode_utf16(&mut [0; 2]) {
            ascii.push_str(&format!("\\u{unit:04x}"));
        }
    }
    ascii.into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn forms(value: &str) -> Vec<(String, String)> {
        let text = |bytes| String::from_utf8(bytes).expect("text");
        let forms = secret_forms(value.as_bytes()).into_iter();
        forms
            .map(|(form, bytes)| (form.to_string(), text(bytes)))
            .collect()
    }

    fn pair(name: &str, text: &str) -> (String, String) {
        (name.to_owned(), text.to_owned())
    }

    #[test]
    fn a_plain_value_has_one_form() {
        assert_eq!(forms("hunter2hunter2"), [pair("value", "hunter2hunter2")]);
        assert_eq!(forms(""), []);
    }

    #[test]
    fn a_value_of_several_lines_has_each_form_once() {
        let key = "-----BEGIN KEY-----\nMIIEvQIBADAN\nshort\n-----END KEY-----\n";
        let wanted = [
            pair("value", key),
            pair("trimmed", key.trim_end()),
            pair("crlf", &key.trim_end().replace('\n', "\r\n")),
            pair("words", &key.trim_end().replace('\n', " ")),
            pair("json", &key.trim_end().replace('\n', "\\n")),
            pair("line 2", "MIIEvQIBADAN"),
        ];
        assert_eq!(forms(key), wanted);
    }

    #[test]
    fn escapes_are_those_of_json() {
        let wanted = [
            pair("value", "a\"b\\c\u{e9}\u{1}"),
            pair("json", "a\\\"b\\\\c\u{e9}\\u0001"),
            pair("ascii json", "a\\\"b\\\\c\\u00e9\\u0001"),
        ];
        assert_eq!(forms("a\"b\\c\u{e9}\u{1}"), wanted);
    }

    #[test]
    fn a_form_that_is_too_short_is_none() {
        assert_eq!(forms("abc\n\n\n\n"), [pair("value", "abc\n\n\n\n")]);
    }
}
