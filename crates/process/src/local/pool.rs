//! Shims that wait for plans. The newest used is warm and taken first.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

use super::connection::Connection;
use crate::place::SpawnError;

/// Shims kept ready however quiet it is.
pub(super) const WARM: usize = 4;

/// The idle ones, and who waits for one.
#[derive(Debug, Default)]
pub(super) struct Pool {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// The one that waits longest first.
    idle: Vec<Arc<Connection>>,
    waiting: VecDeque<oneshot::Sender<Answer>>,
    in_use: usize,
    /// The most in use at once since the last trimming.
    high_water: usize,
    /// Whether somebody will come to trim.
    trimming: bool,
}

/// What asking for a shim came to.
#[derive(Debug)]
pub(super) enum Taken {
    /// Here is one.
    Ready(Arc<Connection>),
    /// One will come.
    Waiting(oneshot::Receiver<Answer>),
}

/// What comes to somebody who waits.
pub(super) type Answer = Result<Arc<Connection>, SpawnError>;

impl Pool {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes an idle shim, or a place in the queue.
    pub(super) fn take(&self) -> Taken {
        let mut state = self.lock();
        if let Some(shim) = state.idle.pop() {
            state.lend();
            return Taken::Ready(shim);
        }
        let (sender, receiver) = oneshot::channel();
        state.waiting.push_back(sender);
        Taken::Waiting(receiver)
    }

    /// Counts a shim that was found at work.
    pub(super) fn lend(&self) {
        self.lock().lend();
    }

    /// A shim that can take a plan: to who waits longest, else to the idle ones. Whether
    /// there are now more of those than are kept, and somebody must come to trim.
    pub(super) fn offer(&self, shim: Arc<Connection>) -> bool {
        let mut state = self.lock();
        let mut shim = shim;
        while let Some(waiting) = state.waiting.pop_front() {
            match waiting.send(Ok(shim)) {
                Ok(()) => {
                    state.lend();
                    return false;
                }
                Err(Ok(back)) => shim = back,
                Err(Err(_)) => return false,
            }
        }
        state.idle.push(shim);
        let must_trim = state.idle.len() > WARM && !state.trimming;
        state.trimming |= must_trim;
        must_trim
    }

    /// A shim's plan is over, whatever becomes of the shim.
    pub(super) fn give_back(&self) {
        let mut state = self.lock();
        state.in_use = state.in_use.saturating_sub(1);
    }

    /// A shim is gone; it may have been idle.
    pub(super) fn forget(&self, shim: &Arc<Connection>) {
        self.lock().idle.retain(|idle| !Arc::ptr_eq(idle, shim));
    }

    /// Nobody can come for the one who waits longest.
    pub(super) fn disappoint(&self, why: SpawnError) {
        let waiting = self.lock().waiting.pop_front();
        // Who gave up waiting needs no reason.
        drop(waiting.map(|waiting| waiting.send(Err(why))));
    }

    /// Shims at work.
    pub(super) fn in_use(&self) -> usize {
        self.lock().in_use
    }

    /// Takes out what was not needed since the last time, the coldest first. Whether there are
    /// still more than are kept.
    pub(super) fn trim(&self) -> (Vec<Arc<Connection>>, bool) {
        let mut state = self.lock();
        let keep = WARM.max(state.high_water.saturating_sub(state.in_use));
        let surplus = state.idle.len().saturating_sub(keep);
        state.high_water = state.in_use;
        let cold = state.idle.drain(..surplus).collect();
        state.trimming = state.idle.len() > WARM;
        (cold, state.trimming)
    }

    /// Takes out all of them.
    pub(super) fn empty(&self) -> Vec<Arc<Connection>> {
        std::mem::take(&mut self.lock().idle)
    }
}

impl State {
    fn lend(&mut self) {
        self.in_use += 1;
        self.high_water = self.high_water.max(self.in_use);
    }
}
