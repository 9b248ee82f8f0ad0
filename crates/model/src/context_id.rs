//! Ids of contexts.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use thiserror::Error;

const PREFIX: &str = "ctx-";
const DIGITS: usize = 12;

/// The id of a context: `ctx-` and twelve lower-case hexadecimal digits. It is also the name of the
/// directory that Ostler creates for the context.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ContextId(String);

/// The error for a text that is no id of a context.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("'{0}' is no id of a context: ctx- and twelve hexadecimal digits")]
pub struct ContextIdError(String);

impl ContextId {
    /// The id of these bits.
    #[must_use]
    pub fn from_bytes(bytes: [u8; DIGITS / 2]) -> Self {
        Self(format!("{PREFIX}{}", crate::lower_hex(&bytes)))
    }

    /// The id as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for ContextId {
    type Err = ContextIdError;

    fn from_str(text: &str) -> Result<Self, ContextIdError> {
        let digits = text.strip_prefix(PREFIX).unwrap_or_default();
        let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        if digits.len() == DIGITS && digits.bytes().all(is_digit) {
            return Ok(Self(text.to_owned()));
        }
        Err(ContextIdError(text.to_owned()))
    }
}

impl TryFrom<String> for ContextId {
    type Error = ContextIdError;

    fn try_from(text: String) -> Result<Self, ContextIdError> {
        text.parse()
    }
}

impl From<ContextId> for String {
    fn from(id: ContextId) -> Self {
        id.0
    }
}

impl fmt::Display for ContextId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for ContextId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_written_so_is_an_id() {
        let id = ContextId::from_bytes([0, 1, 0xab, 0xff, 16, 7]);
        assert_eq!(id.as_str(), "ctx-0001abff1007");
        assert_eq!(id.as_str().parse(), Ok(id));
        for text in [
            "",
            "ctx-",
            "0001abff1007",
            "ctx-0001abff10",
            "ctx-0001ABFF1007",
            "ctx-0001abff1007/",
            "ctx-../../../etc",
            "ctx-0001abff100\n",
        ] {
            assert!(text.parse::<ContextId>().is_err(), "{text:?}");
        }
    }
}
