//! One mutex per key, made when it is asked for.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use tokio::sync::OwnedMutexGuard;

/// Keys known before those that nobody holds or waits for are forgotten.
const KEYS: usize = 64;

/// The mutexes; those nobody holds or waits for are forgotten.
#[derive(Debug)]
pub(crate) struct KeyedMutex<K> {
    known: Mutex<HashMap<K, Weak<tokio::sync::Mutex<()>>>>,
}

impl<K> Default for KeyedMutex<K> {
    fn default() -> Self {
        Self {
            known: Mutex::default(),
        }
    }
}

impl<K: Eq + Hash> KeyedMutex<K> {
    /// Locks the mutex of `key`, in the order in which it was asked for.
    pub(crate) async fn lock(&self, key: K) -> OwnedMutexGuard<()> {
        let mutex = {
            let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
            if known.len() >= KEYS {
                known.retain(|_, it| it.strong_count() > 0);
            }
            match known.get(&key).and_then(Weak::upgrade) {
                Some(mutex) => mutex,
                None => {
                    let mutex = Arc::<tokio::sync::Mutex<()>>::default();
                    known.insert(key, Arc::downgrade(&mutex));
                    mutex
                }
            }
        };
        mutex.lock_owned().await
    }
}
