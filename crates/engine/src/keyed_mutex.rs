//! One mutex per key, created on demand.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use tokio::sync::OwnedMutexGuard;

/// The number of keys from which unused ones are pruned.
const KEYS: usize = 64;

/// The mutexes by key; those without a holder or waiter are pruned.
#[derive(Debug)]
pub struct KeyedMutex<K> {
    mutexes: Mutex<HashMap<K, Weak<tokio::sync::Mutex<()>>>>,
}

impl<K> Default for KeyedMutex<K> {
    fn default() -> Self {
        Self {
            mutexes: Mutex::default(),
        }
    }
}

impl<K: Eq + Hash> KeyedMutex<K> {
    /// Locks the mutex of `key`, in first-come order.
    pub async fn lock(&self, key: K) -> OwnedMutexGuard<()> {
        let mutex = {
            let mut mutexes = self.mutexes.lock();
            if mutexes.len() >= KEYS {
                mutexes.retain(|_, it| it.strong_count() > 0);
            }
            match mutexes.get(&key).and_then(Weak::upgrade) {
                Some(mutex) => mutex,
                None => {
                    let mutex = Arc::<tokio::sync::Mutex<()>>::default();
                    mutexes.insert(key, Arc::downgrade(&mutex));
                    mutex
                }
            }
        };
        mutex.lock_owned().await
    }
}
