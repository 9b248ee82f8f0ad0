//! The text that a runner prints about a failed test.

use crate::limits::DETAILS_BYTES;

/// Collects lines, up to [`DETAILS_BYTES`].
#[derive(Debug, Clone, Default)]
pub(crate) struct FailureText {
    text: String,
    is_complete: bool,
}

impl FailureText {
    /// Adds a line; blank ones at the beginning are left out.
    pub(crate) fn push(&mut self, line: &str) {
        let line = line.trim_end();
        if self.is_complete || (self.text.is_empty() && line.is_empty()) {
            return;
        }
        if self.text.len() + line.len() >= DETAILS_BYTES {
            self.is_complete = true;
            return;
        }
        self.text.push_str(line);
        self.text.push('\n');
    }

    /// Ignores all further lines.
    pub(crate) const fn complete(&mut self) {
        self.is_complete = true;
    }

    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// The lines, without blank ones at the end.
    pub(crate) fn text(&self) -> &str {
        self.text.trim_end()
    }

    /// The first line that holds something and does not begin with `unless`.
    pub(crate) fn first_line(&self, unless: &str) -> &str {
        let mut lines = self.text.lines().map(str::trim);
        let holds =
            |line: &&str| !line.is_empty() && (unless.is_empty() || !line.starts_with(unless));
        lines.find(holds).unwrap_or_default()
    }

    /// The last line that holds something.
    pub(crate) fn last_line(&self) -> &str {
        self.text().lines().next_back().unwrap_or_default().trim()
    }
}
