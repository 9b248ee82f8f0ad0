//! Resolves service names to executions, for one caller.

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;

use ostler_model::{ByteString, Caller, DependencyCondition, ServicePlan};

use super::workspace::{NameScope, ServiceScope};
use super::{ServiceError, ServiceInfo};
use crate::engine_inner::EngineInner;
use crate::error::Error;
use crate::execution::ExecutionHandle;

/// The most known names in the error about an unknown one.
const KNOWN_NAMES: usize = 20;

/// The services that one caller sees.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CallerServices<'a> {
    core: &'a EngineInner,
    caller: &'a Caller,
    scope: NameScope<'a>,
}

impl<'a> CallerServices<'a> {
    pub(crate) const fn new(core: &'a EngineInner, caller: &'a Caller) -> Self {
        Self {
            core,
            caller,
            scope: NameScope::AllWorkspaces,
        }
    }

    /// The same, with names resolved in `scope`.
    pub(crate) const fn in_scope(self, scope: NameScope<'a>) -> Self {
        Self { scope, ..self }
    }

    /// All services, newest first.
    pub(crate) fn all(self) -> impl Iterator<Item = Arc<ExecutionHandle>> + 'a {
        // Services are never summarized.
        let entries = self.core.registry.all_with(|_| false);
        entries.filter(move |entry| {
            entry.spec.lifetime.plan().is_some() && self.caller.can_access(&entry.owner())
        })
    }

    /// The running services, newest first.
    pub(crate) fn living(self) -> impl Iterator<Item = Arc<ExecutionHandle>> + 'a {
        self.all().filter(|entry| !entry.is_finished())
    }

    /// The running services that share a namespace with what the caller starts here: each workspace
    /// has its own names.
    pub(crate) fn living_in_scope(self) -> impl Iterator<Item = Arc<ExecutionHandle>> + 'a {
        self.living()
            .filter(move |entry| self.is_in_project(entry) && self.is_in_scope(entry))
    }

    /// The running service of this name in the caller's scope.
    pub(crate) fn find_living(self, name: &str) -> Option<Arc<ExecutionHandle>> {
        self.living_in_scope().find(|entry| name_of(entry) == name)
    }

    /// The execution that an id or a name of this workspace refers to. An id comes first: a service
    /// may be named like the id of another one. Of those with the name a running one comes before an
    /// ended one, one of this project before others, the newest of them.
    pub(crate) fn find(self, name_or_id: &str) -> Option<Arc<ExecutionHandle>> {
        let by_id = self.core.registry.find(self.caller, name_or_id).ok();
        let by_id = by_id.filter(|entry| entry.spec.lifetime.plan().is_some());
        by_id.or_else(|| {
            self.by_name(name_or_id)
                .filter(|entry| self.is_in_scope(entry))
                .min_by_key(|entry| (entry.is_finished(), !self.is_in_project(entry)))
        })
    }

    fn by_name(self, name: &str) -> impl Iterator<Item = Arc<ExecutionHandle>> + 'a {
        let name = name.to_owned();
        self.all()
            .filter(move |entry| plan_of(entry).name == name && !is_one_shot(entry))
    }

    /// As [`CallerServices::find`]; where no service here has the name, what this session started
    /// in another workspace.
    pub(crate) fn find_reachable(self, name_or_id: &str) -> Option<Arc<ExecutionHandle>> {
        self.find(name_or_id).or_else(|| {
            let own = self
                .by_name(name_or_id)
                .filter(|entry| self.is_in_session(entry));
            own.min_by_key(|entry| entry.is_finished())
        })
    }

    fn is_in_session(self, entry: &ExecutionHandle) -> bool {
        let session = self.caller.owner.session.as_ref();
        session.is_some() && entry.owner().session.as_ref() == session
    }

    /// The running services that are visible only in other workspaces.
    pub(crate) fn elsewhere(self) -> impl Iterator<Item = Arc<ExecutionHandle>> + 'a {
        self.living().filter(move |entry| !self.is_in_scope(entry))
    }

    /// As [`CallerServices::find_reachable`], for callers that change the service.
    ///
    /// # Errors
    /// For an unknown name, and for one that several running services have, in two workspaces for
    /// example.
    pub(crate) fn get(self, name_or_id: &str) -> Result<Arc<ExecutionHandle>, Error> {
        let found = self
            .find_reachable(name_or_id)
            .ok_or_else(|| self.unknown_name(name_or_id, []))?;
        let is_here = self.is_in_scope(&found);
        let others = self.living().filter(|entry| {
            let is_candidate = if is_here {
                self.is_in_scope(entry)
            } else {
                self.is_in_session(entry)
            };
            is_candidate && plan_of(entry).name == name_or_id && entry.id != found.id
        });
        let others: Vec<Arc<ExecutionHandle>> = others.collect();
        if others.is_empty() || plan_of(&found).name != name_or_id {
            return Ok(found);
        }
        let describe =
            |entry: &Arc<ExecutionHandle>| format!("{} in {}", entry.id.short(), entry.spec.cwd);
        let all: Vec<String> = std::iter::once(&found)
            .chain(&others)
            .map(describe)
            .collect();
        Err(ServiceError::Value {
            what: "service name",
            given: name_or_id.to_owned(),
            problem: format!(
                "several are called so: {}; say which by its id",
                all.join(", ")
            ),
        }
        .into())
    }

    /// The error for an unknown name; known are the `defined` ones and those in lists.
    pub(crate) fn unknown_name(
        self,
        name: &str,
        defined: impl IntoIterator<Item = String>,
    ) -> Error {
        let rows = self.rows();
        let rows = rows.iter().map(|entry| name_of(entry));
        self.undefined_name(name, defined.into_iter().chain(rows))
    }

    /// The error for a name that is not defined; known are only the `defined` ones.
    pub(crate) fn undefined_name(
        self,
        name: &str,
        defined: impl IntoIterator<Item = String>,
    ) -> Error {
        let others = self.elsewhere().filter(|entry| plan_of(entry).name == name);
        let describe = |entry: Arc<ExecutionHandle>| {
            let dir = self.scope_of(&entry).workspace();
            let dir = dir.as_deref().and_then(Path::parent);
            let dir = dir.map_or_else(|| entry.spec.cwd.to_string(), |it| it.display().to_string());
            format!("{} in {dir}", entry.id.short())
        };
        ServiceError::Unknown {
            name: name.to_owned(),
            known: other_names(name, defined),
            elsewhere: others.take(KNOWN_NAMES).map(describe).collect(),
        }
        .into()
    }

    /// The rows of a list: every running service, and for each other name the newest ended one,
    /// unless it was dismissed.
    pub(crate) fn rows(self) -> Vec<Arc<ExecutionHandle>> {
        let mut rows = self.rows_and_dismissed();
        rows.retain(|entry| !entry.is_dismissed());
        rows
    }

    /// As [`CallerServices::rows`], including dismissed ones.
    pub(crate) fn rows_and_dismissed(self) -> Vec<Arc<ExecutionHandle>> {
        let here = self.all().filter(|entry| self.is_in_scope(entry));
        let (living, ended): (Vec<_>, Vec<_>) = here.partition(|it| !it.is_finished());
        let key = |entry: &ExecutionHandle| {
            let plan = plan_of(entry);
            (
                name_of(entry),
                plan.defined_in.clone(),
                self.scope_of(entry),
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

    /// The running services that depend on this one directly.
    pub(crate) fn dependents(self, of: &ExecutionHandle) -> Vec<Arc<ExecutionHandle>> {
        let (name, scope) = (name_of(of), self.scope_of(of));
        let needs = |entry: &Arc<ExecutionHandle>| {
            let plan = plan_of(entry);
            let dependencies = plan.depends_on.iter().filter(|it| it.name == name);
            let needed = dependencies
                .filter(|it| it.condition != DependencyCondition::Completed)
                .count()
                > 0;
            needed && self.scope_of(entry).shares_names(&scope)
        };
        let project = of.owner().project.clone();
        self.living()
            .filter(|entry| {
                entry.id != of.id
                    && may_be_same_project(entry.owner().project.as_deref(), project.as_deref())
            })
            .filter(needs)
            .collect()
    }

    fn is_in_project(self, entry: &ExecutionHandle) -> bool {
        may_be_same_project(
            entry.owner().project.as_deref(),
            self.caller.owner.project.as_deref(),
        )
    }

    fn is_in_scope(self, entry: &ExecutionHandle) -> bool {
        self.scope == NameScope::AllWorkspaces || self.scope.includes(&self.scope_of(entry))
    }

    /// The scope of a service.
    pub(crate) fn scope_of(self, entry: &ExecutionHandle) -> ServiceScope {
        let defined_in = plan_of(entry).defined_in.as_ref();
        ServiceScope::new(&self.core.settings, defined_in, &entry.spec.cwd)
    }
}

/// The names to list in the error about an unknown one: each once, without that one.
pub(crate) fn other_names(unknown: &str, names: impl IntoIterator<Item = String>) -> Vec<String> {
    let mut seen = HashSet::new();
    names
        .into_iter()
        .filter(|name| name != unknown && seen.insert(name.clone()))
        .take(KNOWN_NAMES)
        .collect()
}

/// The `ostler.toml` that a service is defined in; none for API definitions and ad-hoc requests.
pub(crate) fn manifest_path(defined_in: &ByteString) -> Option<&Path> {
    let path = defined_in.as_path();
    path.is_absolute().then_some(path)
}

/// The service options of an execution.
///
/// # Panics
/// For an execution that is not a service: callers pass only services.
pub(crate) fn plan_of(entry: &ExecutionHandle) -> &ServicePlan {
    let plan = entry.spec.lifetime.plan();
    plan.expect("only services are asked for their plan")
}

/// The name of a service.
pub(crate) fn name_of(entry: &ExecutionHandle) -> String {
    let name = &plan_of(entry).name;
    if name.is_empty() {
        entry.id.short()
    } else {
        name.clone()
    }
}

/// Whether a command that was detected as a service was none: it ended successfully before it was
/// ever ready.
pub(crate) fn is_one_shot(entry: &ExecutionHandle) -> bool {
    let live = entry.live.borrow();
    let state = &live.state;
    let ended_well = state.ending.as_ref().is_some_and(|it| it.is_success());
    plan_of(entry).automatic && ended_well && state.ready_evidence.is_none()
}

/// The info of a service in this scope.
pub(crate) fn service_info(entry: &ExecutionHandle, scope: ServiceScope) -> ServiceInfo {
    let plan = plan_of(entry).clone();
    ServiceInfo {
        name: name_of(entry),
        execution: Some(entry.fresh_info()),
        defined_in: plan.defined_in.as_ref().map(ToString::to_string),
        definition: None,
        workspace: scope.workspace(),
        command: entry.spec.command.display(),
        plan,
        pending: None,
        dismissed: entry.is_dismissed(),
        notes: Vec::new(),
    }
}

/// Whether two projects may be the same: command-line requests name none.
fn may_be_same_project(one: Option<&str>, other: Option<&str>) -> bool {
    one.is_none() || other.is_none() || one == other
}
