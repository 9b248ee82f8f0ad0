//! Services that are to start and do not run yet: each can be listed, and stopped.

use std::collections::HashMap;
use std::path::PathBuf;

use ostler_model::Owner;
use parking_lot::Mutex;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::workspace::{NameScope, ServiceScope};
use super::{ServiceError, ServiceInfo};
use crate::error::Error;

/// The pending services of every caller.
#[derive(Debug, Default)]
pub(crate) struct PendingServices {
    entries: Mutex<HashMap<u64, PendingEntry>>,
}

/// A service whose program does not run yet.
#[derive(Debug)]
struct PendingEntry {
    owner: Owner,
    info: ServiceInfo,
    stop: CancellationToken,
    ended: CancellationToken,
}

/// While it lives, a service is listed as pending.
#[derive(Debug)]
pub(crate) struct PendingGuard<'a> {
    table: &'a PendingServices,
    number: u64,
    stop: CancellationToken,
    _ended: DropGuard,
}

/// The pending services that one stop is for.
#[derive(Debug)]
pub(crate) struct PendingStop {
    /// One of them as it was.
    pub(crate) info: ServiceInfo,
    ended: Vec<CancellationToken>,
}

impl PendingServices {
    /// Lists a service as pending until the returned guard is dropped.
    pub(crate) fn register(&self, owner: Owner, info: ServiceInfo) -> PendingGuard<'_> {
        let mut entries = self.entries.lock();
        let number = entries.keys().max().map_or(0, |last| last + 1);
        let (stop, ended) = (CancellationToken::new(), CancellationToken::new());
        let entry = PendingEntry {
            owner,
            info,
            stop: stop.clone(),
            ended: ended.clone(),
        };
        entries.insert(number, entry);
        PendingGuard {
            table: self,
            number,
            stop,
            _ended: ended.drop_guard(),
        }
    }

    /// The pending services, as one caller sees them.
    pub(crate) fn list(&self, is_visible: impl Fn(&Owner) -> bool) -> Vec<ServiceInfo> {
        let entries = self.entries.lock();
        let visible = entries.values().filter(|it| is_visible(&it.owner));
        visible.map(|it| it.info.clone()).collect()
    }

    /// Ends the starts of the pending services of this name in this scope; none where there is none.
    ///
    /// # Errors
    /// Where several workspaces have one.
    pub(crate) fn stop(
        &self,
        name: &str,
        scope: NameScope<'_>,
        is_visible: impl Fn(&Owner) -> bool,
    ) -> Result<Option<PendingStop>, ServiceError> {
        let entries = self.entries.lock();
        let is_meant = |it: &&PendingEntry| {
            it.info.name == name
                && is_visible(&it.owner)
                && scope.includes(&ServiceScope::from_info(&it.info))
        };
        let found: Vec<&PendingEntry> = entries.values().filter(is_meant).collect();
        let Some(first) = found.first() else {
            return Ok(None);
        };
        check_one_workspace(name, &found)?;
        for entry in &found {
            entry.stop.cancel();
        }
        Ok(Some(PendingStop {
            info: first.info.clone(),
            ended: found.iter().map(|it| it.ended.clone()).collect(),
        }))
    }
}

impl PendingStop {
    /// Waits until none of them starts any more. Each ends when its task runs next.
    pub(crate) async fn ended(&self) {
        for ended in &self.ended {
            ended.cancelled().await;
        }
    }
}

impl PendingGuard<'_> {
    /// Sets what it waits for, as text: `'db' to be ready`.
    pub(crate) fn set_condition(&self, condition: String) {
        if let Some(entry) = self.table.entries.lock().get_mut(&self.number) {
            entry.info.pending = Some(condition);
        }
    }

    /// Does the work, unless the service is stopped meanwhile.
    ///
    /// # Errors
    /// As the work; [`ServiceError::StoppedBeforeStart`].
    pub(crate) async fn unless_stopped<T>(
        &self,
        work: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, Error> {
        tokio::select! {
            biased;
            () = self.stop.cancelled() => Err(ServiceError::StoppedBeforeStart.into()),
            done = work => done,
        }
    }
}

impl Drop for PendingGuard<'_> {
    fn drop(&mut self) {
        self.table.entries.lock().remove(&self.number);
    }
}

/// Refuses a name that services of several workspaces have.
fn check_one_workspace(name: &str, found: &[&PendingEntry]) -> Result<(), ServiceError> {
    let mut workspaces: Vec<Option<&PathBuf>> =
        found.iter().map(|it| it.info.workspace.as_ref()).collect();
    workspaces.sort_unstable();
    workspaces.dedup();
    if workspaces.len() < 2 {
        return Ok(());
    }
    let names = workspaces.into_iter().map(|file| match file {
        Some(file) => file.display().to_string(),
        None => "no workspace".to_owned(),
    });
    let names: Vec<String> = names.collect();
    Err(ServiceError::Value {
        what: "service name",
        given: name.to_owned(),
        problem: format!(
            "several of this name wait to be started: of {}; say which by its directory",
            names.join(", of ")
        ),
    })
}
