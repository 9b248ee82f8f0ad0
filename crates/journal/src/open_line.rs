//! A line whose end was not found yet.

/// What is known of the line so far.
#[derive(Debug, Clone, Default)]
pub(crate) struct OpenLine {
    pub(crate) offset: u64,
    pub(crate) at_ns: i64,
    pub(crate) number: u64,
    /// Its first bytes.
    pub(crate) kept: Vec<u8>,
    pub(crate) len: u64,
    /// The offset after its last byte so far.
    pub(crate) end: u64,
}

impl OpenLine {
    /// Appends bytes that begin at `offset`.
    pub(crate) fn extend(&mut self, bytes: &[u8], offset: u64, keep: usize) {
        let remaining = keep.saturating_sub(self.kept.len()).min(bytes.len());
        // Bytes after a clipped part must not be joined to it.
        if self.kept.len() as u64 == self.len {
            self.kept.extend_from_slice(&bytes[..remaining]);
        }
        self.len += bytes.len() as u64;
        self.end = offset + bytes.len() as u64;
    }
}
