//! One request at a time while a session of an earlier daemon is restored. The library marks such a
//! session as present before its handshake is replayed: a second request that came in between became
//! the first message of the session, which ended it.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use tokio::sync::{Mutex as AsyncMutex, OwnedMutexGuard};

/// The locks of sessions, by id.
#[derive(Debug, Default)]
pub(super) struct RestoreLocks(Mutex<HashMap<String, Weak<AsyncMutex<()>>>>);

impl RestoreLocks {
    /// Waits for the requests before it.
    pub(super) async fn lock(&self, id: &str) -> OwnedMutexGuard<()> {
        let lock = self.lock_of(id);
        lock.lock_owned().await
    }

    fn lock_of(&self, id: &str) -> Arc<AsyncMutex<()>> {
        let mut locks = self.0.lock();
        if let Some(lock) = locks.get(id).and_then(Weak::upgrade) {
            return lock;
        }
        locks.retain(|_, lock| lock.strong_count() > 0);
        let lock = Arc::default();
        locks.insert(id.to_owned(), Arc::downgrade(&lock));
        lock
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn one_at_a_time_for_each_session_and_nothing_is_kept() {
        let locks = RestoreLocks::default();
        let first = locks.lock("a").await;
        let other = locks.lock("b").await;
        assert!(locks.lock_of("a").try_lock_owned().is_err());
        drop((first, other));
        assert!(locks.lock_of("a").try_lock_owned().is_ok());
        drop(locks.lock("c").await);
        assert_eq!(locks.0.lock().len(), 1);
    }
}
