//! Accounting of free descriptors: counting them, waiting for them, holding some back.
//!
//! Executions leave a reserve, from which connections are served as long as any descriptor is left.
//! For operations that must not fail at the limit a few descriptors are held back: they are closed
//! at the moment they are needed and opened again afterwards.

use std::os::fd::OwnedFd;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use rustix::event::{EventfdFlags, eventfd};
use tokio::sync::Notify;
use tokio::time::timeout;

use super::fd_scan::{SCAN_FDS, count_unused};
use super::{limit, reserved};

/// How many descriptors are held back: one for a connection, one for a file that is written on its
/// behalf.
pub const EMERGENCY_FDS: u64 = 2;

/// How long a waiter for a descriptor sleeps before checking again, in milliseconds. Most closings
/// are announced by [`notify_closed`]; others, such as files that a request has open, are not
/// announced.
const RECHECK_MS: u64 = 20;

/// Notified when descriptors were closed.
static CLOSED: Notify = Notify::const_new();
/// Notified when a waiter for a descriptor arrived.
static WAITER_ARRIVED: Notify = Notify::const_new();
/// How many tasks wait for a descriptor.
static WAITERS: AtomicU64 = AtomicU64::new(0);
/// Whether the last check found too few.
static SCARCE: AtomicBool = AtomicBool::new(false);
/// How many descriptors are about to be received and have no number yet.
static EXPECTED: AtomicU64 = AtomicU64::new(0);
/// How many tasks use the emergency descriptors.
static EMERGENCY_USERS: AtomicU64 = AtomicU64::new(0);
/// The emergency descriptors.
static EMERGENCY: Mutex<Vec<OwnedFd>> = Mutex::new(Vec::new());

/// How many descriptors this process can still open, including the emergency ones and excluding the
/// claimed ones; counts to `enough` at most, so that a large table is not searched whole.
#[must_use]
pub fn available(enough: u64) -> u64 {
    let emergency = EMERGENCY.lock().len() as u64;
    let expected = EXPECTED.load(Ordering::Relaxed);
    let free = count_free((enough + expected).saturating_sub(emergency));
    (free + emergency).saturating_sub(expected).min(enough)
}

/// Whether this many are free besides the emergency descriptors.
#[must_use]
pub fn has_free(count: u64) -> bool {
    count_free(count) >= count
}

/// Counts free numbers from the highest one down, since the kernel hands out the lowest.
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

/// Whether the reserve for other uses than executions is untouched; the result is remembered for
/// [`is_scarce`].
#[must_use]
pub fn has_reserve() -> bool {
    let reserve = reserved(limit());
    let leaves = available(reserve) >= reserve;
    SCARCE.store(!leaves, Ordering::Relaxed);
    leaves
}

/// Whether descriptors that are not needed should be closed. Costs nothing as long as no check
/// found too few.
#[must_use]
pub fn is_scarce() -> bool {
    SCARCE.load(Ordering::Relaxed) && !has_reserve()
}

/// Waits until `check` returns a value; it is called again whenever descriptors were closed.
/// Meanwhile holders of idle descriptors are requested to close them.
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
        // Both a notification and the timeout lead to another check.
        let _notified = timeout(Duration::from_millis(RECHECK_MS), closed).await;
    }
}

/// Counts one waiter while it lives.
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

/// Whether any task waits for a descriptor.
#[must_use]
pub fn has_waiters() -> bool {
    WAITERS.load(Ordering::Relaxed) > 0
}

/// As [`wait_for`], for low-priority waiters: holders of idle descriptors are not requested to
/// close them, and `check` is called only after a notification.
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

/// Waits for the next notification that descriptors were closed.
pub async fn wait_for_change() {
    let mut checked = false;
    wait_for(|| std::mem::replace(&mut checked, true).then_some(())).await;
}

/// Waits until a task waits for a descriptor.
pub async fn wait_for_waiter() {
    WAITER_ARRIVED.notified().await;
}

/// Announces that descriptors were closed: the emergency descriptors are refilled and the waiters
/// check again.
pub fn notify_closed() {
    refill_emergency_fds();
    CLOSED.notify_waiters();
}

/// Opens [`EMERGENCY_FDS`] descriptors to hold back, or as many as there are; none while they are
/// in use.
pub fn refill_emergency_fds() {
    let mut emergency = EMERGENCY.lock();
    while EMERGENCY_USERS.load(Ordering::Relaxed) == 0 && (emergency.len() as u64) < EMERGENCY_FDS {
        match eventfd(0, EventfdFlags::CLOEXEC) {
            Ok(descriptor) => emergency.push(descriptor),
            // Refilled when others are closed.
            Err(_) => return,
        }
    }
}

/// While this lives, the emergency descriptors are closed and so available.
#[derive(Debug)]
pub struct EmergencyFdGuard(());

impl EmergencyFdGuard {
    /// Closes the emergency descriptors.
    #[must_use]
    pub fn acquire() -> Self {
        EMERGENCY_USERS.fetch_add(1, Ordering::Relaxed);
        EMERGENCY.lock().clear();
        Self(())
    }
}

impl Drop for EmergencyFdGuard {
    fn drop(&mut self) {
        EMERGENCY_USERS.fetch_sub(1, Ordering::Relaxed);
        notify_closed();
    }
}

/// Calls `attempt`, and once more with the emergency descriptors closed if no descriptor was
/// left.
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

/// Claims descriptors that will be received: no other check counts them as free while this lives.
#[derive(Debug)]
pub struct ExpectedFds(u64);

impl ExpectedFds {
    /// Claims this many.
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
