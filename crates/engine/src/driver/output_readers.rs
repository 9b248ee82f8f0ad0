//! Notifies the shim about readers of output: whether there are any, and the read offset of
//! lossless ones.

use std::time::Duration;

use ostler_backend::{ControlCommand, ControlError};
use ostler_model::Io;
use tokio::time::Instant;

use super::event_loop::Driver;

/// How long output notifications of a terminal stay on after the last watcher has gone, in
/// milliseconds.
const LINGER_MS: u64 = 1_000;

/// The retry interval of a command about readers for which a shim was too busy, in milliseconds.
const BUSY_RETRY_MS: u64 = 100;

/// How long a command whose output goes to memory waits for an expected reader, in milliseconds
/// since its driver began: the time between the response to a start and the request that reads.
const FIRST_READER_MS: u64 = 2_000;

/// The shim's knowledge of lossless readers, once output goes to memory.
#[derive(Debug)]
pub(super) struct RetainState {
    in_memory: bool,
    /// Whether the start announced such a reader.
    expected: bool,
    /// The lowest offset they have yet to read, as the shim knows it; none while it waits for an
    /// expected reader.
    sent_offset: Option<Option<u64>>,
    first_reader_deadline: Instant,
    /// When to retry the command for which the shim was too busy.
    retry_at: Option<Instant>,
}

/// When to retry a command for which a shim was too busy: no other event may come before, and a
/// waiter on its result would wait forever.
fn busy_retry_at() -> Instant {
    Instant::now() + Duration::from_millis(BUSY_RETRY_MS)
}

impl RetainState {
    pub(super) fn new(expected: bool) -> Self {
        Self {
            in_memory: false,
            expected,
            sent_offset: Self::offset_at_launch(expected),
            first_reader_deadline: Instant::now() + Duration::from_millis(FIRST_READER_MS),
            retry_at: None,
        }
    }

    /// The knowledge of a shim that received nothing since its launch, or since it lost its daemon.
    const fn offset_at_launch(expected: bool) -> Option<Option<u64>> {
        if expected { None } else { Some(None) }
    }

    /// Whether the start announced such a reader.
    pub(super) const fn is_reader_expected(&self) -> bool {
        self.expected
    }

    /// When to notify the shim that no reader came, or to retry a command it was too busy for.
    pub(super) fn due(&self) -> Option<Instant> {
        let nobody_came = self.in_memory && self.sent_offset.is_none();
        let nobody = nobody_came.then_some(self.first_reader_deadline);
        self.retry_at.or(nobody)
    }

    /// Another attempt, or none: its output goes to disk.
    pub(super) fn reset(&mut self) {
        (self.in_memory, self.retry_at) = (false, None);
        self.sent_offset = Self::offset_at_launch(self.expected);
    }
}

impl Driver {
    /// The disk refused output, which goes to memory now: the shim is notified of the lossless
    /// readers' offset, or that there are none. Its earlier knowledge may have crossed its return
    /// to the disk.
    pub(super) fn on_output_in_memory(&mut self) {
        self.retain_state.in_memory = true;
        self.retain_state.sent_offset = None;
    }

    /// The disk accepts output again, and contains what was in memory.
    pub(super) fn on_output_on_disk(&mut self) {
        self.retain_state.in_memory = false;
        self.execution.clear_memory();
    }

    /// Notifies the shim of the lossless readers' offset. Where there is none yet and one is
    /// expected, it may still be on its way.
    pub(super) async fn sync_retain_offset(&mut self) {
        let from = self.flags.borrow().retain_from;
        let retaining = &self.retain_state;
        let is_synced = !retaining.in_memory || retaining.sent_offset == Some(from);
        let may_still_come = retaining.expected
            && from.is_none()
            && Instant::now() < retaining.first_reader_deadline;
        if is_synced || may_still_come || self.control.is_none() {
            return;
        }
        // A busy shim is notified again; one that is gone has ended.
        let sent = self.send(ControlCommand::Retain(from)).await;
        let is_busy = matches!(sent, Err(ControlError::Busy));
        self.retain_state.retry_at = is_busy.then(busy_retry_at);
        if !is_busy {
            self.retain_state.sent_offset = Some(from);
        }
    }

    /// Enables output notifications while there is a watcher, and disables them otherwise.
    pub(super) async fn sync_output_watch(&mut self) {
        let mirrored = self.core.settings.mirror.is_some();
        let watched = self.flags.borrow().watchers > 0;
        let is_wanted = mirrored || watched || self.monitor.wants_output();
        if is_wanted == self.watches_output || self.control.is_none() {
            self.watch_check_at = None;
            return;
        }
        if !is_wanted && self.lingers() {
            return;
        }
        self.watch_check_at = None;
        if !is_wanted {
            self.execution.close_reader();
        }
        let sent = self.send(ControlCommand::Watch(is_wanted)).await;
        self.watches_output = sent.is_ok() && is_wanted;
        if is_wanted && matches!(sent, Err(ControlError::Busy)) {
            self.watch_check_at = Some(busy_retry_at());
        }
        if is_wanted {
            self.refresh_journal_end().await;
        } else {
            self.close_idle_journal();
        }
    }

    /// A recent viewer of a terminal is likely to return: that saves two commands and two wake-ups
    /// for each key that is typed and awaited.
    fn lingers(&mut self) -> bool {
        if !matches!(self.execution.spec.io, Io::Pty { .. }) {
            return false;
        }
        let now = Instant::now();
        let linger = Duration::from_millis(LINGER_MS);
        now < *self.watch_check_at.get_or_insert(now + linger)
    }
}
