//! Values as PostgreSQL takes them.

use sha2::{Digest as _, Sha256};

/// A text without the character NUL, which PostgreSQL has no place for.
pub(super) fn text(value: &str) -> String {
    value.replace('\0', "\u{fffd}")
}

/// What a name is found by.
pub(super) fn name_hash(name: &str) -> i64 {
    first_number(&Sha256::digest(text(name).as_bytes()))
}

/// The first 64 bits of a digest.
pub(super) fn first_number(digest: &[u8]) -> i64 {
    let first = digest.first_chunk::<8>().copied().unwrap_or_default();
    i64::from_be_bytes(first)
}

/// Names as JSON.
pub(super) fn names_json(names: &[String]) -> String {
    let names: Vec<String> = names.iter().map(|name| text(name)).collect();
    serde_json::Value::from(names).to_string()
}
