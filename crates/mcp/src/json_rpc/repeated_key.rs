//! Finds a key that a message has twice, which the parsers of messages refuse without its name.
//! Pure.

use std::collections::HashSet;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

/// The keys of one object: the first that is given twice, and the value of `params`.
#[derive(Debug, Default)]
struct ObjectKeys<'de> {
    repeated: Option<String>,
    params: Option<&'de RawValue>,
}

/// The first key that a message, or the object `params` in it, has twice.
pub(super) fn repeated_key(line: &[u8]) -> Option<String> {
    let message: ObjectKeys<'_> = serde_json::from_slice(line).ok()?;
    if message.repeated.is_some() {
        return message.repeated;
    }
    let params: ObjectKeys<'_> = serde_json::from_str(message.params?.get()).ok()?;
    params.repeated.map(|key| format!("params.{key}"))
}

impl<'de> Deserialize<'de> for ObjectKeys<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct KeysVisitor;

        impl<'de> Visitor<'de> for KeysVisitor {
            type Value = ObjectKeys<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Self::Value, A::Error> {
                let (mut found, mut known) = (ObjectKeys::default(), HashSet::new());
                while let Some(key) = fields.next_key::<String>()? {
                    if key == "params" {
                        found.params = Some(fields.next_value()?);
                    } else {
                        fields.next_value::<IgnoredAny>()?;
                    }
                    if found.repeated.is_none() && !known.insert(key.clone()) {
                        found.repeated = Some(key);
                    }
                }
                Ok(found)
            }
        }

        deserializer.deserialize_map(KeysVisitor)
    }
}
