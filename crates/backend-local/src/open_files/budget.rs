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
use crate::sys::fd_scan::{SCAN_FDS, count_unused};

/// Descriptors held back: one for a connection, one for a file that is written on its behalf.
pub const EMERGENCY_FDS: u64 = 2;

/// How long somebody who waits for a descriptor sleeps before looking again, in milliseconds.
/// The larger part is told by [`notify_closed`]; the kernel tells nobody of the rest, such as files that
/// a request has open.
const RECHECK_MS: u64 = 20;

/// Descriptors were closed.
static CLOSED: Notify = Notify::const_new();
/// Somebody waits for one.
static WAITER_ARRIVED: Notify = Notify::const_new();
/// How many wait.
static WAITERS: AtomicU64 = AtomicU64::new(0);
/// Whether there were too few when somebody looked last.
static SCARCE: AtomicBool = AtomicBool::new(false);
/// Those that will be received and have no number yet.
static EXPECTED: AtomicU64 = AtomicU64::new(0);
/// How many use those held back.
static EMERGENCY_USERS: AtomicU64 = AtomicU64::new(0);
/// Those held back.
static EMERGENCY: Mutex<Vec<OwnedFd>> = Mutex::new(Vec::new());

fn emergency_fds() -> MutexGuard<'static, Vec<OwnedFd>> {
    EMERGENCY.lock().unwrap_or_else(PoisonError::into_inner)
}

/// How many descriptors this process can still get, those held back included and those claimed
/// not; at most `enough`, so that a table with much room is not looked through.
#[must_use]
pub fn available(enough: u64) -> u64 {
    let emergency = emergency_fds().len() as u64;
    let expected = EXPECTED.load(Ordering::Relaxed);
    let free = count_free((enough + expected).saturating_sub(emergency));
    (free + emergency).saturating_sub(expected).min(enough)
}

/// Whether so many are free besides those held back.
#[must_use]
pub fn has_free(count: u64) -> bool {
    count_free(count) >= count
}

/// Free numbers, from the last one on: the kernel hands out the lowest.
fn count_free(enough: u64) -> u64 {
    let mut end = i32::try_from(limit()).unwrap_or(i32::MAX);
    let mut count = 0;
    while count < enough && end > 0 {
        let from = (end - SCAN_FDS).max(0);
        count += count_unused(from..end);
        end = from;
    }
    count
}

/// Whether what is kept for other things than executions is touched; remembered for
/// [`is_scarce`].
pub(crate) fn has_reserve() -> bool {
    let reserve = reserved(limit());
    let leaves = available(reserve) >= reserve;
    SCARCE.store(!leaves, Ordering::Relaxed);
    leaves
}

/// Whether nothing should be kept open that is not needed. Costs nothing as long as nobody found
/// too few.
#[must_use]
pub fn is_scarce() -> bool {
    SCARCE.load(Ordering::Relaxed) && !has_reserve()
}

/// Waits until `check` finds something; it is called again whenever descriptors were closed. Who
/// keeps one that is not needed is asked to give it up meanwhile.
pub async fn wait_for<T>(mut check: impl FnMut() -> Option<T>) -> T {
    let _waiter = WaiterGuard::new();
    loop {
        let mut closed = pin!(CLOSED.notified());
        closed.as_mut().enable();
        if let Some(value) = check() {
            return value;
        }
        SCARCE.store(true, Ordering::Relaxed);
        WAITER_ARRIVED.notify_waiters();
        // Looked for either way.
        let _notified = timeout(Duration::from_millis(RECHECK_MS), closed).await;
    }
}

/// Somebody who waits.
struct WaiterGuard;

impl WaiterGuard {
    fn new() -> Self {
        WAITERS.fetch_add(1, Ordering::Relaxed);
        Self
    }
}

impl Drop for WaiterGuard {
    fn drop(&mut self) {
        WAITERS.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Whether somebody waits for a descriptor.
pub(crate) fn has_waiters() -> bool {
    WAITERS.load(Ordering::Relaxed) > 0
}

/// As [`wait_for`], for what can wait: nobody is asked to give one up, and `check` is called only
/// when closed ones are told of.
pub async fn wait_passively<T>(mut check: impl FnMut() -> Option<T>) -> T {
    loop {
        let mut closed = pin!(CLOSED.notified());
        closed.as_mut().enable();
        if let Some(value) = check() {
            return value;
        }
        closed.await;
    }
}

/// Waits until descriptors may have been closed, once.
pub async fn wait_for_change() {
    let mut checked = false;
    wait_for(|| std::mem::replace(&mut checked, true).then_some(())).await;
}

/// Until somebody waits for a descriptor.
pub async fn wait_for_waiter() {
    WAITER_ARRIVED.notified().await;
}

/// To be called where descriptors were closed: what was held back is taken again, and those who
/// wait look.
pub fn notify_closed() {
    refill_emergency_fds();
    CLOSED.notify_waiters();
}

/// Holds [`EMERGENCY_FDS`] descriptors back, or as many as there are; none while somebody uses them.
pub fn refill_emergency_fds() {
    let mut emergency = emergency_fds();
    while EMERGENCY_USERS.load(Ordering::Relaxed) == 0 && (emergency.len() as u64) < EMERGENCY_FDS {
        match eventfd(0, EventfdFlags::CLOEXEC) {
            Ok(descriptor) => emergency.push(descriptor),
            // Taken again when others are closed.
            Err(_) => return,
        }
    }
}

/// Descriptors that were held back are free while this lives.
#[derive(Debug)]
pub struct EmergencyFdGuard(());

impl EmergencyFdGuard {
    /// Gives them up.
    #[must_use]
    pub fn acquire() -> Self {
        EMERGENCY_USERS.fetch_add(1, Ordering::Relaxed);
        emergency_fds().clear();
        Self(())
    }
}

impl Drop for EmergencyFdGuard {
    fn drop(&mut self) {
        EMERGENCY_USERS.fetch_sub(1, Ordering::Relaxed);
        notify_closed();
    }
}

/// Tries; once more without what is held back where no descriptor was left.
pub fn with_emergency_fds<T, E>(
    mut attempt: impl FnMut() -> Result<T, E>,
    is_exhausted: impl Fn(&E) -> bool,
) -> Result<T, E> {
    match attempt() {
        Err(error) if is_exhausted(&error) => {}
        done => return done,
    }
    let _guard = EmergencyFdGuard::acquire();
    attempt()
}

/// Descriptors that will be received: nobody else counts on them while this lives.
#[derive(Debug)]
pub struct ExpectedFds(u64);

impl ExpectedFds {
    /// Claims so many.
    #[must_use]
    pub fn new(count: u64) -> Self {
        EXPECTED.fetch_add(count, Ordering::Relaxed);
        Self(count)
    }
}

impl Drop for ExpectedFds {
    fn drop(&mut self) {
        EXPECTED.fetch_sub(self.0, Ordering::Relaxed);
    }
}
