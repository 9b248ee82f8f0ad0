//! Where a start's standard input comes from.

use std::fmt;

use ostler_model::ByteString;
use serde::de::{Error, MapAccess, Unexpected, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use super::strict::{end, excerpt, unknown_key};

const STDIN: &str = "\"default\", \"empty\", \"open\" or {\"given\": TEXT}";

/// The source of standard input.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum StdinBody {
    /// At end of file for commands; open and silent for services.
    #[default]
    Default,
    /// At end of file.
    Empty,
    /// These bytes, then end of file.
    Given(ByteString),
    /// Open until closed by `POST …/input?close=true`.
    Open,
}

impl<'de> Deserialize<'de> for StdinBody {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(StdinVisitor)
    }
}

struct StdinVisitor;

impl<'de> Visitor<'de> for StdinVisitor {
    type Value = StdinBody;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(STDIN)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<StdinBody, E> {
        match text {
            "default" => Ok(StdinBody::Default),
            "empty" => Ok(StdinBody::Empty),
            "open" => Ok(StdinBody::Open),
            other => Err(E::invalid_value(Unexpected::Str(&excerpt(other)), &self)),
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<StdinBody, A::Error> {
        let key: Option<String> = map.next_key()?;
        let given = match key.as_deref() {
            Some("given") => StdinBody::Given(map.next_value()?),
            Some(other) => return Err(unknown_key(other, STDIN)),
            None => return Err(A::Error::custom(format!("it is empty; allowed: {STDIN}"))),
        };
        end(map, STDIN)?;
        Ok(given)
    }
}
