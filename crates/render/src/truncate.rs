//! Truncates a text that may be long.

/// The text, truncated with a mark where it is longer than `chars` characters.
#[must_use]
pub fn truncated(text: &str, chars: usize) -> String {
    match text.char_indices().nth(chars) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
