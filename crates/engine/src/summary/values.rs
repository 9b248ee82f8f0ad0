//! The strings and numbers of a summary as bytes: times as differences, frequent words as numbers.
//! Only in memory, so the encoding can change with each version.

use std::borrow::Cow;

use ostler_model::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Number, Value};

/// Words that most ended commands have; each has the number of its place.
const WORDS: [&str; 8] = [
    "exited",
    "finished",
    "exit code 0",
    "exit code 1",
    "signaled",
    "stopped",
    "timed_out",
    "true",
];

#[derive(Debug, Serialize, Deserialize)]
enum EncodedValue<'a> {
    Integer(i64),
    Unsigned(u64),
    Float(f64),
    /// Nanoseconds since the time before it in the list; the first one since the Unix epoch.
    Time(i64),
    /// The index in [`WORDS`].
    Word(u8),
    Text(Cow<'a, str>),
}

/// Encodes strings and numbers; none where another value is among them.
pub(super) fn encode(values: &[Value]) -> Option<Vec<u8>> {
    let mut previous = 0;
    let encoded: Option<Vec<EncodedValue<'_>>> = values
        .iter()
        .map(|value| match value {
            Value::Number(number) => encode_number(number),
            Value::String(text) => Some(encode_text(text, &mut previous)),
            Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
        })
        .collect();
    postcard::to_stdvec(&encoded?).ok()
}

/// The values again; none where they cannot be read.
pub(super) fn decode(bytes: &[u8]) -> Option<Vec<Value>> {
    let encoded: Vec<EncodedValue<'_>> = postcard::from_bytes(bytes).ok()?;
    let mut previous = 0;
    encoded
        .into_iter()
        .map(|value| {
            Some(match value {
                EncodedValue::Integer(number) => number.into(),
                EncodedValue::Unsigned(number) => number.into(),
                EncodedValue::Float(number) => Number::from_f64(number)?.into(),
                EncodedValue::Time(since) => {
                    previous += since;
                    let time = Timestamp::from_nanosecond(previous.into()).ok()?;
                    time.to_string().into()
                }
                EncodedValue::Word(index) => (*WORDS.get(usize::from(index))?).into(),
                EncodedValue::Text(text) => text.into_owned().into(),
            })
        })
        .collect()
}

fn encode_number(number: &Number) -> Option<EncodedValue<'static>> {
    let integer = number.as_i64().map(EncodedValue::Integer);
    let unsigned = || number.as_u64().map(EncodedValue::Unsigned);
    let float = || number.as_f64().map(EncodedValue::Float);
    integer.or_else(unsigned).or_else(float)
}

fn encode_text<'a>(text: &'a str, previous: &mut i64) -> EncodedValue<'a> {
    let word = WORDS.iter().position(|word| *word == text);
    if let Some(index) = word.and_then(|index| u8::try_from(index).ok()) {
        return EncodedValue::Word(index);
    }
    let time = nanoseconds(text);
    let since = time.and_then(|time| Some((time, time.checked_sub(*previous)?)));
    match since {
        Some((time, since)) => {
            *previous = time;
            EncodedValue::Time(since)
        }
        None => EncodedValue::Text(text.into()),
    }
}

/// The time that this text is, where it is written as times are.
fn nanoseconds(text: &str) -> Option<i64> {
    // No other text is parsed: most begin with a letter or a slash.
    let time: Timestamp = text
        .starts_with(|c: char| c.is_ascii_digit())
        .then(|| text.parse().ok())??;
    (time.to_string() == text)
        .then(|| i64::try_from(time.as_nanosecond()).ok())
        .flatten()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn an_ended_command_takes_less_than_a_byte_for_two_characters() {
        let values = [
            json!("true"),
            json!("/home/user/project"),
            json!(1),
            json!("2026-11-26T12:20:12.474811176Z"),
            json!("2026-11-26T12:20:12.475785035Z"),
            json!("exited"),
            json!(0),
            json!("exit code 0"),
            json!("finished"),
            json!(23_686),
            json!("2026-11-26T12:20:12.474975126Z"),
            json!(5_206_016),
        ];
        let bytes = encode(&values).expect("strings and numbers");
        let text = serde_json::to_string(&values).expect("JSON");
        assert!(
            2 * bytes.len() < text.len(),
            "{} {}",
            bytes.len(),
            text.len()
        );
        assert_eq!(decode(&bytes), Some(values.to_vec()));
    }

    #[test]
    fn other_values_are_not_encoded() {
        for value in [json!(null), json!(true), json!([1]), json!({"a": 1})] {
            assert_eq!(encode(&[value]), None);
        }
        assert_eq!(decode(b"\x01\x09"), None);
    }

    fn values() -> impl Strategy<Value = Value> {
        prop_oneof![
            any::<i64>().prop_map(Value::from),
            any::<u64>().prop_map(Value::from),
            (-1.0e9..1.0e9).prop_map(|number: f64| json!(number)),
            ".{0,20}".prop_map(Value::from),
            "[0-9T:Z.-]{0,30}".prop_map(Value::from),
            any::<i64>().prop_map(|nanoseconds| {
                let time = Timestamp::from_nanosecond(nanoseconds.into());
                time.map_or(json!(0), |time| json!(time.to_string()))
            }),
            prop::sample::select(&WORDS[..]).prop_map(Value::from),
            Just(json!("0001-01-01T00:00:00Z")),
            Just(json!("9999-12-30T22:00:00.999999999Z")),
        ]
    }

    proptest! {
        #[test]
        fn what_is_encoded_is_decoded_to_the_same(values in prop::collection::vec(values(), 0..12)) {
            let bytes = encode(&values).expect("strings and numbers");
            prop_assert_eq!(decode(&bytes), Some(values));
        }
    }
}
