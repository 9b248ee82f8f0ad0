//! JSON for people: what fits on a line stands on one, and fields are in the order of their names.

use serde_json::Value;

/// The longest line, in bytes; only a single text or number can be longer.
const WIDTH: usize = 100;
const INDENT: usize = 2;

/// The text of a value. It is the same whatever the features of the JSON library are.
pub(super) fn json_text(value: &Value) -> String {
    let mut text = String::new();
    write(value, 0, 0, &mut text);
    text.push('\n');
    text
}

/// Writes a value at this depth; `before` is the length of what stands before it on its line.
fn write(value: &Value, depth: usize, before: usize, text: &mut String) {
    let line = one_line(value);
    // A comma may follow.
    if depth * INDENT + before + line.len() < WIDTH {
        return text.push_str(&line);
    }
    match value {
        Value::Object(_) => {
            let entries = sorted_fields(value).into_iter();
            let entries = entries.map(|(name, it)| (format!("{}: ", Value::from(name)), it));
            write_entries(['{', '}'], entries, depth, text);
        }
        Value::Array(items) => {
            let entries = items.iter().map(|it| (String::new(), it));
            write_entries(['[', ']'], entries, depth, text);
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => text.push_str(&line),
    }
}

fn write_entries<'a>(
    brackets: [char; 2],
    entries: impl Iterator<Item = (String, &'a Value)>,
    depth: usize,
    text: &mut String,
) {
    text.push(brackets[0]);
    for (index, (name, value)) in entries.enumerate() {
        text.push_str(if index == 0 { "\n" } else { ",\n" });
        text.push_str(&" ".repeat((depth + 1) * INDENT));
        text.push_str(&name);
        write(value, depth + 1, name.len(), text);
    }
    text.push('\n');
    text.push_str(&" ".repeat(depth * INDENT));
    text.push(brackets[1]);
}

fn one_line(value: &Value) -> String {
    match value {
        Value::Object(_) => {
            let fields = sorted_fields(value).into_iter();
            let fields =
                fields.map(|(name, it)| format!("{}: {}", Value::from(name), one_line(it)));
            format!("{{{}}}", fields.collect::<Vec<_>>().join(", "))
        }
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(one_line).collect();
            format!("[{}]", items.join(", "))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.to_string(),
    }
}

fn sorted_fields(value: &Value) -> Vec<(&str, &Value)> {
    let fields = value.as_object().into_iter().flatten();
    let mut fields: Vec<_> = fields.map(|(name, it)| (name.as_str(), it)).collect();
    fields.sort_by_key(|(name, _)| *name);
    fields
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_fits_stands_on_one_line() {
        let value = json!({"b": [1, {}], "a": "x\"y"});
        assert_eq!(json_text(&value), "{\"a\": \"x\\\"y\", \"b\": [1, {}]}\n");
        let value = json!({"list": ["a".repeat(60), "b".repeat(60)], "empty": []});
        let text = json_text(&value);
        assert_eq!(text.lines().count(), 7, "{text}");
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), value);
    }
}
