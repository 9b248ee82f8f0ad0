//! What one engine keeps of services beyond the registry.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use ostler_model::{ExecutionId, Owner, ServicePlan};

use super::clerk::Wanted;
use super::definitions::Definitions;
use super::locks::Key;
use super::reload::Watches;
use super::{ServiceInfo, compose};
use crate::core::Core;
use crate::detection::{Detected, DiskFiles, Table};
use crate::error::Error;
use crate::keyed_mutex::KeyedMutex;
use crate::request::StartRequest;
use crate::settings::Settings;

/// Requests remembered before those of executions that are gone are forgotten.
const REQUESTS: usize = 64;

/// The book.
#[derive(Debug)]
pub(crate) struct Book {
    /// One at a time for each name.
    pub(crate) locks: KeyedMutex<Key>,
    /// Held from the choice of a name and a port until the registry knows them.
    pub(crate) admitting: tokio::sync::Mutex<()>,
    /// What was defined through the API.
    pub(crate) definitions: Definitions,
    /// Files that are watched.
    pub(crate) watches: Watches,
    table: OnceLock<Table>,
    /// What each was started with, its front's environment included.
    requests: Mutex<Requests>,
    pending: Mutex<HashMap<u64, Pending>>,
}

#[derive(Debug, Default)]
struct Requests {
    of: HashMap<ExecutionId, Arc<Wanted>>,
    /// When to look next who is gone.
    full: usize,
}

/// A service whose program does not run yet: it waits for another.
#[derive(Debug, Clone)]
struct Pending {
    owner: Owner,
    info: ServiceInfo,
}

/// While it lives, a service is told as pending.
#[derive(Debug)]
pub(crate) struct Waiting<'a> {
    book: &'a Book,
    number: u64,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.book.lock_pending().remove(&self.number);
    }
}

impl Book {
    /// With what an earlier engine kept.
    pub(crate) fn open(settings: &Settings) -> Result<Self, Error> {
        Ok(Self {
            locks: KeyedMutex::default(),
            admitting: tokio::sync::Mutex::new(()),
            definitions: Definitions::open(&settings.state_dir)?,
            watches: Watches::default(),
            table: OnceLock::new(),
            requests: Mutex::default(),
            pending: Mutex::default(),
        })
    }

    /// The service a command is, by the table.
    pub(crate) fn detect(&self, settings: &Settings, request: &StartRequest) -> Option<Detected> {
        let table = self.table.get_or_init(|| {
            let set = settings.services.table.clone();
            set.unwrap_or_else(Table::shipped)
        });
        table.detect(compose::subject(request), &DiskFiles)
    }

    /// Keeps what an execution was started with, to start it anew.
    pub(crate) fn remember(&self, core: &Core, id: ExecutionId, mut wanted: Wanted) {
        // Started anew, it is another execution.
        wanted.request.start.id = None;
        let mut known = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
        if known.of.len() >= known.full.max(REQUESTS) {
            known.of.retain(|id, _| core.registry.contains(*id));
            known.full = known.of.len() * 2;
        }
        known.of.insert(id, Arc::new(wanted));
    }

    /// What an execution was started with; none where an earlier engine started it.
    pub(crate) fn wanted_of(&self, id: ExecutionId) -> Option<Arc<Wanted>> {
        let known = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
        known.of.get(&id).cloned()
    }

    /// Tells a service as pending until what is returned is dropped.
    pub(crate) fn waits(&self, owner: Owner, info: ServiceInfo) -> Waiting<'_> {
        let mut pending = self.lock_pending();
        let number = pending.keys().max().map_or(0, |last| last + 1);
        pending.insert(number, Pending { owner, info });
        Waiting { book: self, number }
    }

    /// Those that wait for others, as one caller sees them.
    pub(crate) fn pending(&self, sees: impl Fn(&Owner) -> bool) -> Vec<ServiceInfo> {
        let pending = self.lock_pending();
        let seen = pending.values().filter(|it| sees(&it.owner));
        seen.map(|it| it.info.clone()).collect()
    }

    fn lock_pending(&self) -> std::sync::MutexGuard<'_, HashMap<u64, Pending>> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A service that has no execution yet.
pub(crate) fn without_execution(name: &str, command: String, plan: ServicePlan) -> ServiceInfo {
    ServiceInfo {
        name: name.to_owned(),
        execution: None,
        defined_in: plan.defined_in.as_ref().map(ToString::to_string),
        workspace: None,
        command,
        plan,
        pending: None,
        dismissed: false,
        notes: Vec::new(),
    }
}
