//! The pool of idle shims. The most recently used one has warm caches and is taken first.

use std::collections::VecDeque;
use std::sync::Arc;

use ostler_backend::SpawnError;
use parking_lot::Mutex;
use tokio::sync::oneshot;

use super::connection::ShimConnection;

/// The least number of shims kept ready.
pub(super) const IDLE_MIN: usize = 4;

/// The idle shims, and the callers that wait for one.
#[derive(Debug, Default)]
pub(super) struct ShimPool {
    state: Mutex<PoolState>,
}

#[derive(Debug, Default)]
struct PoolState {
    /// The least recently used first.
    idle: Vec<Arc<ShimConnection>>,
    waiters: VecDeque<oneshot::Sender<ShimResult>>,
    in_use: usize,
    /// The most in use at once since the last trimming.
    high_water: usize,
    /// Whether a trimming is scheduled.
    trimming: bool,
}

/// The result of a request for a shim.
#[derive(Debug)]
pub(super) enum Checkout {
    /// An idle shim.
    Ready(Arc<ShimConnection>),
    /// A shim to be delivered later.
    Waiting(oneshot::Receiver<ShimResult>),
}

/// What a waiting caller receives.
pub(super) type ShimResult = Result<Arc<ShimConnection>, SpawnError>;

impl ShimPool {
    /// Takes an idle shim, or a place in the queue.
    pub(super) fn check_out(&self) -> Checkout {
        let mut state = self.state.lock();
        if let Some(shim) = state.idle.pop() {
            state.mark_in_use();
            return Checkout::Ready(shim);
        }
        let (sender, receiver) = oneshot::channel();
        state.waiters.push_back(sender);
        Checkout::Waiting(receiver)
    }

    /// Counts a recovered shim as in use.
    pub(super) fn mark_in_use(&self) {
        self.state.lock().mark_in_use();
    }

    /// Adds a shim that accepts a plan: it goes to the caller that waits longest, else to the idle
    /// ones. True if there are now too many idle ones and a trimming must be scheduled.
    pub(super) fn offer(&self, shim: Arc<ShimConnection>) -> bool {
        let mut state = self.state.lock();
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

    /// Counts a shim as no longer in use, whether or not it is reused.
    pub(super) fn release(&self) {
        let mut state = self.state.lock();
        state.in_use = state.in_use.saturating_sub(1);
    }

    /// Removes a shim that exited; it may have been idle.
    pub(super) fn remove(&self, shim: &Arc<ShimConnection>) {
        self.state
            .lock()
            .idle
            .retain(|idle| !Arc::ptr_eq(idle, shim));
    }

    /// Fails the caller that waits longest: no shim can be created.
    pub(super) fn fail_waiter(&self, error: SpawnError) {
        let waiter = self.state.lock().waiters.pop_front();
        // A caller that gave up needs no error.
        drop(waiter.map(|waiting| waiting.send(Err(error))));
    }

    /// Removes idle shims that were not needed since the last trimming, the least recently used
    /// first. True if there are still more than are kept.
    pub(super) fn take_surplus(&self) -> (Vec<Arc<ShimConnection>>, bool) {
        let mut state = self.state.lock();
        let keep = IDLE_MIN.max(state.high_water.saturating_sub(state.in_use));
        let surplus = state.idle.len().saturating_sub(keep);
        state.high_water = state.in_use;
        let cold = state.idle.drain(..surplus).collect();
        state.trimming = state.idle.len() > IDLE_MIN;
        (cold, state.trimming)
    }

    /// Removes all idle shims.
    pub(super) fn drain_idle(&self) -> Vec<Arc<ShimConnection>> {
        std::mem::take(&mut self.state.lock().idle)
    }
}

impl PoolState {
    fn mark_in_use(&mut self) {
        self.in_use += 1;
        self.high_water = self.high_water.max(self.in_use);
    }
}
