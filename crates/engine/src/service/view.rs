//! Which execution a name means: the registry, seen by one caller.

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;

use ostler_model::{Caller, Condition, ServicePlan, Text};

use super::{ServiceError, ServiceInfo};
use crate::core::Core;
use crate::entry::Entry;
use crate::error::Error;

/// Names told with an unknown one.
const KNOWN_NAMES: usize = 20;

/// Services as one caller sees them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct View<'a> {
    core: &'a Core,
    caller: &'a Caller,
    /// The `ostler.toml` whose names come first, where there is one.
    manifest: Option<&'a Path>,
}

impl<'a> View<'a> {
    pub(crate) const fn new(core: &'a Core, caller: &'a Caller) -> Self {
        Self {
            core,
            caller,
            manifest: None,
        }
    }

    /// The same, seen from where this `ostler.toml` holds.
    pub(crate) const fn from(self, manifest: Option<&'a Path>) -> Self {
        Self { manifest, ..self }
    }

    /// All of them, newest first.
    pub(crate) fn all(self) -> impl Iterator<Item = Arc<Entry>> + 'a {
        let entries = self.core.registry.all().into_iter();
        entries.filter(move |entry| {
            entry.spec.lifetime.plan().is_some() && self.caller.sees(&entry.owner())
        })
    }

    /// Those that live, newest first.
    pub(crate) fn living(self) -> impl Iterator<Item = Arc<Entry>> + 'a {
        self.all().filter(|entry| !entry.is_finished())
    }

    /// Those that share names with what the caller starts here, and live. Services of an
    /// `ostler.toml` have its names to themselves: two workspaces may both have a `web`.
    pub(crate) fn rivals(self) -> impl Iterator<Item = Arc<Entry>> + 'a {
        self.living()
            .filter(move |entry| self.is_of_project(entry) && self.is_from_here(entry))
    }

    /// The one that lives under this name where the caller stands.
    pub(crate) fn rival(self, name: &str) -> Option<Arc<Entry>> {
        self.rivals().find(|entry| name_of(entry) == name)
    }

    /// The execution a name or an id means: one that lives before one that ended, one of this
    /// workspace and project before others, the newest of them.
    pub(crate) fn find(self, given: &str) -> Option<Arc<Entry>> {
        let named = self
            .all()
            .filter(|entry| plan_of(entry).name == given && !is_one_shot(entry))
            .min_by_key(|entry| {
                let elsewhere = !self.is_of_project(entry);
                (entry.is_finished(), !self.is_from_here(entry), elsewhere)
            });
        named.or_else(|| {
            let entry = self.core.registry.find(self.caller, given).ok()?;
            entry.spec.lifetime.plan().is_some().then_some(entry)
        })
    }

    /// As [`View::find`], for whoever would change it.
    ///
    /// # Errors
    /// For a name nobody has, and one that several have that live: of two workspaces, say.
    pub(crate) fn get(self, given: &str) -> Result<Arc<Entry>, Error> {
        let found = self.find(given).ok_or_else(|| self.unknown(given, []))?;
        let others = self.living().filter(|entry| plan_of(entry).name == given);
        let others: Vec<Arc<Entry>> = others.filter(|it| it.id != found.id).collect();
        if others.is_empty() || plan_of(&found).name != given || self.manifest.is_some() {
            return Ok(found);
        }
        let told = |entry: &Arc<Entry>| format!("{} in {}", entry.id.short(), entry.spec.cwd);
        let all: Vec<String> = std::iter::once(&found).chain(&others).map(told).collect();
        Err(ServiceError::Value {
            what: "service name",
            given: given.to_owned(),
            problem: format!(
                "several are called so: {}; say which by its id",
                all.join(", ")
            ),
        }
        .into())
    }

    /// Nobody is called so.
    pub(crate) fn unknown(self, given: &str, defined: impl IntoIterator<Item = String>) -> Error {
        let mut known: Vec<String> = defined.into_iter().collect();
        known.extend(self.rows().iter().map(|entry| name_of(entry)));
        let mut seen = HashSet::new();
        known.retain(|name| seen.insert(name.clone()));
        known.truncate(KNOWN_NAMES);
        let name = given.to_owned();
        ServiceError::Unknown { name, known }.into()
    }

    /// What a list shows: every living one, and the newest end of each name that has none.
    pub(crate) fn rows(self) -> Vec<Arc<Entry>> {
        let (living, ended): (Vec<_>, Vec<_>) = self.all().partition(|it| !it.is_finished());
        let key = |entry: &Entry| {
            let plan = plan_of(entry);
            (
                name_of(entry),
                plan.defined_in.clone(),
                entry.owner().project.clone(),
            )
        };
        let mut seen: HashSet<_> = living.iter().map(|entry| key(entry)).collect();
        let ended = ended
            .into_iter()
            .filter(|entry| !is_one_shot(entry) && seen.insert(key(entry)));
        living
            .into_iter()
            .chain(ended.collect::<Vec<_>>())
            .collect()
    }

    /// Living ones that need this one, directly.
    pub(crate) fn dependents(self, of: &Entry) -> Vec<Arc<Entry>> {
        let (name, from) = (name_of(of), file(&plan_of(of).defined_in));
        let needs = |entry: &Arc<Entry>| {
            let plan = plan_of(entry);
            let waits = plan.depends_on.iter().filter(|it| it.name == name);
            let needed = waits
                .filter(|it| it.condition != Condition::Completed)
                .count()
                > 0;
            let another = file(&plan.defined_in).is_some_and(|at| from.is_some_and(|it| it != at));
            needed && !another
        };
        let project = of.owner().project.clone();
        self.living()
            .filter(|entry| {
                entry.id != of.id && may_share(entry.owner().project.as_deref(), project.as_deref())
            })
            .filter(needs)
            .collect()
    }

    fn is_of_project(self, entry: &Entry) -> bool {
        may_share(
            entry.owner().project.as_deref(),
            self.caller.owner.project.as_deref(),
        )
    }

    fn is_from_here(self, entry: &Entry) -> bool {
        match file(&plan_of(entry).defined_in) {
            Some(path) => self.manifest == Some(path),
            None => true,
        }
    }
}

/// The `ostler.toml` a service is defined in; none of those of the API and those that were just
/// asked for.
pub(crate) fn file(defined_in: &Option<Text>) -> Option<&Path> {
    let path = defined_in.as_ref().map(Text::as_path);
    path.filter(|path| path.is_absolute())
}

/// What was asked of a service.
///
/// # Panics
/// For what is no service: views give none out.
pub(crate) fn plan_of(entry: &Entry) -> &ServicePlan {
    let plan = entry.spec.lifetime.plan();
    plan.expect("only services are asked for their plan")
}

/// What a service is called.
pub(crate) fn name_of(entry: &Entry) -> String {
    let name = &plan_of(entry).name;
    if name.is_empty() {
        entry.id.short()
    } else {
        name.clone()
    }
}

/// Whether a command that looked like a service turned out to be none (E4): it ended well
/// before it was ever ready.
pub(crate) fn is_one_shot(entry: &Entry) -> bool {
    let live = entry.live.borrow();
    let state = &live.state;
    let ended_well = state.ending.as_ref().is_some_and(|it| it.is_success());
    plan_of(entry).automatic && ended_well && state.ready_evidence.is_none()
}

/// What callers are told of it.
pub(crate) fn told(entry: &Entry) -> ServiceInfo {
    let plan = plan_of(entry).clone();
    ServiceInfo {
        name: name_of(entry),
        execution: Some(entry.fresh_info()),
        defined_in: plan.defined_in.as_ref().map(ToString::to_string),
        command: entry.spec.command.display(),
        plan,
        pending: None,
        notes: Vec::new(),
    }
}

/// Whether two projects may be the same: a person at the command line names none.
fn may_share(one: Option<&str>, other: Option<&str>) -> bool {
    one.is_none() || other.is_none() || one == other
}
