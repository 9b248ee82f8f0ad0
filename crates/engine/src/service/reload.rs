//! Hot reload of `ostler.toml`: a service whose definition changed is restarted; the others are
//! left alone, and no service starts that did not run.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures_util::future::select_all;
use ostler_model::{Caller, REPLACED, Scope};
use ostler_sys::file_watch::FileWatch;
use parking_lot::Mutex;
use tokio::sync::Notify;

use super::caller_services::{manifest_path, name_of, plan_of};
use super::locks::ServiceKey;
use super::manager::ServiceManager;
use super::manifest::{Manifest, ManifestChanges, diff};
use super::starter::{ResolvedService, ServiceStarter};
use super::workspace::WorkspaceContext;
use super::{ServiceError, graph, ports, restart_request};
use crate::error::Error;
use crate::execution::ExecutionHandle;

/// The watched files: those with running services.
#[derive(Debug, Default)]
pub(crate) struct ManifestWatches {
    files: Mutex<HashMap<PathBuf, WatchedManifest>>,
}

#[derive(Debug, Default)]
struct WatchedManifest {
    /// Notified when another service of the file starts.
    service_added: Arc<Notify>,
    /// Why the newest version is invalid.
    problem: Option<String>,
    /// Why the file cannot be watched.
    watch_error: Option<String>,
    /// Names of running services that the file no longer defines.
    removed: BTreeSet<String>,
    /// Services that could not be restarted.
    failed: BTreeMap<String, FailedReload>,
}

/// A failed restart with a new definition.
#[derive(Debug)]
struct FailedReload {
    /// The definition's fingerprint: a service that was started with it meanwhile is up to date.
    definition: Option<String>,
    problem: String,
}

impl ManifestWatches {
    /// Whether services of this file run, whether or not it still exists.
    pub(crate) fn is_watched(&self, path: &Path) -> bool {
        self.files.lock().contains_key(path)
    }

    fn update(&self, path: &Path, change: impl FnOnce(&mut WatchedManifest)) {
        if let Some(watched) = self.files.lock().get_mut(path) {
            change(watched);
        }
    }

    /// The notes on a service of this file; `definition` is the fingerprint of the definition it
    /// was started with.
    pub(crate) fn notes(
        &self,
        path: &Path,
        name: &str,
        definition: Option<&str>,
        is_alive: bool,
    ) -> Vec<String> {
        let files = self.files.lock();
        let Some(watched) = files.get(path) else {
            return Vec::new();
        };
        let file = path.display();
        let mut notes = Vec::new();
        let failed = watched.failed.get(name);
        let failed = failed.filter(|it| it.definition.as_deref() != definition);
        notes.extend(failed.map(|it| it.problem.clone()));
        if !is_alive {
            return notes;
        }
        if let Some(problem) = &watched.problem {
            notes.push(format!(
                "{file} cannot be used: {problem}; the services run on as before"
            ));
        }
        if let Some(problem) = &watched.watch_error {
            notes.push(format!("changes of {file} are not heard: {problem}"));
        }
        if watched.removed.contains(name) {
            notes.push(format!(
                "it is no longer defined in {file}; it runs on until it is stopped"
            ));
        }
        notes
    }
}

/// Watches this file until its last service ends.
pub(crate) fn watch(manager: &ServiceManager, path: &Path) {
    let mut files = manager.services.watches.files.lock();
    if let Some(watched) = files.get(path) {
        watched.service_added.notify_one();
        return;
    }
    let watched = WatchedManifest::default();
    let service_added = Arc::clone(&watched.service_added);
    files.insert(path.to_owned(), watched);
    let (manager, path) = (manager.clone(), path.to_owned());
    manager
        .core
        .tracker
        .clone()
        .spawn(async move { watch_loop(&manager, &path, &service_added).await });
}

/// Watches the files of services that an earlier engine left running. Changes made meanwhile are
/// detected at once.
pub(crate) fn resume(manager: &ServiceManager) {
    let living = manager.core.registry.running();
    let files = living.filter_map(|entry| file_of(&entry));
    for path in files.collect::<BTreeSet<PathBuf>>() {
        watch(manager, &path);
    }
}

/// The file a service is defined in.
fn file_of(entry: &ExecutionHandle) -> Option<PathBuf> {
    let defined_in = entry.spec.lifetime.plan()?.defined_in.as_ref()?;
    manifest_path(defined_in).map(Path::to_owned)
}

fn living_services(manager: &ServiceManager, path: &Path) -> Vec<Arc<ExecutionHandle>> {
    let living = manager.core.registry.running();
    living
        .filter(|entry| file_of(entry).as_deref() == Some(path))
        .collect()
}

async fn watch_loop(manager: &ServiceManager, path: &Path, service_added: &Notify) {
    let mut file_watch = open_watch(manager, path);
    // Changes between its parsing and now are not lost.
    let mut is_due = true;
    loop {
        if std::mem::take(&mut is_due) {
            tokio::select! {
                () = manager.core.closing.cancelled() => return,
                () = Box::pin(reload_file(manager, path)) => {}
            }
        }
        let running = {
            let mut files = manager.services.watches.files.lock();
            let running = living_services(manager, path);
            if running.is_empty() {
                files.remove(path);
                return;
            }
            running
        };
        tokio::select! {
            () = manager.core.closing.cancelled() => return,
            () = service_added.notified() => {}
            () = any_ended(&running) => {}
            is_same_file = next_change(file_watch.as_mut()) => {
                is_due = true;
                if !is_same_file {
                    file_watch = open_watch(manager, path);
                }
            }
        }
    }
}

/// A watch of a file, or, where its directory is missing, of the first missing one above it.
#[derive(Debug)]
struct ManifestWatch {
    watch: FileWatch,
    is_on_file: bool,
}

/// Watches a file; none where that is not possible, which its services report.
fn open_watch(manager: &ServiceManager, path: &Path) -> Option<ManifestWatch> {
    let opened = watch_file(path);
    let problem = opened.as_ref().err().map(ToString::to_string);
    if let Some(problem) = &problem {
        tracing::warn!(path = %path.display(), problem, "changes are not heard");
    }
    manager
        .services
        .watches
        .update(path, |watched| watched.watch_error = problem);
    opened.ok()
}

fn watch_file(path: &Path) -> std::io::Result<ManifestWatch> {
    let mut target = path;
    loop {
        let is_on_file = target == path;
        let watch = if is_on_file {
            FileWatch::new(target)
        } else {
            FileWatch::with_creation(target)
        };
        match (watch, target.parent()) {
            // It was created before it was watched.
            (Ok(_), _) if !is_on_file && target.exists() => target = path,
            (Ok(watch), _) => return Ok(ManifestWatch { watch, is_on_file }),
            (Err(error), Some(parent)) if error.kind() == std::io::ErrorKind::NotFound => {
                target = parent;
            }
            (Err(error), _) => return Err(error),
        }
    }
}

/// Waits for a change; whether the same file is still watched after it.
async fn next_change(file_watch: Option<&mut ManifestWatch>) -> bool {
    match file_watch {
        Some(file_watch) => file_watch.watch.changed().await.is_ok() && file_watch.is_on_file,
        None => std::future::pending().await,
    }
}

async fn any_ended(running: &[Arc<ExecutionHandle>]) {
    let ends = running.iter().map(|entry| {
        let mut live = entry.live.subscribe();
        Box::pin(async move {
            // The sender lives in the handle, which is held.
            let _ended = live.wait_for(|live| live.state.is_finished()).await.is_ok();
        })
    });
    select_all(ends).await;
}

/// Parses the file and applies its changes.
async fn reload_file(manager: &ServiceManager, path: &Path) {
    // A removed file defines nothing.
    let found = if path.exists() {
        Manifest::load(path).and_then(|manifest| check_acyclic(&manifest).map(|()| manifest))
    } else {
        Ok(Manifest {
            path: path.to_owned(),
            services: BTreeMap::new(),
        })
    };
    let manifest = match found {
        Ok(manifest) => manifest,
        Err(problem) => {
            tracing::warn!(path = %path.display(), problem, "cannot be used");
            let set_problem = |watched: &mut WatchedManifest| watched.problem = Some(problem);
            return manager.services.watches.update(path, set_problem);
        }
    };
    let running = living_services(manager, path);
    let changes = diff_running(&running, &manifest);
    tracing::info!(path = %path.display(), ?changes, "read");
    manager.services.watches.update(path, |watched| {
        watched.problem = None;
        watched.failed.clear();
        watched.removed = changes.removed.iter().cloned().collect();
    });
    let order = dependency_order(&changes.changed, &manifest);
    let of_name = |name: &String| {
        let named = running.iter().filter(|it| name_of(it) == *name);
        named.collect::<Vec<&Arc<ExecutionHandle>>>()
    };
    let mut blocked = Vec::new();
    for entry in order.iter().flat_map(of_name) {
        if !is_outdated(entry, &manifest) {
            continue;
        }
        match restart_changed(manager, entry, &manifest).await {
            Err(error) if is_port_taken(&error) => blocked.push(entry),
            result => record_reload(manager, entry, &manifest, result),
        }
    }
    // Their ports may have been those of services that were restarted after them.
    for entry in blocked {
        let result = restart_changed(manager, entry, &manifest).await;
        record_reload(manager, entry, &manifest, result);
    }
}

const fn is_port_taken(error: &Error) -> bool {
    matches!(error, Error::Service(ServiceError::PortTaken { .. }))
}

/// Records that a service could not be restarted with its new definition.
fn record_reload(
    manager: &ServiceManager,
    entry: &ExecutionHandle,
    manifest: &Manifest,
    result: Result<(), Error>,
) {
    let Err(error) = result else {
        return;
    };
    tracing::warn!(id = %entry.id, %error, "the new definition of a service is not in force");
    let name = name_of(entry);
    let definition = manifest.services.get(&name).map(|it| it.fingerprint());
    let problem = format!("its new definition is not in force: {error}");
    let failed = FailedReload {
        definition,
        problem,
    };
    manager.services.watches.update(&manifest.path, |watched| {
        watched.failed.insert(name, failed);
    });
}

fn diff_running(services: &[Arc<ExecutionHandle>], manifest: &Manifest) -> ManifestChanges {
    let prints = manifest.fingerprints();
    let mut running: BTreeMap<String, String> = BTreeMap::new();
    for entry in services {
        let print = plan_of(entry).defined_as.clone().unwrap_or_default();
        let name = name_of(entry);
        // Where several owners run the same service, an outdated one counts.
        if prints.get(&name) == Some(&print) {
            running.entry(name).or_insert(print);
        } else {
            running.insert(name, print);
        }
    }
    diff(&running, &prints)
}

fn is_outdated(entry: &ExecutionHandle, manifest: &Manifest) -> bool {
    let defined = manifest.services.get(&name_of(entry));
    plan_of(entry).defined_as != defined.map(|it| it.fingerprint())
}

/// The services of `roots` and what they depend on, dependencies first. Names that the file does not
/// define depend on nothing.
fn defined_order(roots: &[String], manifest: &Manifest) -> Result<Vec<String>, ServiceError> {
    let needs = |name: &str| {
        let defined = manifest.services.get(name);
        Some(defined.map(|it| it.depends_on.clone()).unwrap_or_default())
    };
    graph::topological_order(roots, needs, &[])
}

/// An error for definitions that depend on each other: none of them could be started again.
fn check_acyclic(manifest: &Manifest) -> Result<(), String> {
    let names: Vec<String> = manifest.services.keys().cloned().collect();
    defined_order(&names, manifest).map_or_else(|error| Err(error.to_string()), |_| Ok(()))
}

/// These services, dependencies first.
fn dependency_order(names: &[String], manifest: &Manifest) -> Vec<String> {
    // A manifest with a cycle is not used.
    let order = defined_order(names, manifest).unwrap_or_else(|_| names.to_vec());
    order.into_iter().filter(|it| names.contains(it)).collect()
}

/// Stops a service and starts its new definition under the same name, for the same owner. Its
/// dependents are left alone. Where a dependency does not run, it is left as it is.
async fn restart_changed(
    manager: &ServiceManager,
    entry: &Arc<ExecutionHandle>,
    manifest: &Manifest,
) -> Result<(), Error> {
    let name = name_of(entry);
    let caller = Caller {
        owner: entry.owner().as_ref().clone(),
        scope: Scope::Session,
        projects: ostler_model::ProjectView::default(),
    };
    let context = WorkspaceContext::from_manifest(manifest.clone());
    let starter = ServiceStarter::new(manager, &caller, &context);
    let base = restart_request::base_request(manager, entry)?;
    let Some(service) = starter.find_definition(&name, &base) else {
        return Ok(());
    };
    let dependencies = service.request.depends_on.clone();
    for need in &dependencies {
        if starter.services().find_living(&need.name).is_none() {
            return Err(ServiceError::Dependency {
                on: need.name.clone(),
                problem: "does not run".to_owned(),
            }
            .into());
        }
        starter.wait_for_dependency(need).await?;
    }
    // Nothing is stopped that could not be started again.
    starter.check_unattended(&service).await?;
    replace(starter, entry, &service).await
}

async fn replace(
    starter: ServiceStarter<'_>,
    entry: &Arc<ExecutionHandle>,
    service: &ResolvedService,
) -> Result<(), Error> {
    let path = starter.manifest.map(|manifest| manifest.path.clone());
    let key = ServiceKey::new(starter.caller, path, service.name());
    let _lock = starter.manager.services.locks.lock(key).await;
    if entry.is_finished() {
        return Ok(());
    }
    ports::check_replacement(starter.core, starter.caller, &service.request, entry).await?;
    let reason = format!("{REPLACED}its definition changed");
    starter.stop_and_free_ports(entry, reason).await?;
    let started = starter.start(service).await;
    let problem = started.as_ref().err().map(ToString::to_string);
    let key = starter.key(service.name());
    let registry = &starter.manager.services;
    registry.record_start(starter.caller, key, problem);
    started?.detach()
}
