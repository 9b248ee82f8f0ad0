//! The facade's methods for services.

use std::collections::HashSet;
use std::path::Path;

use ostler_model::{ByteString, Caller, ExecutionId, PortHolder, Timestamp};

use super::diagnosis::{DiagnosisInput, contested_ports, diagnose};
use super::lookup::is_same_service;
use super::manifest::Manifest;
use super::starter::{ResolvedService, ServiceStarter};
use super::workspace::{ServiceScope, WorkspaceContext};
use super::{
    Diagnosis, EnsureResult, ServiceDefinition, ServiceError, ServiceInfo, ServiceRequest,
    ServiceStopped, format, ports, restart_request, start_plan,
};
use crate::admission::arguments;
use crate::detection::DetectedService;
use crate::engine::Engine;
use crate::error::Error;
use crate::readiness::is_port_conflict;
use crate::request::{StartRequest, StopRequest};
use crate::service_names;
use crate::start::{self, StartGuard};
use crate::stop;

/// Lines of output that [`Engine::diagnose_service`] reads.
const LINES: u64 = 200;

impl Engine {
    /// The service that the table recognises in a request's command; none where it recognises none.
    #[must_use]
    pub fn detect(&self, request: &StartRequest) -> Option<DetectedService> {
        self.inner.services.detect(&self.inner.settings, request)
    }

    /// The request that runs a command again, as it was requested, as far as that is recorded. The
    /// source of its input and the client's environment are not.
    ///
    /// # Errors
    /// [`Error::NotFound`]; for services and shell sessions; a secret that is gone.
    pub fn rerun_request(
        &self,
        caller: &Caller,
        id: &str,
        client_env: Vec<(ByteString, ByteString)>,
    ) -> Result<StartRequest, Error> {
        let entry = self.inner.registry.find(caller, id)?;
        restart_request::rebuild_command(&self.inner, &entry, (&caller.owner, client_env))
    }

    /// Admits and starts a service; returns when its program runs and before it is ready:
    /// [`WaitFor::Ready`](crate::WaitFor) waits for that. Its dependencies are started before it
    /// and awaited.
    ///
    /// # Errors
    /// As [`Engine::start_unawaited`], and [`Error::Service`]; nothing was started where a name is
    /// unknown or taken, or the dependencies form a cycle.
    pub async fn start_service(
        &self,
        caller: &Caller,
        request: ServiceRequest,
    ) -> Result<StartGuard, Error> {
        let id = request.start.id;
        if let Some(guard) = start::find_existing_after_starts(&self.inner, caller, id).await? {
            guard.wait_started().await?;
            return Ok(guard);
        }
        let result = self.start_new_service(caller, request).await;
        if result.is_err()
            && let Some(guard) = start::find_existing_after_starts(&self.inner, caller, id).await?
        {
            // The same start arrived twice, and this one found its own name taken.
            guard.wait_started().await?;
            return Ok(guard);
        }
        result
    }

    async fn start_new_service(
        &self,
        caller: &Caller,
        request: ServiceRequest,
    ) -> Result<StartGuard, Error> {
        let context = self.context(&request.start);
        let starter = ServiceStarter::new(&self.inner, caller, &context);
        if let Some(name) = &request.name {
            starter.ensure_name_free(name)?;
        }
        let service = ResolvedService::from_request(request);
        if !service.request.depends_on.is_empty() {
            let context = self.context_with_manifest(&service.request.start)?;
            let starter = ServiceStarter::new(&self.inner, caller, &context);
            Box::pin(starter.start_dependencies(&service)).await?;
        }
        Box::pin(starter.start(&service)).await
    }

    /// Ensures that a service runs: a running one of this name (or of this command in this
    /// directory) is reused when it is healthy and replaced when it is not; a port held by a
    /// foreign process is explained. A request that names a defined service, and has an empty
    /// command, refers to that one.
    ///
    /// # Errors
    /// As [`Engine::start_service`].
    pub async fn ensure_service(
        &self,
        caller: &Caller,
        request: ServiceRequest,
    ) -> Result<EnsureResult, Error> {
        let has_command = !request.start.command.program().is_empty();
        let context = if has_command && request.depends_on.is_empty() {
            self.context(&request.start)
        } else {
            self.context_with_manifest(&request.start)?
        };
        let starter = ServiceStarter::new(&self.inner, caller, &context);
        let base = request.start.clone();
        let service = match &request.name {
            Some(name) if !has_command => match starter.find_definition(name, &base) {
                Some(mut defined) => {
                    defined.request.start.id = base.id;
                    defined
                }
                None => self.find_restartable(starter, name)?,
            },
            Some(_) | None => ResolvedService::from_request(request),
        };
        let steps = starter.steps(vec![service], &base)?;
        let outcomes = Box::pin(starter.run_steps(&steps)).await;
        start_plan::last_outcome(outcomes)
    }

    /// As [`Engine::ensure_service`], for services that are defined or were started here, with all
    /// their dependencies; without names, for every defined service. `cwd` is where the upward
    /// search for an `ostler.toml` begins; `base` holds the client's environment and options (its
    /// command is ignored).
    ///
    /// # Errors
    /// As [`Engine::ensure_service`].
    pub async fn service_up(
        &self,
        caller: &Caller,
        cwd: &Path,
        names: &[String],
        base: &StartRequest,
    ) -> Result<Vec<EnsureResult>, Error> {
        let home = self.home(Some(base));
        let manifest = Manifest::find(cwd, home.as_deref())?;
        let context = WorkspaceContext::at(cwd, home.as_deref(), &self.inner.services.watches)
            .with_manifest(manifest);
        let starter = ServiceStarter::new(&self.inner, caller, &context);
        let known: Vec<String> = starter
            .definitions()
            .into_iter()
            .map(|it| it.name)
            .collect();
        let mut requested = if names.is_empty() {
            known.clone()
        } else {
            names.to_vec()
        };
        let mut seen = HashSet::new();
        requested.retain(|name| seen.insert(name.clone()));
        let no_manifest = |name: Option<&String>| ServiceError::NoManifest {
            from: cwd.display().to_string(),
            name: name.cloned(),
        };
        if requested.is_empty() {
            return Err(no_manifest(None).into());
        }
        let mut roots = Vec::with_capacity(requested.len());
        for name in &requested {
            let found = match starter.find_definition(name, base) {
                Some(defined) => Some(defined),
                None => starter.find_started(name)?,
            };
            roots.push(match (found, &context.manifest) {
                (Some(found), _) => found,
                (None, None) => return Err(no_manifest(Some(name)).into()),
                (None, Some(_)) => return Err(starter.services().unknown_name(name, known)),
            });
        }
        let steps = starter.steps(roots, base)?;
        let outcomes = Box::pin(starter.run_steps(&steps)).await;
        start_plan::collect_outcomes(&steps, outcomes)
    }

    /// Stops a service by name or id, its dependents first; succeeds when its tree is empty and
    /// reports which of its ports are free. Stopping an ended service changes nothing.
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
        arguments::check_length("the reason", reason, arguments::REASON_BYTES)?;
        let context = self.context_at(cwd);
        let starter = ServiceStarter::new(&self.inner, caller, &context);
        let entry = starter.services().get(name)?;
        Box::pin(starter.stop(&entry, request)).await
    }

    /// Ends its attempt and begins the next one at once, under the same id; a service that has
    /// ended, or is only defined through the API, is started again, with its client's environment.
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
        let starter = ServiceStarter::new(&self.inner, caller, &context);
        let found = match starter.services().find_reachable(name) {
            Some(_) => Some(starter.services().get(name)?),
            None => None,
        };
        if let Some(entry) = found.as_ref().filter(|entry| !entry.is_finished()) {
            let by = caller.owner.principal.clone();
            let cause = (by, "asked for".to_owned());
            match stop::restart_and_wait(&self.inner, entry, cause).await {
                Ok(()) if !entry.is_finished() => return Ok(starter.service_info(entry)),
                Ok(()) | Err(Error::ControlFailed(_)) => {}
                Err(error) => return Err(error),
            }
        }
        let service = match found {
            Some(entry) => restart_request::rebuild_service(&self.inner, &entry)?,
            None => self.find_restartable(starter, name)?,
        };
        let context = match service.origin.as_ref().map(|it| it.defined_in.as_path()) {
            Some(path) if path.is_file() => WorkspaceContext::from_manifest(Manifest::read(path)?),
            Some(_) | None => self.context(&service.request.start),
        };
        let starter = ServiceStarter::new(&self.inner, caller, &context);
        let base = service
            .base
            .as_deref()
            .unwrap_or(&service.request.start)
            .clone();
        // The definition may have changed by now.
        let defined = service
            .origin
            .as_ref()
            .and_then(|_| starter.find_definition(service.name(), &base));
        let steps = starter.steps(vec![defined.unwrap_or(service)], &base)?;
        let outcomes = Box::pin(starter.run_steps(&steps)).await;
        Ok(start_plan::last_outcome(outcomes)?.service)
    }

    /// Every service the caller sees of the workspace of `cwd`, or of all workspaces: defined,
    /// running, and ended but not dismissed.
    ///
    /// # Errors
    /// [`Error::Service`] for an invalid `ostler.toml`, unless services of it run: then their notes
    /// say so.
    pub fn services(&self, caller: &Caller, cwd: Option<&Path>) -> Result<Vec<ServiceInfo>, Error> {
        self.service_rows(caller, cwd, false)
    }

    /// As [`Engine::services`], including dismissed ones.
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
        let context = self.context_for_listing(caller, cwd)?;
        let starter = ServiceStarter::new(&self.inner, caller, &context);
        let mut rows: Vec<ServiceInfo> = Vec::new();
        for info in self
            .inner
            .services
            .pending(|owner| caller.can_access(owner))
        {
            if context
                .name_scope()
                .includes(&ServiceScope::from_info(&info))
                && !rows.iter().any(|row| is_same_service(row, &info))
            {
                rows.push(info);
            }
        }
        let entries = if with_dismissed {
            starter.services().rows_and_dismissed()
        } else {
            starter.services().rows()
        };
        for entry in entries {
            let info = starter.service_info(&entry);
            match rows.iter_mut().find(|row| is_same_service(row, &info)) {
                // It waits for its dependencies before it starts again.
                Some(row) if entry.is_finished() => row.execution = info.execution,
                Some(row) => *row = info,
                None => rows.push(info),
            }
        }
        for info in starter.definitions() {
            if !rows.iter().any(|row| is_same_service(row, &info)) {
                rows.push(info);
            }
        }
        Ok(rows)
    }

    /// How many services run in other workspaces than that of `cwd`.
    #[must_use]
    pub fn services_elsewhere(&self, caller: &Caller, cwd: Option<&Path>) -> usize {
        let context = self.context_at(cwd);
        let starter = ServiceStarter::new(&self.inner, caller, &context);
        starter.services().elsewhere().count()
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
        let context = self.context_for_listing(caller, cwd)?;
        let starter = ServiceStarter::new(&self.inner, caller, &context);
        let defined = starter.definitions();
        let entry = if defined.iter().any(|it| it.name == name) {
            starter.services().find(name)
        } else {
            starter.services().find_reachable(name)
        };
        if let Some(running) = entry.as_ref().filter(|it| !it.is_finished()) {
            return Ok(starter.service_info(running));
        }
        let pending = self
            .inner
            .services
            .pending(|owner| caller.can_access(owner));
        let mut pending = pending.into_iter();
        let here = |it: &ServiceInfo| context.name_scope().includes(&ServiceScope::from_info(it));
        if let Some(mut info) = pending.find(|it| it.name == name && here(it)) {
            info.execution = entry.map(|it| it.fresh_info());
            return Ok(info);
        }
        match (entry, defined.iter().find(|it| it.name == name)) {
            (Some(entry), _) => Ok(starter.service_info(&entry)),
            (None, Some(defined)) => Ok(defined.clone()),
            (None, None) => {
                let known = defined.into_iter().map(|it| it.name);
                Err(starter.services().unknown_name(name, known))
            }
        }
    }

    /// Explains why a service is in its state.
    ///
    /// # Errors
    /// As [`Engine::service`].
    pub async fn diagnose_service(
        &self,
        caller: &Caller,
        name: &str,
        cwd: Option<&Path>,
    ) -> Result<Diagnosis, Error> {
        let info = self.service(caller, name, cwd)?;
        let entry = info.execution.as_ref();
        let entry = entry.and_then(|it| self.inner.registry.get(it.id));
        let lines = match &entry {
            Some(entry) => format::last_lines(entry, LINES),
            None => Vec::new(),
        };
        let mut ports = contested_ports(&info, &lines);
        ports.extend(info.main_port());
        let holders = self.foreign_holders(caller, &info, &ports).await;
        let needs = info.plan.depends_on.iter();
        // Its dependencies are resolved in its own workspace, not in the caller's.
        let dir = info.workspace.as_deref().and_then(Path::parent);
        let cwd = dir.or(cwd);
        let input = DiagnosisInput {
            info: &info,
            needs: needs
                .map(|need| (need.clone(), self.service(caller, &need.name, cwd).ok()))
                .collect(),
            holders,
            lines,
            now: Timestamp::now(),
        };
        Ok(diagnose(&input))
    }

    /// Whether the last lines of an execution say that a port is in use.
    #[must_use]
    pub fn hit_port_conflict(&self, id: ExecutionId) -> bool {
        let entry = self.inner.registry.get(id);
        let lines = entry.map(|entry| format::last_lines(&entry, LINES));
        lines.is_some_and(|lines| lines.iter().any(|line| is_port_conflict(line)))
    }

    /// The foreign processes that listen on the ports, with the caller's service that each one
    /// belongs to.
    async fn foreign_holders(
        &self,
        caller: &Caller,
        info: &ServiceInfo,
        ports: &[u16],
    ) -> Vec<(PortHolder, Option<String>)> {
        let mut holders = self.inner.backend.port_holders(ports).await;
        let own_ports = info.execution.as_ref().map(|it| (it.id, &it.state.ports));
        holders.retain(|holder| {
            !own_ports.as_ref().is_some_and(|(id, ports)| {
                holder.execution == Some(*id) || ports.iter().any(|it| Some(it.pid) == holder.pid)
            })
        });
        let resolve = |holder| ports::resolve_holder(&self.inner, caller, holder);
        holders.into_iter().map(resolve).collect()
    }

    /// Stores a definition under its name, for its principal and project; it starts on request
    /// only.
    ///
    /// # Errors
    /// [`Error::Service`], [`Error::Storage`]; everything that can be refused without inspecting
    /// the machine is refused here.
    pub fn define_service(&self, caller: &Caller, request: &ServiceRequest) -> Result<(), Error> {
        let name = request.name.clone().unwrap_or_default();
        service_names::check(&name).map_err(|problem| ServiceError::Value {
            what: "service name",
            given: name.clone(),
            problem,
        })?;
        let definition = ServiceDefinition::from_request(name, request);
        let service =
            ResolvedService::from_definition(&definition, ByteString::default(), &request.start);
        let context = WorkspaceContext::default();
        let starter = ServiceStarter::new(&self.inner, caller, &context);
        starter.check(&service)?;
        self.inner.services.definitions.put(caller, definition)
    }

    /// Deletes a definition made through the API; what runs continues.
    ///
    /// # Errors
    /// [`Error::Service`] for an unknown name, [`Error::Storage`].
    pub fn forget_service(&self, caller: &Caller, name: &str) -> Result<(), Error> {
        if self.inner.services.definitions.remove(caller, name)? {
            return Ok(());
        }
        let known = self.inner.services.definitions.list(caller);
        Err(ServiceError::Unknown {
            name: name.to_owned(),
            known: known.into_iter().map(|it| it.name).collect(),
            elsewhere: Vec::new(),
        }
        .into())
    }
}
