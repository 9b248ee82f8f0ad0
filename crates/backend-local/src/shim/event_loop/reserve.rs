//! Reserves space for the exit record, where the prepared directory has none.

use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use ostler_backend::execution_dir;
use rustix::io::Errno;

use super::{AttemptRunner, RETRY_MS};

impl AttemptRunner<'_> {
    /// Reserves the space once the command runs, so that no start waits for it; where the disk
    /// refuses, again a little later.
    pub(super) fn reserve_if_due(&mut self, now: Instant) {
        if self.reserve_at.is_none_or(|at| now < at) {
            return;
        }
        let dir = self.dir.as_fd();
        let reserved = if self.plan.attempt > 1 {
            execution_dir::reserve_again(dir)
        } else {
            execution_dir::reserve(dir)
        };
        let refused = matches!(reserved, Err(Errno::NOSPC | Errno::DQUOT | Errno::ROFS));
        self.reserve_at = refused
            .then(|| now.checked_add(Duration::from_millis(RETRY_MS)))
            .flatten();
    }
}
