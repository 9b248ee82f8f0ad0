//! The YAML format: a sequence that can be appended to, one block mapping for each entry, flow
//! style inside.
//!
//! Strings are double-quoted; every character that YAML does not accept as printable is escaped.

use std::fmt::Write as _;
use std::io::Write;

use serde_json::Value;

use crate::entry::{EntryJson, EntrySink, ExportEntry};
use crate::error::ExportError;

/// Writes entries as items of a sequence.
pub(crate) struct YamlSink<W: Write>(pub(crate) W);

impl<W: Write> EntrySink for YamlSink<W> {
    fn entry(&mut self, entry: &ExportEntry<'_>) -> Result<(), ExportError> {
        let mut text = String::new();
        if let Value::Object(fields) = serde_json::to_value(EntryJson::from(entry))? {
            for (index, (key, value)) in fields.iter().enumerate() {
                text.push_str(if index == 0 { "- " } else { "  " });
                text.push_str(key);
                text.push_str(": ");
                push_flow_value(value, &mut text);
                text.push('\n');
            }
        }
        Ok(self.0.write_all(text.as_bytes())?)
    }
}

fn push_flow_value(value: &Value, text: &mut String) {
    match value {
        Value::Null => text.push_str("null"),
        Value::Bool(flag) => text.push_str(if *flag { "true" } else { "false" }),
        Value::Number(number) => text.push_str(&number.to_string()),
        Value::String(string) => push_quoted(string, text),
        Value::Array(items) => {
            text.push('[');
            for (index, item) in items.iter().enumerate() {
                push_separator(index, text);
                push_flow_value(item, text);
            }
            text.push(']');
        }
        Value::Object(fields) => {
            text.push('{');
            for (index, (key, item)) in fields.iter().enumerate() {
                push_separator(index, text);
                push_quoted(key, text);
                text.push_str(": ");
                push_flow_value(item, text);
            }
            text.push('}');
        }
    }
}

fn push_separator(index: usize, text: &mut String) {
    if index > 0 {
        text.push_str(", ");
    }
}

fn push_quoted(string: &str, text: &mut String) {
    text.push('"');
    for character in string.chars() {
        match character {
            '"' => text.push_str("\\\""),
            '\\' => text.push_str("\\\\"),
            '\n' => text.push_str("\\n"),
            '\t' => text.push_str("\\t"),
            '\r' => text.push_str("\\r"),
            plain if is_printable(plain) => text.push(plain),
            // Writing to a string does not fail.
            other => drop(write!(text, "\\U{:08x}", u32::from(other))),
        }
    }
    text.push('"');
}

/// Whether a character may appear unescaped in a quoted scalar (YAML 1.2, 5.1), line separators
/// excepted.
const fn is_printable(character: char) -> bool {
    matches!(
        character,
        ' '..='~' | '\u{a0}'..='\u{2027}' | '\u{202a}'..='\u{d7ff}' | '\u{e000}'..='\u{fefe}'
            | '\u{ff00}'..='\u{fffd}' | '\u{10000}'..
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_quoted_so_that_nothing_is_lost() {
        let mut text = String::new();
        push_quoted(
            "a\"b\\c\n\t\r\u{0}\u{1b}\u{7f}\u{85}\u{2028}\u{feff}ü汉😀",
            &mut text,
        );
        let want = "\"a\\\"b\\\\c\\n\\t\\r\\U00000000\\U0000001b\\U0000007f\\U00000085\\U00002028\\U0000feffü汉😀\"";
        assert_eq!(text, want);
    }
}
