//! The values of parameters in JSON.

use std::collections::BTreeMap;

use ostler_model::{ByteString, ErrorCode};
use serde_json::{Map, Value};

use crate::error::ApiError;

/// The values of a JSON object as texts; null counts as absent.
///
/// # Errors
/// The names of all values that are lists or objects.
pub fn parameter_values(
    object: Map<String, Value>,
) -> Result<BTreeMap<String, ByteString>, ApiError> {
    let (mut values, mut wrong) = (BTreeMap::new(), Vec::new());
    for (name, value) in object {
        let text = match value {
            Value::Null => continue,
            Value::String(text) => text,
            Value::Number(number) => number.to_string(),
            Value::Bool(flag) => flag.to_string(),
            Value::Array(_) | Value::Object(_) => {
                wrong.push(name);
                continue;
            }
        };
        values.insert(name, ByteString::from(text));
    }
    if wrong.is_empty() {
        return Ok(values);
    }
    let names = wrong.join("', '");
    let message = format!(
        "field 'parameters': '{names}' is no text, number, true or false; allowed: one of these"
    );
    Err(ApiError::new(ErrorCode::Value, message))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn values(value: Value) -> Result<BTreeMap<String, ByteString>, ApiError> {
        parameter_values(crate::error::object(value))
    }

    #[test]
    fn scalars_are_texts_and_null_is_absent() {
        let texts = values(json!({"a": "x y", "b": 3, "c": true, "d": null})).unwrap();
        let pairs: Vec<_> = texts
            .iter()
            .map(|(name, text)| format!("{name}={text}"))
            .collect();
        assert_eq!(pairs, ["a=x y", "b=3", "c=true"]);
    }

    #[test]
    fn every_other_value_is_named() {
        let error = values(json!({"a": [], "b": 3, "c": {}})).unwrap_err();
        assert!(error.message.contains("'a', 'c'"), "{}", error.message);
    }
}
