//! Execution ids: `UUIDv7`, with a short form for people and agents.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use thiserror::Error;
use uuid::Uuid;

/// The length of the short form in characters.
pub const SHORT_ID_CHARS: usize = 8;
const SHORT_ID_BITS: u32 = 40;
const ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";

/// The id of one execution: a `UUIDv7`, so ids sort by creation time. Never an OS pid.
///
/// People and agents see the short form, eight characters of Crockford base32 over the
/// last (random) 40 bits; the registry refuses to mint an id whose short form is taken,
/// so the short form is unambiguous within a state directory. Both forms are accepted.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ExecutionId(Uuid);

/// The idempotency key of terminal input: input sent again under the same id is written once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct InputId(Uuid);

impl InputId {
    /// Generates a new id.
    #[must_use]
    pub fn mint() -> Self {
        Self(Uuid::now_v7())
    }
}

impl From<ExecutionId> for InputId {
    /// The id of an input that was chosen like that of an execution.
    fn from(id: ExecutionId) -> Self {
        Self(id.0)
    }
}

impl fmt::Display for InputId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for InputId {
    type Err = IdError;

    fn from_str(text: &str) -> Result<Self, IdError> {
        let id = Uuid::parse_str(text).map_err(|_| IdError::Malformed(text.to_owned()))?;
        Ok(Self(id))
    }
}

/// Why a string is not an execution id.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum IdError {
    /// The string is empty.
    #[error("the id is empty; give the short form (8 characters) or the whole UUID")]
    Empty,
    /// The string is neither a UUID nor a short form.
    #[error("'{0}' is no id: give the short form (8 characters) or the whole UUID")]
    Malformed(String),
}

/// The forms in which a caller may refer to an execution.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IdRef {
    /// The whole UUID.
    Full(ExecutionId),
    /// The low 40 bits, to be looked up in the registry.
    Short(u64),
}

impl ExecutionId {
    /// Generates the id of an execution created now.
    #[must_use]
    pub fn mint() -> Self {
        Self(Uuid::now_v7())
    }

    /// Wraps bytes read from disk or the wire.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(Uuid::from_bytes(bytes))
    }

    /// The sixteen bytes, most significant first.
    #[must_use]
    pub const fn to_bytes(self) -> [u8; 16] {
        *self.0.as_bytes()
    }

    /// Whether it is a UUID of version 7 (RFC 9562), as every generated id is.
    #[must_use]
    pub fn is_version_7(self) -> bool {
        self.0.get_version_num() == 7 && self.0.get_variant() == uuid::Variant::RFC4122
    }

    /// When the id was generated, in milliseconds precision; none for a UUID of another version.
    #[must_use]
    pub fn minted_at(self) -> Option<crate::Timestamp> {
        let (seconds, nanos) = self.0.get_timestamp()?.to_unix();
        let seconds = i64::try_from(seconds).ok()?;
        crate::Timestamp::new(seconds, i32::try_from(nanos).ok()?).ok()
    }

    /// The low 40 bits, which the short form encodes.
    #[must_use]
    pub const fn short_bits(self) -> u64 {
        (self.0.as_u128() & ((1 << SHORT_ID_BITS) - 1)) as u64
    }

    /// The short form, for example `k3v9x0qa`.
    #[must_use]
    pub fn short(self) -> String {
        let bits = self.short_bits();
        (0..SHORT_ID_CHARS)
            .rev()
            .map(|place| char::from(ALPHABET[((bits >> (place * 5)) & 31) as usize]))
            .collect()
    }
}

impl fmt::Display for ExecutionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.hyphenated().fmt(f)
    }
}

impl fmt::Debug for ExecutionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for ExecutionId {
    type Err = IdError;

    fn from_str(text: &str) -> Result<Self, IdError> {
        Uuid::try_parse(text)
            .map(Self)
            .map_err(|_| IdError::Malformed(text.to_owned()))
    }
}

impl FromStr for IdRef {
    type Err = IdError;

    fn from_str(text: &str) -> Result<Self, IdError> {
        let text = text.trim();
        if text.is_empty() {
            return Err(IdError::Empty);
        }
        if text.len() != SHORT_ID_CHARS {
            return text.parse().map(Self::Full);
        }
        text.bytes()
            .try_fold(0, |bits: u64, byte| Some((bits << 5) | digit(byte)?))
            .map(Self::Short)
            .ok_or_else(|| IdError::Malformed(text.to_owned()))
    }
}

/// Decodes one digit of Crockford base32: case is ignored, `o` is 0, `i` and `l` are 1.
fn digit(byte: u8) -> Option<u64> {
    let byte = match byte.to_ascii_lowercase() {
        b'o' => b'0',
        b'i' | b'l' => b'1',
        other => other,
    };
    ALPHABET
        .iter()
        .position(|&known| known == byte)
        .map(|place| place as u64)
}
