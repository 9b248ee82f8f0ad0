//! When a writer whose output goes to memory looks whether its disk has room again. Pure.
//!
//! A look costs one system call, a try to go back writes all of the ring. So the writer looks
//! where bytes are at stake, and tries where the disk says that it has room.

/// Bytes of the ring that are written between two looks.
const LOOK_BYTES: u64 = 256 * 1024;
/// Time after which the next bytes that would overwrite others are preceded by a look, however
/// few they are, in nanoseconds.
const LOOK_NS: u64 = 5_000_000;

/// How full the ring is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Fill {
    /// Bytes of the ring that were ever written.
    pub(crate) written: u64,
    /// Whether some were overwritten.
    pub(crate) has_lost: bool,
    /// Whether what is appended next overwrites some.
    pub(crate) overwrites: bool,
}

/// What was seen so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Looks {
    written: u64,
    at_ns: i64,
    /// The disk said that it had room, and refused. Some quotas are of that kind.
    doubted: bool,
}

impl Looks {
    /// Whether to look now.
    pub(crate) const fn is_due(self, fill: Fill, at_ns: i64) -> bool {
        let much = fill.written.saturating_sub(self.written) >= LOOK_BYTES;
        let first = fill.overwrites && !fill.has_lost;
        let later = fill.overwrites && at_ns.abs_diff(self.at_ns) >= LOOK_NS;
        much || first || later
    }

    /// Notes a look, and what the disk said; whether to try.
    pub(crate) const fn looked(&mut self, fill: Fill, at_ns: i64, has_room: bool) -> bool {
        self.written = fill.written;
        self.at_ns = at_ns;
        let tries = has_room && !self.doubted;
        self.doubted = self.doubted && has_room;
        tries
    }

    /// The disk refused what it had said it had room for: it is not believed again before it
    /// said that it has none. Others try it meanwhile, on their schedule.
    pub(crate) const fn refused(&mut self) {
        self.doubted = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn fill(written: u64, has_lost: bool, overwrites: bool) -> Fill {
        Fill {
            written,
            has_lost,
            overwrites,
        }
    }

    #[test]
    fn it_looks_after_so_much_and_before_the_first_loss() {
        let mut looks = Looks::default();
        assert!(!looks.is_due(fill(LOOK_BYTES - 1, false, false), 0));
        assert!(looks.is_due(fill(LOOK_BYTES, false, false), 0));
        assert!(!looks.looked(fill(LOOK_BYTES, false, false), 0, false));
        assert!(!looks.is_due(fill(LOOK_BYTES + 1, false, false), i64::MAX));
        assert!(looks.is_due(fill(LOOK_BYTES + 1, false, true), 0), "first");
        assert!(!looks.is_due(fill(LOOK_BYTES + 1, true, true), 0));
        assert!(looks.is_due(fill(2 * LOOK_BYTES, true, true), 0));
    }

    #[test]
    fn after_a_while_it_looks_before_the_next_loss_however_small() {
        let mut looks = Looks::default();
        let full = fill(4 * LOOK_BYTES, true, true);
        assert!(!looks.looked(full, 1_000, false));
        let later = 1_000 + LOOK_NS.cast_signed();
        assert!(!looks.is_due(full, later - 1));
        assert!(looks.is_due(full, later));
        assert!(looks.is_due(full, 1_000 - LOOK_NS.cast_signed()), "a clock");
    }

    #[test]
    fn a_disk_that_says_room_and_refuses_is_believed_once() {
        let mut looks = Looks::default();
        let at = fill(LOOK_BYTES, false, false);
        assert!(looks.looked(at, 0, true), "it tries");
        looks.refused();
        assert!(!looks.looked(at, 0, true));
        assert!(!looks.looked(at, 0, true));
        assert!(!looks.looked(at, 0, false), "a disk that was only full");
        assert!(looks.looked(at, 0, true));
    }
}
