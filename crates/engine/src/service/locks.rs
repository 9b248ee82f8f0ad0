//! One at a time for each name: two who ensure the same service start one.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use ostler_model::Caller;
use tokio::sync::{Mutex as Turns, OwnedMutexGuard};

/// Names known before those nobody waits for are forgotten.
const NAMES: usize = 64;

/// Whose name it is. Sessions of a project take turns too: some see each other's services.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Key {
    principal: String,
    project: Option<String>,
    manifest: Option<PathBuf>,
    name: String,
}

impl Key {
    pub(crate) fn new(caller: &Caller, manifest: Option<PathBuf>, name: &str) -> Self {
        let owner = &caller.owner;
        Self {
            principal: owner.principal.0.clone(),
            project: owner.project.clone(),
            manifest,
            name: name.to_owned(),
        }
    }
}

/// The locks; those nobody holds or waits for are forgotten.
#[derive(Debug, Default)]
pub(crate) struct Locks {
    known: Mutex<HashMap<Key, Weak<Turns<()>>>>,
}

impl Locks {
    /// Until it is this one's turn; over when the guard is dropped.
    pub(crate) async fn turn(&self, key: Key) -> OwnedMutexGuard<()> {
        let turns = {
            let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
            if known.len() >= NAMES {
                known.retain(|_, it| it.strong_count() > 0);
            }
            match known.get(&key).and_then(Weak::upgrade) {
                Some(turns) => turns,
                None => {
                    let turns = Arc::<Turns<()>>::default();
                    known.insert(key, Arc::downgrade(&turns));
                    turns
                }
            }
        };
        turns.lock_owned().await
    }
}
