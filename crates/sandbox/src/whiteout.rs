//! Names that an overlay marks as deleted.

use rustix::fs::{FileType, Stat};

/// Whether an entry of an upper layer is a whiteout: a character device with the number 0
/// (overlayfs, "whiteouts and opaque directories").
pub(crate) fn is_whiteout(stat: &Stat) -> bool {
    FileType::from_raw_mode(stat.st_mode) == FileType::CharacterDevice && stat.st_rdev == 0
}
