//! What the shim is told about readers of output: whether there are any, and how far those are
//! that may miss nothing.

use std::time::Duration;

use ostler_model::Io;
use ostler_process::{ControlError, Order};
use tokio::time::Instant;

use super::run::Driver;

/// How long output of a terminal is still told after nobody wants to hear, in milliseconds.
const LINGER_MS: u64 = 1_000;

/// Until a shim that was too busy for an order about readers is given it again, in
/// milliseconds.
const AGAIN_MS: u64 = 100;

/// How long a command whose output goes to memory waits for a reader that is expected, in
/// milliseconds since its driver began: the time between the answer to a start and the request
/// that reads.
const FIRST_READER_MS: u64 = 2_000;

/// What the shim knows of readers that may miss nothing, once output goes to memory.
#[derive(Debug)]
pub(super) struct Retaining {
    in_memory: bool,
    /// Whether the start said that such a reader comes.
    expected: bool,
    /// The lowest offset they have yet to read, as the shim knows it; none while it waits for a
    /// reader that is expected.
    told: Option<Option<u64>>,
    first_reader_until: Instant,
    /// When a shim that was too busy for the order is given it again.
    again_at: Option<Instant>,
}

/// When an order is given again for which a shim was too busy: nothing else may happen before,
/// and whoever waits for what it brings would wait for good.
fn again() -> Instant {
    Instant::now() + Duration::from_millis(AGAIN_MS)
}

impl Retaining {
    pub(super) fn new(expected: bool) -> Self {
        Self {
            in_memory: false,
            expected,
            told: Self::at_launch(expected),
            first_reader_until: Instant::now() + Duration::from_millis(FIRST_READER_MS),
            again_at: None,
        }
    }

    /// What a shim knows that was told nothing since its launch, or since it lost its daemon.
    const fn at_launch(expected: bool) -> Option<Option<u64>> {
        if expected { None } else { Some(None) }
    }

    /// Whether the start said that such a reader comes.
    pub(super) const fn is_reader_expected(&self) -> bool {
        self.expected
    }

    /// When the shim is to be told that nobody came, or what it was too busy for.
    pub(super) fn due(&self) -> Option<Instant> {
        let nobody = self.in_memory && self.told.is_none();
        let nobody = nobody.then_some(self.first_reader_until);
        self.again_at.or(nobody)
    }

    /// Another attempt, or none: its output goes to disk.
    pub(super) fn reset(&mut self) {
        (self.in_memory, self.again_at) = (false, None);
        self.told = Self::at_launch(self.expected);
    }
}

impl Driver {
    /// The disk refused output, which goes to memory now: the shim is told how far the readers
    /// are that may miss nothing, also that there are none. What it knew from an earlier time may
    /// have crossed its return to the disk.
    pub(super) fn output_is_in_memory(&mut self) {
        self.retaining.in_memory = true;
        self.retaining.told = None;
    }

    /// The disk takes output again, and has what was in memory.
    pub(super) fn output_is_on_disk(&mut self) {
        self.retaining.in_memory = false;
        self.entry.drop_memory();
    }

    /// Tells the shim how far those readers are. Where there is none yet and one
    /// is expected, it may still be on its way.
    pub(super) async fn see_to_retaining(&mut self) {
        let from = self.wishes.borrow().retain_from;
        let retaining = &self.retaining;
        let is_told = !retaining.in_memory || retaining.told == Some(from);
        let may_come =
            retaining.expected && from.is_none() && Instant::now() < retaining.first_reader_until;
        if is_told || may_come || self.control.is_none() {
            return;
        }
        // A shim that is busy is told again; one that is gone has ended.
        let sent = self.send(Order::Retain(from)).await;
        let is_busy = matches!(sent, Err(ControlError::Busy));
        self.retaining.again_at = is_busy.then(again);
        if !is_busy {
            self.retaining.told = Some(from);
        }
    }

    /// Has output told while somebody wants to hear, and only then.
    pub(super) async fn see_to_watching(&mut self) {
        let mirrored = self.core.settings.mirror.is_some();
        let watched = self.wishes.borrow().watchers > 0;
        let wanted = mirrored || watched || self.lookout.wants_output();
        if wanted == self.watching || self.control.is_none() {
            self.watch_at = None;
            return;
        }
        if !wanted && self.lingers() {
            return;
        }
        self.watch_at = None;
        if !wanted {
            self.entry.close_reader();
        }
        let sent = self.send(Order::Watch(wanted)).await;
        self.watching = sent.is_ok() && wanted;
        if wanted && matches!(sent, Err(ControlError::Busy)) {
            self.watch_at = Some(again());
        }
        if wanted {
            self.look_at_journal().await;
        } else {
            self.let_go_of_journal();
        }
    }

    /// Whoever has just looked at a terminal is likely to look again: two orders and two
    /// wake-ups less for each key that is typed and waited for.
    fn lingers(&mut self) -> bool {
        if !matches!(self.entry.spec.io, Io::Pty { .. }) {
            return false;
        }
        let now = Instant::now();
        let linger = Duration::from_millis(LINGER_MS);
        now < *self.watch_at.get_or_insert(now + linger)
    }
}
