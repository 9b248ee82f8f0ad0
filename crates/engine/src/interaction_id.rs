//! The ids of interactions.

use std::fmt;

use serde::Serialize;

/// The id of one interaction: `i` and its number since the engine was opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct InteractionId(pub(crate) u64);

impl InteractionId {
    /// Parses an id; none where the text is no id.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let digits = text.trim().strip_prefix(['i', 'I'])?;
        let is_canonical = !digits.starts_with(['0', '+']);
        digits.parse().ok().filter(|_| is_canonical).map(Self)
    }
}

impl fmt::Display for InteractionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "i{}", self.0)
    }
}

impl Serialize for InteractionId {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}
