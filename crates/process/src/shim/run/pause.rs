//! A tree that stands still: its clocks do too, and whoever ends it lets it go on first.

use std::time::{Duration, Instant};

use ostler_sandbox::cgroup::Freeze;

use super::Run;
use crate::proto::FromShim;

/// When a tree was frozen, and by which means.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pause {
    since: Instant,
    /// By SIGSTOP to each, where there is no freezer.
    by_signals: bool,
}

impl Run<'_> {
    /// Freezes or thaws as ordered, and says what is so now.
    pub(super) fn freeze(&mut self, frozen: bool) {
        if frozen && self.pause.is_none() && self.descent.goes_on() {
            self.stand_still();
        } else if !frozen {
            self.go_on();
        }
        self.tell_frozen();
    }

    pub(super) fn tell_frozen(&mut self) {
        let frozen = self.pause.is_some();
        self.link.send(&FromShim::Frozen { frozen }, None);
    }

    fn stand_still(&mut self) {
        let by_freezer = self
            .shim
            .slot
            .as_ref()
            .map_or(Freeze::Unable, |slot| slot.freeze(true));
        let by_signals = match by_freezer {
            Freeze::Done => false,
            Freeze::TooSlow => return,
            Freeze::Unable => {
                self.tree.stand_still();
                true
            }
        };
        self.pause = Some(Pause {
            since: Instant::now(),
            by_signals,
        });
    }

    /// Lets a frozen tree go on, its clocks where they stood.
    pub(super) fn go_on(&mut self) {
        let Some(pause) = self.pause.take() else {
            return;
        };
        if pause.by_signals {
            self.tree.go_on();
        } else if let Some(slot) = &self.shim.slot {
            let _nobody_left = slot.freeze(false);
        }
        let stood = pause.since.elapsed();
        self.wall_at = later(self.wall_at, stood);
        self.idle_at = later(self.idle_at, stood);
    }

    /// Something is to end what may be frozen: it must hear of it.
    pub(super) fn thaw_to_end(&mut self) {
        if self.pause.is_some() {
            self.go_on();
            self.tell_frozen();
        }
    }
}

fn later(at: Option<Instant>, by: Duration) -> Option<Instant> {
    at.and_then(|at| at.checked_add(by))
}
