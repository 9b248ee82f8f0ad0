//! Values of parameters.

use ostler_model::{ByteString, visible};

use crate::definition::{ParameterType, TemplateParameter};

/// The longest value, in bytes.
pub(crate) const VALUE_BYTES: usize = 32 * 1024;
/// The most characters of a wrong value that a message quotes.
const QUOTED_CHARS: usize = 60;

/// The text that stands for this value in an argument.
///
/// # Errors
/// What is wrong with it, and what is allowed.
pub(crate) fn check_value(
    parameter: &TemplateParameter,
    value: &ByteString,
) -> Result<ByteString, String> {
    if value.has_nul() {
        return Err("contains a NUL byte".to_owned());
    }
    if value.len() > VALUE_BYTES {
        let length = value.len();
        return Err(format!("is {length} bytes long; allowed: {VALUE_BYTES}"));
    }
    let text = || std::str::from_utf8(value.as_bytes()).ok();
    let not = |allowed: &str| format!("is {}; allowed: {allowed}", quote(value));
    match parameter.kind {
        ParameterType::String => Ok(value.clone()),
        ParameterType::Integer => {
            let number = text().and_then(|text| text.parse::<i64>().ok());
            let number = number.ok_or_else(|| not("a whole number of 64 bits"))?;
            Ok(ByteString::from(number.to_string()))
        }
        ParameterType::Boolean => match text() {
            Some("true" | "false") => Ok(value.clone()),
            Some(_) | None => Err(not("true or false")),
        },
        ParameterType::Choice => {
            let is_option =
                text().is_some_and(|text| parameter.options.iter().any(|it| it == text));
            is_option
                .then(|| value.clone())
                .ok_or_else(|| not(&format!("one of {}", parameter.options.join(", "))))
        }
        ParameterType::Path if value.is_empty() => Err("is empty; allowed: a path".to_owned()),
        ParameterType::Path if value.as_bytes().starts_with(b"-") => Err(not(
            "a path that does not look like an option; write ./ before it",
        )),
        ParameterType::Path => Ok(value.clone()),
    }
}

fn quote(value: &ByteString) -> String {
    let text = value.to_string_lossy();
    let mut chars = text.chars();
    let beginning: String = chars.by_ref().take(QUOTED_CHARS).collect();
    let more = if chars.next().is_some() { "…" } else { "" };
    format!("'{}{more}'", visible(&beginning))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(kind: ParameterType, value: impl Into<ByteString>) -> Result<String, String> {
        let parameter = TemplateParameter {
            name: "p".to_owned(),
            kind,
            default: None,
            options: vec!["clean".to_owned(), "modern".to_owned()],
            description: String::new(),
        };
        check_value(&parameter, &value.into()).map(|it| it.to_string())
    }

    #[test]
    fn each_type_takes_its_values() {
        for (kind, value, text) in [
            (ParameterType::String, "-x\ny\u{1b}", "-x\ny\u{1b}"),
            (ParameterType::String, "", ""),
            (ParameterType::Integer, "-07", "-7"),
            (
                ParameterType::Integer,
                "9223372036854775807",
                "9223372036854775807",
            ),
            (ParameterType::Boolean, "false", "false"),
            (ParameterType::Choice, "modern", "modern"),
            (ParameterType::Path, "a b/-c", "a b/-c"),
        ] {
            assert_eq!(check(kind, value).as_deref(), Ok(text));
        }
    }

    #[test]
    fn and_no_others() {
        for (kind, value, reason) in [
            (ParameterType::Integer, "", "whole number"),
            (ParameterType::Integer, "1.5", "'1.5'"),
            (ParameterType::Integer, "9223372036854775808", "64 bits"),
            (ParameterType::Boolean, "yes", "true or false"),
            (ParameterType::Choice, "Clean", "one of clean, modern"),
            (ParameterType::Path, "", "empty"),
            (ParameterType::Path, "--force", "look like an option"),
            (ParameterType::String, "a\0b", "NUL"),
        ] {
            let error = check(kind, value).unwrap_err();
            assert!(error.contains(reason), "{value}: {error}");
        }
        let long = "x".repeat(VALUE_BYTES + 1);
        assert!(
            check(ParameterType::String, long)
                .unwrap_err()
                .contains("32769 bytes")
        );
    }

    #[test]
    fn what_a_message_quotes_is_short_and_visible() {
        let error = check(
            ParameterType::Choice,
            format!("\u{1b}[2J{}", "x".repeat(500)),
        )
        .unwrap_err();
        assert!(error.len() < 200 && !error.contains('\u{1b}'), "{error}");
    }

    #[test]
    fn values_that_are_no_text_stay_as_they_are() {
        let parameter = TemplateParameter {
            name: "p".to_owned(),
            kind: ParameterType::Path,
            default: None,
            options: Vec::new(),
            description: String::new(),
        };
        let value = ByteString::from(vec![b'a', 0xff]);
        assert_eq!(check_value(&parameter, &value), Ok(value));
    }
}
