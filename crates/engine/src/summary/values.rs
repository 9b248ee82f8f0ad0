//! The strings and numbers of a summary as bytes: times as differences, frequent words as numbers.
//! Only in memory, so the encoding can change with each version.

use ostler_model::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Number;

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

/// A string or a number.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) enum Scalar {
    Integer(i64),
    Unsigned(u64),
    Float(f64),
    /// A string that is a time: nanoseconds since the time before it in the list; the first one since
    /// the Unix epoch.
    Time(i64),
    /// A string: the index in [`WORDS`].
    Word(u8),
    /// A string as in JSON, without its quotes.
    Text(String),
}

/// Strings and numbers, in their order.
#[derive(Debug, Default, PartialEq)]
pub(super) struct ScalarList {
    values: Vec<Scalar>,
    /// The last time, in nanoseconds since the Unix epoch.
    last_time: i64,
}

impl ScalarList {
    pub(super) fn push(&mut self, value: Scalar) {
        self.values.push(value);
    }

    /// Adds a string, as it is in JSON.
    pub(super) fn push_text(&mut self, text: String) {
        let word = WORDS.iter().position(|word| *word == text);
        if let Some(index) = word.and_then(|index| u8::try_from(index).ok()) {
            return self.push(Scalar::Word(index));
        }
        let time = nanoseconds(&text);
        let since = time.and_then(|time| Some((time, time.checked_sub(self.last_time)?)));
        match since {
            Some((time, since)) => {
                self.last_time = time;
                self.push(Scalar::Time(since));
            }
            None => self.push(Scalar::Text(text)),
        }
    }

    /// The JSON of each; none of one that cannot be read.
    pub(super) fn as_json(&self) -> impl Iterator<Item = Option<String>> {
        let mut time = 0_i64;
        self.values.iter().map(move |value| {
            Some(match value {
                Scalar::Integer(number) => number.to_string(),
                Scalar::Unsigned(number) => number.to_string(),
                Scalar::Float(number) => Number::from_f64(*number)?.to_string(),
                Scalar::Time(since) => {
                    time = time.checked_add(*since)?;
                    let time = Timestamp::from_nanosecond(time.into()).ok()?;
                    format!("\"{time}\"")
                }
                Scalar::Word(index) => format!("\"{}\"", WORDS.get(usize::from(*index))?),
                Scalar::Text(text) => format!("\"{text}\""),
            })
        })
    }

    pub(super) fn encode(&self) -> Option<Vec<u8>> {
        postcard::to_stdvec(&self.values).ok()
    }

    /// The list again, to be read only; none where it cannot be read.
    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        let values = postcard::from_bytes(bytes).ok()?;
        Some(Self {
            values,
            last_time: 0,
        })
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

    use super::*;

    fn list(values: &[Result<Scalar, &str>]) -> ScalarList {
        let mut list = ScalarList::default();
        for value in values {
            match value {
                Ok(number) => list.push(number.clone()),
                Err(text) => list.push_text((*text).to_owned()),
            }
        }
        list
    }

    fn decoded(list: &ScalarList) -> Vec<Option<String>> {
        let bytes = list.encode().expect("strings and numbers");
        let list = ScalarList::decode(&bytes).expect("the same");
        list.as_json().collect()
    }

    #[test]
    fn an_ended_command_takes_less_than_a_byte_for_two_characters() {
        let list = list(&[
            Err("true"),
            Err("/home/user/project"),
            Ok(Scalar::Unsigned(1)),
            Err("2026-11-26T12:20:12.474811176Z"),
            Err("2026-11-26T12:20:12.475785035Z"),
            Err("exited"),
            Err("exit code 0"),
            Err("finished"),
            Ok(Scalar::Unsigned(23_686)),
            Err("2026-11-26T12:20:12.474975126Z"),
            Ok(Scalar::Unsigned(5_206_016)),
        ]);
        let bytes = list.encode().expect("strings and numbers");
        let text: usize = list.as_json().map(|it| it.expect("JSON").len() + 1).sum();
        assert!(2 * bytes.len() < text, "{} {text}", bytes.len());
        assert_eq!(decoded(&list), list.as_json().collect::<Vec<_>>());
    }

    #[test]
    fn what_is_no_list_is_not_read() {
        assert_eq!(ScalarList::decode(b"\x01\x09"), None);
        for value in [Scalar::Word(200), Scalar::Float(f64::NAN)] {
            assert_eq!(decoded(&list(&[Ok(value)])), [None]);
        }
    }

    fn texts() -> impl Strategy<Value = String> {
        prop_oneof![
            "[a-z ]{0,20}",
            "[0-9T:Z.-]{0,30}",
            any::<i64>().prop_map(|nanoseconds| {
                let time = Timestamp::from_nanosecond(nanoseconds.into());
                time.map_or(String::new(), |time| time.to_string())
            }),
            prop::sample::select(&WORDS[..]).prop_map(str::to_owned),
            Just("0001-01-01T00:00:00Z".to_owned()),
            Just("9999-12-30T22:00:00.999999999Z".to_owned()),
        ]
    }

    proptest! {
        #[test]
        fn what_is_encoded_is_decoded_to_the_same(texts in prop::collection::vec(texts(), 0..12)) {
            let mut list = ScalarList::default();
            for text in &texts {
                list.push_text(text.clone());
            }
            let expected: Vec<_> = texts.iter().map(|text| Some(format!("\"{text}\""))).collect();
            prop_assert_eq!(decoded(&list), expected);
        }
    }
}
