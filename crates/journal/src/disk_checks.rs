//! The schedule by which a writer that buffers in memory checks whether its disk has room again.
//! Pure.
//!
//! A check costs one system call; an attempt to return to disk writes the whole ring. So the writer
//! checks where bytes would be lost, and returns only where the disk reports room.

/// Bytes written to the ring between two checks.
const CHECK_BYTES: u64 = 256 * 1024;
/// Nanoseconds after which the next bytes that would overwrite others are preceded by a check,
/// however few they are.
const CHECK_NS: u64 = 5_000_000;

/// The fill level of the ring.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RingFill {
    /// Bytes ever written to the ring.
    pub(crate) written: u64,
    /// Whether bytes were overwritten.
    pub(crate) has_lost: bool,
    /// Whether the next append overwrites bytes.
    pub(crate) overwrites: bool,
}

/// The history of the checks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct DiskChecks {
    written: u64,
    at_ns: i64,
    /// The disk reported room and then refused a write, as some quotas do.
    is_distrusted: bool,
}

impl DiskChecks {
    /// Whether a check is due.
    pub(crate) const fn is_due(self, fill: RingFill, at_ns: i64) -> bool {
        let is_large = fill.written.saturating_sub(self.written) >= CHECK_BYTES;
        let is_first_loss = fill.overwrites && !fill.has_lost;
        let is_overdue = fill.overwrites && at_ns.abs_diff(self.at_ns) >= CHECK_NS;
        is_large || is_first_loss || is_overdue
    }

    /// Records a check and its result; returns whether to try a return to disk.
    pub(crate) const fn record(&mut self, fill: RingFill, at_ns: i64, has_room: bool) -> bool {
        self.written = fill.written;
        self.at_ns = at_ns;
        let should_try = has_room && !self.is_distrusted;
        self.is_distrusted = self.is_distrusted && has_room;
        should_try
    }

    /// Records that the disk refused although it had reported free space: such reports are ignored
    /// until it reported none. Scheduled attempts continue.
    pub(crate) const fn record_refusal(&mut self) {
        self.is_distrusted = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn fill(written: u64, has_lost: bool, overwrites: bool) -> RingFill {
        RingFill {
            written,
            has_lost,
            overwrites,
        }
    }

    #[test]
    fn it_looks_after_so_much_and_before_the_first_loss() {
        let mut checks = DiskChecks::default();
        assert!(!checks.is_due(fill(CHECK_BYTES - 1, false, false), 0));
        assert!(checks.is_due(fill(CHECK_BYTES, false, false), 0));
        assert!(!checks.record(fill(CHECK_BYTES, false, false), 0, false));
        assert!(!checks.is_due(fill(CHECK_BYTES + 1, false, false), i64::MAX));
        assert!(
            checks.is_due(fill(CHECK_BYTES + 1, false, true), 0),
            "first"
        );
        assert!(!checks.is_due(fill(CHECK_BYTES + 1, true, true), 0));
        assert!(checks.is_due(fill(2 * CHECK_BYTES, true, true), 0));
    }

    #[test]
    fn after_a_while_it_looks_before_the_next_loss_however_small() {
        let mut checks = DiskChecks::default();
        let full = fill(4 * CHECK_BYTES, true, true);
        assert!(!checks.record(full, 1_000, false));
        let later = 1_000 + CHECK_NS.cast_signed();
        assert!(!checks.is_due(full, later - 1));
        assert!(checks.is_due(full, later));
        assert!(
            checks.is_due(full, 1_000 - CHECK_NS.cast_signed()),
            "a clock"
        );
    }

    #[test]
    fn a_disk_that_says_room_and_refuses_is_believed_once() {
        let mut checks = DiskChecks::default();
        let at = fill(CHECK_BYTES, false, false);
        assert!(checks.record(at, 0, true), "it tries");
        checks.record_refusal();
        assert!(!checks.record(at, 0, true));
        assert!(!checks.record(at, 0, true));
        assert!(!checks.record(at, 0, false), "a disk that was only full");
        assert!(checks.record(at, 0, true));
    }
}
