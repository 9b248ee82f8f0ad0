//! A JSON value as its shape, which many values have in common, and the strings and numbers in it.

use serde_json::Value;

/// Stands in a shape for the next value.
const PLACE: u8 = 0;

/// The shape and the values, in the order of their places.
pub(super) fn split(mut value: Value) -> (Value, Vec<Value>) {
    let mut values = Vec::new();
    take_values(&mut value, &mut values);
    (value, values)
}

fn take_values(value: &mut Value, values: &mut Vec<Value>) {
    match value {
        Value::Null | Value::Bool(_) => {}
        Value::Number(_) | Value::String(_) => {
            values.push(std::mem::replace(value, Value::from(PLACE)));
        }
        Value::Array(elements) => elements.iter_mut().for_each(|it| take_values(it, values)),
        Value::Object(fields) => fields.values_mut().for_each(|it| take_values(it, values)),
    }
}

/// The value with this shape; none where the number of values is another.
pub(super) fn join(mut shape: Value, values: Vec<Value>) -> Option<Value> {
    let mut values = values.into_iter();
    put_values(&mut shape, &mut values)?;
    values.next().is_none().then_some(shape)
}

fn put_values(shape: &mut Value, values: &mut impl Iterator<Item = Value>) -> Option<()> {
    match shape {
        Value::Null | Value::Bool(_) | Value::String(_) => {}
        Value::Number(_) => *shape = values.next()?,
        Value::Array(elements) => {
            for element in elements {
                put_values(element, values)?;
            }
        }
        Value::Object(fields) => {
            for field in fields.values_mut() {
                put_values(field, values)?;
            }
        }
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_split_is_joined_to_the_same() {
        let value = json!([{"a": "x", "b": [1, null, true, {"c": -2.5, "d": ""}]}, {}, [], 0]);
        let (shape, values) = split(value.clone());
        assert_eq!(
            shape,
            json!([{"a": 0, "b": [0, null, true, {"c": 0, "d": 0}]}, {}, [], 0])
        );
        assert_eq!(
            values,
            [json!("x"), json!(1), json!(-2.5), json!(""), json!(0)]
        );
        assert_eq!(join(shape.clone(), values.clone()), Some(value));
        assert_eq!(join(shape.clone(), values[1..].to_vec()), None);
        let more = [values, vec![json!(1)]].concat();
        assert_eq!(join(shape, more), None);
    }
}
