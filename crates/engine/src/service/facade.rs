//! What every face asks of services.

use std::collections::HashSet;
use std::path::Path;

use ostler_model::{Caller, ExecutionId, Holder, Text, Timestamp};

use super::clerk::{Clerk, Wanted};
use super::lookup::is_same;
use super::manifest::Manifest;
use super::why::{Case, explain, ports_in_question};
use super::workspace::{ServiceScope, WorkspaceContext};
use super::{
    Definition, Ensured, ServiceError, ServiceInfo, ServiceRequest, ServiceStopped, Why, anew,
    names, ports, up, words,
};
use crate::admission::arguments;
use crate::begin::{self, Begun};
use crate::detection::Detected;
use crate::engine::Engine;
use crate::error::Error;
use crate::readiness::is_conflict;
use crate::request::{StartRequest, StopRequest};
use crate::stop;

/// Lines looked at by [`Engine::why`].
const LINES: u64 = 200;

impl Engine {
    /// The service a request's command is, by the table (E2); none where it is no service.
    #[must_use]
    pub fn detect(&self, request: &StartRequest) -> Option<Detected> {
        self.core.book.detect(&self.core.settings, request)
    }

    /// The request that starts a command again: as it was asked for, as far as that is known.
    /// Where its input came from and the environment of who asked are not.
    ///
    /// # Errors
    /// [`Error::NotFound`]; for services and shell sessions; a secret that is gone.
    pub fn request_again(
        &self,
        caller: &Caller,
        id: &str,
        front: Vec<(Text, Text)>,
    ) -> Result<StartRequest, Error> {
        let entry = self.core.registry.find(caller, id)?;
        anew::command(&self.core, &entry, (&caller.owner, front))
    }

    /// Admits and starts a service; answers when its program runs and before it is ready:
    /// [`WaitFor::Ready`](crate::WaitFor) waits for that. What it depends on is started before
    /// it and waited for.
    ///
    /// # Errors
    /// As [`Engine::launch`], and [`Error::Service`]; nothing was started where a name is not
    /// known or taken, or dependencies go in a circle.
    pub async fn start_service(
        &self,
        caller: &Caller,
        request: ServiceRequest,
    ) -> Result<Begun, Error> {
        let id = request.start.id;
        if let Some(existing) = begin::existing_after_starts(&self.core, caller, id).await? {
            existing.started().await?;
            return Ok(existing);
        }
        let begun = self.start_new_service(caller, request).await;
        if begun.is_err()
            && let Some(existing) = begin::existing_after_starts(&self.core, caller, id).await?
        {
            // The same start came twice, and this one found its own name taken.
            existing.started().await?;
            return Ok(existing);
        }
        begun
    }

    async fn start_new_service(
        &self,
        caller: &Caller,
        request: ServiceRequest,
    ) -> Result<Begun, Error> {
        let context = self.context(&request.start);
        let clerk = Clerk::new(&self.core, caller, &context);
        if let Some(name) = &request.name {
            clerk.free(name)?;
        }
        let wanted = Wanted::asked(request);
        if !wanted.request.depends_on.is_empty() {
            let context = self.context_of(&wanted.request.start)?;
            let clerk = Clerk::new(&self.core, caller, &context);
            Box::pin(clerk.start_needs(&wanted)).await?;
        }
        Box::pin(clerk.begin(&wanted)).await
    }

    /// A living service of this name (or of this command in this directory) that is well is
    /// reused; one that is not is replaced; a port held by a stranger is explained. A request
    /// that names one that is defined, and has an empty command, means that one.
    ///
    /// # Errors
    /// As [`Engine::start_service`].
    pub async fn ensure_service(
        &self,
        caller: &Caller,
        request: ServiceRequest,
    ) -> Result<Ensured, Error> {
        let has_command = !request.start.command.program().is_empty();
        let context = if has_command && request.depends_on.is_empty() {
            self.context(&request.start)
        } else {
            self.context_of(&request.start)?
        };
        let clerk = Clerk::new(&self.core, caller, &context);
        let base = request.start.clone();
        let wanted = match &request.name {
            Some(name) if !has_command => match clerk.defined(name, &base) {
                Some(mut defined) => {
                    defined.request.start.id = base.id;
                    defined
                }
                None => self.known(clerk, name)?,
            },
            Some(_) | None => Wanted::asked(request),
        };
        let steps = clerk.steps(vec![wanted], &base)?;
        let outcomes = Box::pin(clerk.climb(&steps)).await;
        up::last(outcomes)
    }

    /// As [`Engine::ensure_service`], for those that are defined or were started here, with
    /// everything they depend on; without names, all that are defined. `cwd` is where an `ostler.toml` is looked for, upwards;
    /// `base` is what the front brings (its command does not matter).
    ///
    /// # Errors
    /// As [`Engine::ensure_service`].
    pub async fn service_up(
        &self,
        caller: &Caller,
        cwd: &Path,
        names: &[String],
        base: &StartRequest,
    ) -> Result<Vec<Ensured>, Error> {
        let home = self.home(Some(base));
        let manifest = Manifest::find(cwd, home.as_deref())?;
        let context =
            WorkspaceContext::at(cwd, home.as_deref(), &self.core.book.watches).with(manifest);
        let clerk = Clerk::new(&self.core, caller, &context);
        let known: Vec<String> = clerk.definitions().into_iter().map(|it| it.name).collect();
        let mut asked = if names.is_empty() {
            known.clone()
        } else {
            names.to_vec()
        };
        let mut seen = HashSet::new();
        asked.retain(|name| seen.insert(name.clone()));
        let absent = |name: Option<&String>| ServiceError::NoManifest {
            from: cwd.display().to_string(),
            name: name.cloned(),
        };
        if asked.is_empty() {
            return Err(absent(None).into());
        }
        let mut roots = Vec::with_capacity(asked.len());
        for name in &asked {
            let found = match clerk.defined(name, base) {
                Some(defined) => Some(defined),
                None => clerk.started(name)?,
            };
            roots.push(match (found, &context.manifest) {
                (Some(found), _) => found,
                (None, None) => return Err(absent(Some(name)).into()),
                (None, Some(_)) => return Err(clerk.view().unknown(name, known)),
            });
        }
        let steps = clerk.steps(roots, base)?;
        let outcomes = Box::pin(clerk.climb(&steps)).await;
        up::every(&steps, outcomes)
    }

    /// Stops a service by name or id, those that depend on it first; succeeds when its tree is
    /// empty and says which of its ports are free (E8). Stopping what has ended changes nothing.
    ///
    /// # Errors
    /// [`Error::Service`] for an unknown name; as [`Engine::stop`].
    pub async fn stop_service(
        &self,
        caller: &Caller,
        (name, cwd): (&str, Option<&Path>),
        request: StopRequest,
    ) -> Result<ServiceStopped, Error> {
        let reason = request.reason.as_ref().map_or(0, String::len);
        arguments::at_most("the reason", reason, arguments::REASON_BYTES)?;
        let context = self.context_at(cwd);
        let clerk = Clerk::new(&self.core, caller, &context);
        let entry = clerk.view().get(name)?;
        Box::pin(clerk.stop(&entry, request)).await
    }

    /// Ends its attempt and begins the next one at once, under the same id; one that has ended,
    /// or is only defined through the API, is started anew, with what its front brought.
    ///
    /// # Errors
    /// As [`Engine::stop_service`].
    pub async fn restart_service(
        &self,
        caller: &Caller,
        name: &str,
        cwd: Option<&Path>,
    ) -> Result<ServiceInfo, Error> {
        let context = self.context_at(cwd);
        let clerk = Clerk::new(&self.core, caller, &context);
        let found = match clerk.view().reach(name) {
            Some(_) => Some(clerk.view().get(name)?),
            None => None,
        };
        if let Some(entry) = found.as_ref().filter(|entry| !entry.is_finished()) {
            let by = caller.owner.principal.clone();
            let why = (by, "asked for".to_owned());
            match stop::begin_again(&self.core, entry, why).await {
                Ok(()) if !entry.is_finished() => return Ok(clerk.told(entry)),
                Ok(()) | Err(Error::Control(_)) => {}
                Err(error) => return Err(error),
            }
        }
        let wanted = match found {
            Some(entry) => anew::wanted(&self.core, &entry)?,
            None => self.known(clerk, name)?,
        };
        let context = match wanted.origin.as_ref().map(|it| it.defined_in.as_path()) {
            Some(path) if path.is_file() => WorkspaceContext::of(Manifest::read(path)?),
            Some(_) | None => self.context(&wanted.request.start),
        };
        let clerk = Clerk::new(&self.core, caller, &context);
        let base = wanted
            .front
            .as_deref()
            .unwrap_or(&wanted.request.start)
            .clone();
        // Its definition may be another one by now.
        let defined = wanted
            .origin
            .as_ref()
            .and_then(|_| clerk.defined(wanted.name(), &base));
        let steps = clerk.steps(vec![defined.unwrap_or(wanted)], &base)?;
        let outcomes = Box::pin(clerk.climb(&steps)).await;
        Ok(up::last(outcomes)?.service)
    }

    /// Every service the caller sees of the workspace of `cwd`, or of all workspaces: defined,
    /// living, ended and not dismissed.
    ///
    /// # Errors
    /// [`Error::Service`] for an `ostler.toml` that cannot be used, unless services of it live:
    /// then they say so.
    pub fn services(&self, caller: &Caller, cwd: Option<&Path>) -> Result<Vec<ServiceInfo>, Error> {
        self.service_rows(caller, cwd, false)
    }

    /// As [`Engine::services`], with those that were dismissed.
    ///
    /// # Errors
    /// As [`Engine::services`].
    pub fn services_and_dismissed(
        &self,
        caller: &Caller,
        cwd: Option<&Path>,
    ) -> Result<Vec<ServiceInfo>, Error> {
        self.service_rows(caller, cwd, true)
    }

    fn service_rows(
        &self,
        caller: &Caller,
        cwd: Option<&Path>,
        with_dismissed: bool,
    ) -> Result<Vec<ServiceInfo>, Error> {
        let context = self.context_for(caller, cwd)?;
        let clerk = Clerk::new(&self.core, caller, &context);
        let mut rows: Vec<ServiceInfo> = Vec::new();
        for info in self.core.book.pending(|owner| caller.sees(owner)) {
            if context.names().knows(&ServiceScope::of(&info))
                && !rows.iter().any(|row| is_same(row, &info))
            {
                rows.push(info);
            }
        }
        let ended_too = if with_dismissed {
            clerk.view().rows_and_dismissed()
        } else {
            clerk.view().rows()
        };
        for entry in ended_too {
            let info = clerk.told(&entry);
            match rows.iter_mut().find(|row| is_same(row, &info)) {
                // It waits to be started once more.
                Some(row) if entry.is_finished() => row.execution = info.execution,
                Some(row) => *row = info,
                None => rows.push(info),
            }
        }
        for info in clerk.definitions() {
            if !rows.iter().any(|row| is_same(row, &info)) {
                rows.push(info);
            }
        }
        Ok(rows)
    }

    /// How many services live in other workspaces than that of `cwd`.
    #[must_use]
    pub fn services_elsewhere(&self, caller: &Caller, cwd: Option<&Path>) -> usize {
        let context = self.context_at(cwd);
        let clerk = Clerk::new(&self.core, caller, &context);
        clerk.view().elsewhere().count()
    }

    /// One service by name or id.
    ///
    /// # Errors
    /// [`Error::Service`] for an unknown name.
    pub fn service(
        &self,
        caller: &Caller,
        name: &str,
        cwd: Option<&Path>,
    ) -> Result<ServiceInfo, Error> {
        let context = self.context_for(caller, cwd)?;
        let clerk = Clerk::new(&self.core, caller, &context);
        let defined = clerk.definitions();
        let entry = if defined.iter().any(|it| it.name == name) {
            clerk.view().find(name)
        } else {
            clerk.view().reach(name)
        };
        if let Some(living) = entry.as_ref().filter(|it| !it.is_finished()) {
            return Ok(clerk.told(living));
        }
        let pending = self.core.book.pending(|owner| caller.sees(owner));
        let mut pending = pending.into_iter();
        let here = |it: &ServiceInfo| context.names().knows(&ServiceScope::of(it));
        if let Some(mut info) = pending.find(|it| it.name == name && here(it)) {
            info.execution = entry.map(|it| it.fresh_info());
            return Ok(info);
        }
        match (entry, defined.iter().find(|it| it.name == name)) {
            (Some(entry), _) => Ok(clerk.told(&entry)),
            (None, Some(defined)) => Ok(defined.clone()),
            (None, None) => {
                let known = defined.into_iter().map(|it| it.name);
                Err(clerk.view().unknown(name, known))
            }
        }
    }

    /// Why a service is where it is.
    ///
    /// # Errors
    /// As [`Engine::service`].
    pub async fn why(&self, caller: &Caller, name: &str, cwd: Option<&Path>) -> Result<Why, Error> {
        let info = self.service(caller, name, cwd)?;
        let entry = info.execution.as_ref();
        let entry = entry.and_then(|it| self.core.registry.get(it.id));
        let lines = match &entry {
            Some(entry) => words::last_lines(entry, LINES),
            None => Vec::new(),
        };
        let mut asked = ports_in_question(&info, &lines);
        asked.extend(info.main_port());
        let holders = self.others_on(caller, &info, &asked).await;
        let needs = info.plan.depends_on.iter();
        // What it needs is of its own workspace, wherever who asks stands.
        let dir = info.workspace.as_deref().and_then(Path::parent);
        let cwd = dir.or(cwd);
        let case = Case {
            info: &info,
            needs: needs
                .map(|need| (need.clone(), self.service(caller, &need.name, cwd).ok()))
                .collect(),
            holders,
            lines,
            now: Timestamp::now(),
        };
        Ok(explain(&case))
    }

    /// Whether the last lines of an execution say that a port is in use.
    #[must_use]
    pub fn met_a_taken_port(&self, id: ExecutionId) -> bool {
        let entry = self.core.registry.get(id);
        let lines = entry.map(|entry| words::last_lines(&entry, LINES));
        lines.is_some_and(|lines| lines.iter().any(|line| is_conflict(line)))
    }

    /// Who but a service itself listens on ports, with the caller's service each is.
    async fn others_on(
        &self,
        caller: &Caller,
        info: &ServiceInfo,
        ports: &[u16],
    ) -> Vec<(Holder, Option<String>)> {
        let mut holders = self.core.place.holders(ports).await;
        let own = info.execution.as_ref().map(|it| (it.id, &it.state.ports));
        holders.retain(|holder| {
            !own.as_ref().is_some_and(|(id, ports)| {
                holder.execution == Some(*id) || ports.iter().any(|it| Some(it.pid) == holder.pid)
            })
        });
        let known = |holder| ports::known(&self.core, caller, holder);
        holders.into_iter().map(known).collect()
    }

    /// Keeps a definition under its name, for its principal and project (E7); it starts on
    /// request only.
    ///
    /// # Errors
    /// [`Error::Service`], [`Error::Storage`]; everything that can be refused without looking
    /// at the machine is refused here.
    pub fn define_service(&self, caller: &Caller, request: &ServiceRequest) -> Result<(), Error> {
        let name = request.name.clone().unwrap_or_default();
        names::check(&name).map_err(|problem| ServiceError::Value {
            what: "service name",
            given: name.clone(),
            problem,
        })?;
        let definition = Definition::of(name, request);
        let wanted = Wanted::defined(&definition, Text::default(), &request.start);
        let context = WorkspaceContext::default();
        let clerk = Clerk::new(&self.core, caller, &context);
        clerk.check(&wanted)?;
        self.core.book.definitions.put(caller, definition)
    }

    /// Forgets a definition of the API; what runs goes on.
    ///
    /// # Errors
    /// [`Error::Service`] for an unknown name, [`Error::Storage`].
    pub fn forget_service(&self, caller: &Caller, name: &str) -> Result<(), Error> {
        if self.core.book.definitions.remove(caller, name)? {
            return Ok(());
        }
        let known = self.core.book.definitions.of(caller);
        Err(ServiceError::Unknown {
            name: name.to_owned(),
            known: known.into_iter().map(|it| it.name).collect(),
            elsewhere: Vec::new(),
        }
        .into())
    }
}
