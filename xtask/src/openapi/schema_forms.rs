//! Schemas of types that are not read from the source, and parts of schemas.

use serde_json::{Value, json};

/// The largest integer that every reader of JSON can hold (RFC 8259, section 6).
pub(super) const INTEGER_MAX: u64 = (1 << 53) - 1;

/// Types with an implementation of their own, and those of other crates.
pub(super) fn special_form(name: &str) -> Option<Value> {
    Some(match name {
        "ByteString" => json!({
            "description": "Text; bytes that are not UTF-8 as base64.",
            "anyOf": [
                {"type": "string"},
                {
                    "type": "object",
                    "properties": {"base64": {"type": "string", "contentEncoding": "base64"}},
                    "required": ["base64"],
                    "additionalProperties": false,
                },
            ],
        }),
        "Timestamp" => json!({
            "description": "A time, as RFC 3339 has it.", "type": "string", "format": "date-time"
        }),
        "PortRequestBody" => json!({
            "description": "A port, or `auto` for a free one.",
            "anyOf": [
                {"type": "integer", "minimum": 1, "maximum": u16::MAX},
                {"const": "auto"},
            ],
        }),
        _ => return None,
    })
}

pub(super) fn primitive(name: &str) -> Option<Value> {
    Some(match name {
        "String" | "str" | "char" | "SocketAddr" | "IpAddr" => json!({"type": "string"}),
        "Uuid" => json!({"type": "string", "format": "uuid"}),
        "bool" => json!({"type": "boolean"}),
        "f32" | "f64" => json!({"type": "number"}),
        "u8" => unsigned(u64::from(u8::MAX)),
        "u16" => unsigned(u64::from(u16::MAX)),
        "u32" => unsigned(u64::from(u32::MAX)),
        "u64" | "usize" => unsigned(INTEGER_MAX),
        "i32" => json!({"type": "integer", "minimum": i32::MIN, "maximum": i32::MAX}),
        "i64" => json!({"type": "integer"}),
        "Value" => json!({}),
        _ => return None,
    })
}

pub(super) fn unsigned(maximum: u64) -> Value {
    json!({"type": "integer", "minimum": 0, "maximum": maximum})
}

pub(super) fn network_words() -> Value {
    json!({"anyOf": [
        {"type": "string", "enum": ["none", "full"]},
        {"type": "array", "items": {"type": "string"}},
    ]})
}

/// The variants without fields, and what each means.
pub(super) fn words_schema(words: &[(String, String)]) -> Value {
    let names: Vec<&str> = words.iter().map(|(name, _)| name.as_str()).collect();
    let meanings = words.iter().filter(|(_, doc)| !doc.is_empty());
    let meanings: Vec<String> = meanings
        .map(|(name, doc)| format!("`{name}`: {doc}"))
        .collect();
    described(
        json!({"type": "string", "enum": names}),
        &meanings.join("\n\n"),
    )
}

/// The schema with a description before the one that it has.
pub(super) fn described(mut schema: Value, text: &str) -> Value {
    if text.is_empty() {
        return schema;
    }
    let text = match schema.get("description").and_then(Value::as_str) {
        Some(more) if schema.get("$ref").is_none() => format!("{text}\n\n{more}"),
        _ => text.to_owned(),
    };
    schema["description"] = text.into();
    schema
}

pub(super) fn or_null(schema: Value) -> Value {
    if schema == json!({}) {
        return schema;
    }
    json!({"anyOf": [schema, {"type": "null"}]})
}

/// Undoes [`or_null`].
pub(super) fn without_null(schema: Value) -> Value {
    match schema.get("anyOf").and_then(Value::as_array) {
        Some(choices) if choices.len() == 2 && choices[1] == json!({"type": "null"}) => {
            choices[0].clone()
        }
        _ => schema,
    }
}
