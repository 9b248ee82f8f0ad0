//! What written records survive.

use serde::{Deserialize, Serialize};

/// What a record survives once it was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Durability {
    /// The end of every process: it is in the kernel's page cache.
    #[default]
    PageCache,
    /// A loss of power, too: it is on the disk, by fsync(2).
    Fsync,
}

impl Durability {
    /// The names of all values, as settings spell them.
    pub const NAMES: [&str; 2] = ["page_cache", "fsync"];

    /// The value with this name.
    #[must_use]
    pub fn by_name(name: &str) -> Option<Self> {
        match name {
            "page_cache" => Some(Self::PageCache),
            "fsync" => Some(Self::Fsync),
            _ => None,
        }
    }

    /// Whether records are forced to the disk.
    #[must_use]
    pub const fn is_fsync(self) -> bool {
        matches!(self, Self::Fsync)
    }
}
