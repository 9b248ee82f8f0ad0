//! Starts of services that failed before there was an execution of them.

use std::collections::HashMap;

use ostler_model::{Caller, Owner, Timestamp};
use parking_lot::Mutex;

use super::locks::ServiceKey;
use super::workspace::{NameScope, ServiceScope};
use super::{ServiceInfo, format};

/// The most failed starts that are remembered.
const FAILED_STARTS: usize = 256;

/// The last start of each service, where it failed.
#[derive(Debug, Default)]
pub(crate) struct FailedStarts(Mutex<HashMap<ServiceKey, FailedStart>>);

/// The last start of a service, which failed before there was an execution of it.
#[derive(Debug)]
pub(crate) struct FailedStart {
    pub(crate) owner: Owner,
    pub(crate) at: Timestamp,
    pub(crate) problem: String,
    /// The service as it was requested, where no definition lists it.
    pub(crate) unlisted: Option<Box<ServiceInfo>>,
}

impl FailedStart {
    fn text(&self) -> String {
        let at = format::time(self.at);
        format!("its start at {at} failed: {}", self.problem)
    }
}

impl FailedStarts {
    /// Records a failure in place of an earlier one.
    pub(crate) fn insert(&self, key: ServiceKey, start: FailedStart) {
        let mut failed = self.0.lock();
        if failed.len() >= FAILED_STARTS && !failed.contains_key(&key) {
            let oldest = failed.iter().min_by_key(|(_, start)| start.at);
            let oldest = oldest.map(|(key, _)| key.clone());
            oldest.and_then(|key| failed.remove(&key));
        }
        failed.insert(key, start);
    }

    /// Forgets the failure: it started.
    pub(crate) fn remove(&self, key: &ServiceKey) {
        self.0.lock().remove(key);
    }

    /// When and why the last start of a service failed, if that was later than `after`.
    pub(crate) fn find(
        &self,
        caller: &Caller,
        key: &ServiceKey,
        after: Option<Timestamp>,
    ) -> Option<String> {
        let failed = self.0.lock();
        let start = failed.get(key);
        let start = start.filter(|it| Some(it.at) > after && caller.can_access(&it.owner))?;
        Some(start.text())
    }

    /// The services that nothing else lists, by name.
    pub(crate) fn unlisted(&self, caller: &Caller, scope: NameScope<'_>) -> Vec<ServiceInfo> {
        let failed = self.0.lock();
        let visible = failed.values().filter(|it| caller.can_access(&it.owner));
        let rows = visible.filter_map(|start| {
            let info = start.unlisted.as_deref()?;
            Some(ServiceInfo {
                notes: vec![start.text()],
                ..info.clone()
            })
        });
        let mut rows: Vec<ServiceInfo> = rows
            .filter(|info| scope.includes(&ServiceScope::from_info(info)))
            .collect();
        rows.sort_by(|one, other| one.name.cmp(&other.name));
        rows
    }

    /// Forgets one that nothing else lists; returns it.
    pub(crate) fn dismiss(
        &self,
        caller: &Caller,
        name: &str,
        scope: NameScope<'_>,
    ) -> Option<ServiceInfo> {
        let mut failed = self.0.lock();
        let is_meant = |start: &FailedStart| {
            let info = start.unlisted.as_deref();
            caller.can_access(&start.owner)
                && info.is_some_and(|info| {
                    info.name == name && scope.includes(&ServiceScope::from_info(info))
                })
        };
        let found = failed.iter().find(|(_, start)| is_meant(start));
        let key = found.map(|(key, _)| key.clone())?;
        let start = failed.remove(&key)?;
        Some(ServiceInfo {
            dismissed: true,
            notes: vec![start.text()],
            ..*start.unlisted?
        })
    }

    /// Forgets those of the caller's session, which ends.
    pub(crate) fn end_session(&self, caller: &Caller) {
        let session = &caller.owner.session;
        if session.is_none() {
            return;
        }
        let mut failed = self.0.lock();
        failed.retain(|_, start| {
            let is_theirs = start.owner.session == *session && caller.can_access(&start.owner);
            !is_theirs || start.unlisted.is_none()
        });
    }
}
