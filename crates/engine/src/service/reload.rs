//! Services follow their `ostler.toml` (E7): what changed is started anew, nothing else is
//! touched, and nothing starts that did not run.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::future::select_all;
use ostler_model::{Caller, Scope};
use tokio::sync::Notify;

use super::clerk::{Clerk, Wanted};
use super::locks::Key;
use super::manifest::{Changes, Manifest, diff};
use super::view::{file, name_of, plan_of};
use super::watching::FileWatch;
use super::workspace::WorkspaceContext;
use super::{ServiceError, anew, graph};
use crate::core::Core;
use crate::entry::Entry;
use crate::error::Error;

/// Files of which services live.
#[derive(Debug, Default)]
pub(crate) struct Watches {
    known: Mutex<HashMap<PathBuf, Watched>>,
}

/// One file.
#[derive(Debug, Default)]
struct Watched {
    /// Told when another service of it lives.
    more: Arc<Notify>,
    /// Why its newest version cannot be used.
    problem: Option<String>,
    /// Why changes of it are not heard.
    deaf: Option<String>,
    /// Names that run and are not in it.
    removed: BTreeSet<String>,
    /// Names that could not be started anew.
    failed: BTreeMap<String, NotInForce>,
}

/// A definition that a running service could not be started anew by.
#[derive(Debug)]
struct NotInForce {
    /// Its fingerprint: a service that was started by it meanwhile is up to date.
    definition: Option<String>,
    problem: String,
}

impl Watches {
    fn lock(&self) -> MutexGuard<'_, HashMap<PathBuf, Watched>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether services live that are defined in this file, whether or not it is still there.
    pub(crate) fn is_watched(&self, path: &Path) -> bool {
        self.lock().contains_key(path)
    }

    fn change(&self, path: &Path, change: impl FnOnce(&mut Watched)) {
        if let Some(watched) = self.lock().get_mut(path) {
            change(watched);
        }
    }

    /// What deserves to be told of a service of this file; `definition` is the fingerprint of
    /// what it was started by.
    pub(crate) fn notes(
        &self,
        path: &Path,
        (name, definition): (&str, Option<&str>),
        lives: bool,
    ) -> Vec<String> {
        let known = self.lock();
        let Some(watched) = known.get(path) else {
            return Vec::new();
        };
        let file = path.display();
        let mut notes = Vec::new();
        let failed = watched.failed.get(name);
        let failed = failed.filter(|it| it.definition.as_deref() != definition);
        notes.extend(failed.map(|it| it.problem.clone()));
        if !lives {
            return notes;
        }
        if let Some(problem) = &watched.problem {
            notes.push(format!(
                "{file} cannot be used: {problem}; the services run on as before"
            ));
        }
        if let Some(problem) = &watched.deaf {
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

/// A service of this file lives: from now on, until the last one ends, its changes are heard.
pub(crate) fn watch(core: &Arc<Core>, path: &Path) {
    let mut known = core.book.watches.lock();
    if let Some(watched) = known.get(path) {
        watched.more.notify_one();
        return;
    }
    let watched = Watched::default();
    let more = Arc::clone(&watched.more);
    known.insert(path.to_owned(), watched);
    let (core, path) = (Arc::clone(core), path.to_owned());
    core.tracker
        .clone()
        .spawn(async move { follow(&core, &path, &more).await });
}

/// Takes up the files of services that an earlier engine left alive. What changed meanwhile is
/// noticed at once.
pub(crate) fn resume(core: &Arc<Core>) {
    let living = core.registry.living();
    let files = living.filter_map(|entry| file_of(&entry));
    for path in files.collect::<BTreeSet<PathBuf>>() {
        watch(core, &path);
    }
}

/// The file a service is defined in.
fn file_of(entry: &Entry) -> Option<PathBuf> {
    let defined_in = entry.spec.lifetime.plan()?.defined_in.as_ref()?;
    file(defined_in).map(Path::to_owned)
}

fn living(core: &Core, path: &Path) -> Vec<Arc<Entry>> {
    let living = core.registry.living();
    living
        .filter(|entry| file_of(entry).as_deref() == Some(path))
        .collect()
}

async fn follow(core: &Arc<Core>, path: &Path, more: &Notify) {
    let mut heard = match FileWatch::new(path) {
        Ok(heard) => Some(heard),
        Err(error) => {
            deafen(core, path, &error);
            None
        }
    };
    // What changed between its reading and now is not lost.
    let mut is_due = true;
    loop {
        if std::mem::take(&mut is_due) {
            tokio::select! {
                () = core.closing.cancelled() => return,
                () = Box::pin(take_in(core, path)) => {}
            }
        }
        let lives = {
            let mut known = core.book.watches.lock();
            let lives = living(core, path);
            if lives.is_empty() {
                known.remove(path);
                return;
            }
            lives
        };
        tokio::select! {
            () = core.closing.cancelled() => return,
            () = more.notified() => {}
            () = one_ended(&lives) => {}
            changed = hear(heard.as_mut()) => match changed {
                Ok(()) => is_due = true,
                Err(error) => {
                    deafen(core, path, &error);
                    heard = None;
                }
            },
        }
    }
}

fn deafen(core: &Core, path: &Path, error: &std::io::Error) {
    tracing::warn!(path = %path.display(), %error, "changes are not heard");
    let problem = error.to_string();
    core.book
        .watches
        .change(path, |watched| watched.deaf = Some(problem));
}

async fn hear(heard: Option<&mut FileWatch>) -> std::io::Result<()> {
    match heard {
        Some(heard) => heard.changed().await,
        None => std::future::pending().await,
    }
}

async fn one_ended(lives: &[Arc<Entry>]) {
    let ends = lives.iter().map(|entry| {
        let mut live = entry.live.subscribe();
        Box::pin(async move {
            // The sender lives in the entry, which is held.
            let _ended = live.wait_for(|live| live.state.is_finished()).await.is_ok();
        })
    });
    select_all(ends).await;
}

/// Reads the file and does what it says now.
async fn take_in(core: &Arc<Core>, path: &Path) {
    // A file that was removed defines nothing.
    let found = if path.exists() {
        Manifest::load(path)
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
            let told = |watched: &mut Watched| watched.problem = Some(problem);
            return core.book.watches.change(path, told);
        }
    };
    let lives = living(core, path);
    let changes = changes(&lives, &manifest);
    tracing::info!(path = %path.display(), ?changes, "read");
    core.book.watches.change(path, |watched| {
        watched.problem = None;
        watched.failed.clear();
        watched.removed = changes.removed.iter().cloned().collect();
    });
    for name in in_order(&changes.changed, &manifest) {
        for entry in lives.iter().filter(|it| is_outdated(it, &name, &manifest)) {
            if let Err(error) = start_anew(core, entry, &manifest).await {
                let problem = format!("its new definition is not in force: {error}");
                tracing::warn!(id = %entry.id, %error, "a changed service is left as it is");
                let definition = manifest.services.get(&name).map(|it| it.fingerprint());
                let failed = NotInForce {
                    definition,
                    problem,
                };
                core.book.watches.change(path, |watched| {
                    watched.failed.insert(name.clone(), failed);
                });
            }
        }
    }
}

fn changes(lives: &[Arc<Entry>], manifest: &Manifest) -> Changes {
    let prints = manifest.fingerprints();
    let mut running: BTreeMap<String, String> = BTreeMap::new();
    for entry in lives {
        let print = plan_of(entry).defined_as.clone().unwrap_or_default();
        let name = name_of(entry);
        // Where several owners run the same one, an outdated one counts.
        if prints.get(&name) == Some(&print) {
            running.entry(name).or_insert(print);
        } else {
            running.insert(name, print);
        }
    }
    diff(&running, &prints)
}

fn is_outdated(entry: &Entry, name: &str, manifest: &Manifest) -> bool {
    let defined = manifest.services.get(name).map(|it| it.fingerprint());
    name_of(entry) == name && plan_of(entry).defined_as != defined
}

/// What is needed first. In a file with a circle, in the order of names.
fn in_order(names: &[String], manifest: &Manifest) -> Vec<String> {
    let needs = |name: &str| {
        let defined = manifest.services.get(name);
        Some(defined.map(|it| it.depends_on.clone()).unwrap_or_default())
    };
    let order = graph::order(names, needs, &[]).unwrap_or_else(|_| names.to_vec());
    order.into_iter().filter(|it| names.contains(it)).collect()
}

/// Ends one and starts its new definition under the same name, for the same owner. Those that
/// depend on it are left alone. Where what it needs does not run, it is left as it is.
async fn start_anew(
    core: &Arc<Core>,
    entry: &Arc<Entry>,
    manifest: &Manifest,
) -> Result<(), Error> {
    let name = name_of(entry);
    let caller = Caller {
        owner: entry.owner().as_ref().clone(),
        scope: Scope::Session,
    };
    let context = WorkspaceContext::of(manifest.clone());
    let clerk = Clerk::new(core, &caller, &context);
    let base = anew::front(core, entry)?;
    let Some(wanted) = clerk.defined(&name, &base) else {
        return Ok(());
    };
    let needs = wanted.request.depends_on.clone();
    for need in &needs {
        if clerk.view().rival(&need.name).is_none() {
            return Err(ServiceError::Dependency {
                on: need.name.clone(),
                problem: "does not run".to_owned(),
            }
            .into());
        }
        clerk.meet(need).await?;
    }
    // Nothing is ended that could not be started again.
    clerk.may_run(&wanted)?;
    replace(clerk, entry, &wanted).await
}

async fn replace(clerk: Clerk<'_>, entry: &Arc<Entry>, wanted: &Wanted) -> Result<(), Error> {
    let path = clerk.manifest.map(|manifest| manifest.path.clone());
    let key = Key::new(clerk.caller, path, wanted.name());
    let _turn = clerk.core.book.locks.lock(key).await;
    if entry.is_finished() {
        return Ok(());
    }
    let reason = "replaced: its definition changed".to_owned();
    clerk.end(entry, reason).await?;
    clerk.begin(wanted).await?.release();
    Ok(())
}
