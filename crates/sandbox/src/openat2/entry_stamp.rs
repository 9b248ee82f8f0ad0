//! [`EntryStamp`]: distinguishes one state of a file from another.

use ostler_model::{ConflictReason, FileKind};
use rustix::fs::{FileType, Stat};
use serde::{Deserialize, Serialize};

/// Mode bits that are ever set on the host: setuid and setgid are not among them.
pub(crate) const MODE_BITS: u32 = 0o1777;

/// The state of a directory entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct EntryStamp {
    pub(crate) kind: EntryKind,
    /// Permission bits, all twelve.
    pub(crate) mode: u32,
    pub(crate) ino: u64,
    pub(crate) dev: u64,
    /// The size in bytes; 0 for anything but regular files and links.
    pub(crate) size: u64,
    /// Nanoseconds since 1970.
    pub(crate) mtime_ns: i64,
    /// Nanoseconds since 1970.
    pub(crate) ctime_ns: i64,
}

/// The kind of an entry, as far as it matters here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum EntryKind {
    File,
    Directory,
    Symlink,
    Special,
}

impl From<EntryKind> for FileKind {
    fn from(kind: EntryKind) -> Self {
        match kind {
            EntryKind::File => Self::File,
            EntryKind::Directory => Self::Directory,
            EntryKind::Symlink => Self::Symlink,
            EntryKind::Special => Self::Special,
        }
    }
}

impl EntryStamp {
    #[expect(
        clippy::unnecessary_cast,
        clippy::cast_sign_loss,
        reason = "fields of struct stat differ by machine; sizes and inodes are never negative"
    )]
    pub(crate) fn of(stat: &Stat) -> Self {
        let kind = entry_kind(stat);
        let sized = matches!(kind, EntryKind::File | EntryKind::Symlink);
        Self {
            kind,
            mode: stat.st_mode & 0o7777,
            ino: stat.st_ino as u64,
            dev: stat.st_dev as u64,
            size: if sized { stat.st_size as u64 } else { 0 },
            mtime_ns: nanos(stat.st_mtime as i64, stat.st_mtime_nsec as i64),
            ctime_ns: nanos(stat.st_ctime as i64, stat.st_ctime_nsec as i64),
        }
    }

    /// The bytes of a regular file, 0 of anything else.
    pub(crate) const fn bytes(&self) -> u64 {
        match self.kind {
            EntryKind::File => self.size,
            EntryKind::Directory | EntryKind::Symlink | EntryKind::Special => 0,
        }
    }

    /// How `now` differs from `before`, if it does.
    pub(crate) fn conflict(before: Option<&Self>, now: Option<&Self>) -> Option<ConflictReason> {
        let (then, now) = match (before, now) {
            (None, None) => return None,
            (None, Some(_)) => return Some(ConflictReason::Appeared),
            (Some(_), None) => return Some(ConflictReason::Vanished),
            (Some(then), Some(now)) => (then, now),
        };
        if (then.kind, then.ino, then.dev) != (now.kind, now.ino, now.dev) {
            return Some(ConflictReason::Replaced);
        }
        let same = match then.kind {
            // Entries of a directory change; each has a conflict of its own.
            EntryKind::Directory => then.mode == now.mode,
            EntryKind::File | EntryKind::Symlink | EntryKind::Special => {
                then.has_same_content(now) && then.ctime_ns == now.ctime_ns
            }
        };
        (!same).then_some(ConflictReason::Modified)
    }

    /// Whether it is the same file with the same bytes; its names may differ.
    pub(crate) fn has_same_content(&self, now: &Self) -> bool {
        (self.kind, self.ino, self.dev) == (now.kind, now.ino, now.dev)
            && (self.size, self.mtime_ns) == (now.size, now.mtime_ns)
    }
}

/// The kind a stat(2) reports.
pub(crate) fn entry_kind(stat: &Stat) -> EntryKind {
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => EntryKind::File,
        FileType::Directory => EntryKind::Directory,
        FileType::Symlink => EntryKind::Symlink,
        FileType::Fifo
        | FileType::Socket
        | FileType::CharacterDevice
        | FileType::BlockDevice
        | FileType::Unknown => EntryKind::Special,
    }
}

/// A time in nanoseconds, saturating at the range of an `i64` (1677 to 2262).
const fn nanos(seconds: i64, nanoseconds: i64) -> i64 {
    seconds
        .saturating_mul(1_000_000_000)
        .saturating_add(nanoseconds)
}
