//! Shims that wait for plans. The newest used is warm and taken first.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ostler_backend::SpawnError;
use tokio::sync::oneshot;

use super::connection::ShimConnection;

/// Shims kept ready however quiet it is.
pub(super) const IDLE_MIN: usize = 4;

/// The idle ones, and who waits for one.
#[derive(Debug, Default)]
pub(super) struct ShimPool {
    state: Mutex<PoolState>,
}

#[derive(Debug, Default)]
struct PoolState {
    /// The one that waits longest first.
    idle: Vec<Arc<ShimConnection>>,
    waiters: VecDeque<oneshot::Sender<ShimResult>>,
    in_use: usize,
    /// The most in use at once since the last trimming.
    high_water: usize,
    /// Whether somebody will come to trim.
    trimming: bool,
}

/// What asking for a shim came to.
#[derive(Debug)]
pub(super) enum Checkout {
    /// Here is one.
    Ready(Arc<ShimConnection>),
    /// One will come.
    Waiting(oneshot::Receiver<ShimResult>),
}

/// What comes to somebody who waits.
pub(super) type ShimResult = Result<Arc<ShimConnection>, SpawnError>;

impl ShimPool {
    fn lock(&self) -> MutexGuard<'_, PoolState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes an idle shim, or a place in the queue.
    pub(super) fn check_out(&self) -> Checkout {
        let mut state = self.lock();
        if let Some(shim) = state.idle.pop() {
            state.mark_in_use();
            return Checkout::Ready(shim);
        }
        let (sender, receiver) = oneshot::channel();
        state.waiters.push_back(sender);
        Checkout::Waiting(receiver)
    }

    /// Counts a shim that was found at work.
    pub(super) fn mark_in_use(&self) {
        self.lock().mark_in_use();
    }

    /// A shim that can take a plan: to who waits longest, else to the idle ones. Whether
    /// there are now more of those than are kept, and somebody must come to trim.
    pub(super) fn offer(&self, shim: Arc<ShimConnection>) -> bool {
        let mut state = self.lock();
        let mut shim = shim;
        while let Some(waiter) = state.waiters.pop_front() {
            match waiter.send(Ok(shim)) {
                Ok(()) => {
                    state.mark_in_use();
                    return false;
                }
                Err(Ok(returned)) => shim = returned,
                Err(Err(_)) => return false,
            }
        }
        state.idle.push(shim);
        let must_trim = state.idle.len() > IDLE_MIN && !state.trimming;
        state.trimming |= must_trim;
        must_trim
    }

    /// A shim's plan is over, whatever becomes of the shim.
    pub(super) fn release(&self) {
        let mut state = self.lock();
        state.in_use = state.in_use.saturating_sub(1);
    }

    /// A shim is gone; it may have been idle.
    pub(super) fn remove(&self, shim: &Arc<ShimConnection>) {
        self.lock().idle.retain(|idle| !Arc::ptr_eq(idle, shim));
    }

    /// Nobody can come for the one who waits longest.
    pub(super) fn fail_waiter(&self, error: SpawnError) {
        let waiter = self.lock().waiters.pop_front();
        // Who gave up waiting needs no reason.
        drop(waiter.map(|waiting| waiting.send(Err(error))));
    }

    /// Shims at work.
    pub(super) fn in_use(&self) -> usize {
        self.lock().in_use
    }

    /// Takes out what was not needed since the last time, the coldest first. Whether there are
    /// still more than are kept.
    pub(super) fn take_surplus(&self) -> (Vec<Arc<ShimConnection>>, bool) {
        let mut state = self.lock();
        let keep = IDLE_MIN.max(state.high_water.saturating_sub(state.in_use));
        let surplus = state.idle.len().saturating_sub(keep);
        state.high_water = state.in_use;
        let cold = state.idle.drain(..surplus).collect();
        state.trimming = state.idle.len() > IDLE_MIN;
        (cold, state.trimming)
    }

    /// Takes out all of them.
    pub(super) fn drain_idle(&self) -> Vec<Arc<ShimConnection>> {
        std::mem::take(&mut self.lock().idle)
    }
}

impl PoolState {
    fn mark_in_use(&mut self) {
        self.in_use += 1;
        self.high_water = self.high_water.max(self.in_use);
    }
}
