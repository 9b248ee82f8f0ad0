//! The connections that answer queries: a few, kept open.

use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

use super::connection::Connection;
use super::failure::Failure;

/// The most connections for reading.
const READERS_MAX: usize = 4;
/// How long a query waits for one of them.
const READER_WAIT: Duration = Duration::from_secs(5);

/// The pool of connections for reading.
#[derive(Debug, Default)]
pub(super) struct Readers {
    state: Mutex<ReaderState>,
    returned: Condvar,
}

#[derive(Debug, Default)]
struct ReaderState {
    idle: Vec<Connection>,
    in_use: usize,
}

/// A place in the pool; it is free again when this is dropped.
#[derive(Debug)]
pub(super) struct ReaderSlot<'a> {
    readers: &'a Readers,
    /// An open connection, if one was idle or is to be kept.
    pub(super) connection: Option<Connection>,
}

impl Readers {
    /// Waits for a place.
    pub(super) fn take(&self) -> Result<ReaderSlot<'_>, Failure> {
        let deadline = Instant::now() + READER_WAIT;
        let mut state = self.state.lock();
        while state.in_use >= READERS_MAX {
            let timed_out = self.returned.wait_until(&mut state, deadline).timed_out();
            if timed_out && state.in_use >= READERS_MAX {
                return Err(Failure::unusable("all its connections are busy"));
            }
        }
        state.in_use += 1;
        Ok(ReaderSlot {
            readers: self,
            connection: state.idle.pop(),
        })
    }
}

impl Drop for ReaderSlot<'_> {
    fn drop(&mut self) {
        let mut state = self.readers.state.lock();
        state.in_use -= 1;
        state.idle.extend(self.connection.take());
        self.readers.returned.notify_one();
    }
}
