//! Descriptors that are free: counted, waited for, held back.
//!
//! Executions leave a reserve, and connections take from it as far as somebody can still be
//! served. For what must not fail at the limit a few are held back: they are given up at the
//! moment they are needed and taken again afterwards.

use std::os::fd::OwnedFd;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::event::{EventfdFlags, eventfd};
use tokio::sync::Notify;
use tokio::time::timeout;

use super::{limit, reserved};
use crate::sys::numbers::{LOOK, unused};

/// Descriptors held back: one for a connection, one for a file that is written on its behalf.
pub const HELD_BACK: u64 = 2;

/// How long somebody who waits for a descriptor sleeps before looking again, in milliseconds.
/// The larger part is told by [`closed`]; the kernel tells nobody of the rest, such as files that
/// a request has open.
const LOOK_AGAIN_MS: u64 = 20;

/// Descriptors were closed.
static CLOSED: Notify = Notify::const_new();
/// Somebody waits for one.
static WANTED: Notify = Notify::const_new();
/// How many wait.
static WAITING: AtomicU64 = AtomicU64::new(0);
/// Whether there were too few when somebody looked last.
static SHORT: AtomicBool = AtomicBool::new(false);
/// Those that will be received and have no number yet.
static CLAIMED: AtomicU64 = AtomicU64::new(0);
/// How many use those held back.
static LENT: AtomicU64 = AtomicU64::new(0);
/// Those held back.
static HELD: Mutex<Vec<OwnedFd>> = Mutex::new(Vec::new());

fn held() -> MutexGuard<'static, Vec<OwnedFd>> {
    HELD.lock().unwrap_or_else(PoisonError::into_inner)
}

/// How many descriptors this process can still get, those held back included and those claimed
/// not; at most `enough`, so that a table with much room is not looked through.
#[must_use]
pub fn available(enough: u64) -> u64 {
    let held = held().len() as u64;
    let claimed = CLAIMED.load(Ordering::Relaxed);
    let free = free((enough + claimed).saturating_sub(held));
    (free + held).saturating_sub(claimed).min(enough)
}

/// Whether so many are free besides those held back.
#[must_use]
pub fn is_free(count: u64) -> bool {
    free(count) >= count
}

/// Free numbers, from the last one on: the kernel hands out the lowest.
fn free(enough: u64) -> u64 {
    let mut end = i32::try_from(limit()).unwrap_or(i32::MAX);
    let mut found = 0;
    while found < enough && end > 0 {
        let from = (end - LOOK).max(0);
        found += unused(from..end);
        end = from;
    }
    found
}

/// Whether what is kept for other things than executions is touched; remembered for
/// [`is_short`].
pub(crate) fn leaves_reserve() -> bool {
    let reserve = reserved(limit());
    let leaves = available(reserve) >= reserve;
    SHORT.store(!leaves, Ordering::Relaxed);
    leaves
}

/// Whether nothing should be kept open that is not needed. Costs nothing as long as nobody found
/// too few.
#[must_use]
pub fn is_short() -> bool {
    SHORT.load(Ordering::Relaxed) && !leaves_reserve()
}

/// Waits until `look` finds something; it is called again whenever descriptors were closed. Who
/// keeps one that is not needed is asked to give it up meanwhile.
pub async fn wait_for<T>(mut look: impl FnMut() -> Option<T>) -> T {
    let _waiting = Waiting::begin();
    loop {
        let mut closed = pin!(CLOSED.notified());
        closed.as_mut().enable();
        if let Some(found) = look() {
            return found;
        }
        SHORT.store(true, Ordering::Relaxed);
        WANTED.notify_waiters();
        // Looked for either way.
        let _told = timeout(Duration::from_millis(LOOK_AGAIN_MS), closed).await;
    }
}

/// Somebody who waits.
struct Waiting;

impl Waiting {
    fn begin() -> Self {
        WAITING.fetch_add(1, Ordering::Relaxed);
        Self
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        WAITING.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Whether somebody waits for a descriptor.
pub(crate) fn is_wanted() -> bool {
    WAITING.load(Ordering::Relaxed) > 0
}

/// As [`wait_for`], for what can wait: nobody is asked to give one up, and `look` is called only
/// when closed ones are told of.
pub async fn wait_patiently<T>(mut look: impl FnMut() -> Option<T>) -> T {
    loop {
        let mut closed = pin!(CLOSED.notified());
        closed.as_mut().enable();
        if let Some(found) = look() {
            return found;
        }
        closed.await;
    }
}

/// Waits until descriptors may have been closed, once.
pub async fn changed() {
    let mut looked = false;
    wait_for(|| std::mem::replace(&mut looked, true).then_some(())).await;
}

/// Until somebody waits for a descriptor.
pub async fn wanted() {
    WANTED.notified().await;
}

/// To be called where descriptors were closed: what was held back is taken again, and those who
/// wait look.
pub fn closed() {
    hold_back();
    CLOSED.notify_waiters();
}

/// Holds [`HELD_BACK`] descriptors back, or as many as there are; none while somebody uses them.
pub fn hold_back() {
    let mut held = held();
    while LENT.load(Ordering::Relaxed) == 0 && (held.len() as u64) < HELD_BACK {
        match eventfd(0, EventfdFlags::CLOEXEC) {
            Ok(descriptor) => held.push(descriptor),
            // Taken again when others are closed.
            Err(_) => return,
        }
    }
}

/// Descriptors that were held back are free while this lives.
#[derive(Debug)]
pub struct Lent(());

impl Lent {
    /// Gives them up.
    #[must_use]
    pub fn take() -> Self {
        LENT.fetch_add(1, Ordering::Relaxed);
        held().clear();
        Self(())
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        LENT.fetch_sub(1, Ordering::Relaxed);
        closed();
    }
}

/// Tries; once more without what is held back where no descriptor was left.
pub fn with_held<T, E>(
    mut attempt: impl FnMut() -> Result<T, E>,
    is_none_left: impl Fn(&E) -> bool,
) -> Result<T, E> {
    match attempt() {
        Err(error) if is_none_left(&error) => {}
        done => return done,
    }
    let _lent = Lent::take();
    attempt()
}

/// Descriptors that will be received: nobody else counts on them while this lives.
#[derive(Debug)]
pub struct Claim(u64);

impl Claim {
    /// Claims so many.
    #[must_use]
    pub fn new(count: u64) -> Self {
        CLAIMED.fetch_add(count, Ordering::Relaxed);
        Self(count)
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        CLAIMED.fetch_sub(self.0, Ordering::Relaxed);
    }
}
