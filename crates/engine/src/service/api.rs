//! What callers can do with services.

use std::path::Path;

use ostler_model::{ByteString, Caller, ExecutionId, PortHolder, Timestamp};

use super::caller_services::other_names;
use super::diagnosis::{DiagnosisInput, contested_ports, diagnose};
use super::lookup::is_same_service;
use super::manager::ServiceManager;
use super::manifest::Manifest;
use super::starter::{ResolvedService, ServiceStarter};
use super::workspace::{ServiceScope, WorkspaceContext};
use super::{
    Diagnosis, EnsureResult, ServiceDefinition, ServiceError, ServiceInfo, ServiceQuestion,
    ServiceRequest, format, ports, restart_request, start_plan,
};
use crate::admission::{secret_fields, secrets};
use crate::detection::DetectedService;
use crate::error::Error;
use crate::execution::ExecutionHandle;
use crate::project;
use crate::readiness::is_port_conflict;
use crate::request::StartRequest;
use crate::service_names;
use crate::start::{self, StartGuard};
use crate::stop;

/// Lines of output that [`ServiceManager::diagnose_service`] reads.
const LINES: u64 = 200;

impl ServiceManager {
    /// See [`Engine::detect`](crate::Engine::detect).
    pub(crate) fn detect(&self, request: &StartRequest) -> Option<DetectedService> {
        self.services.detect(&self.core.settings, request)
    }

    /// See [`Engine::rerun_request`](crate::Engine::rerun_request).
    pub(crate) fn rerun_request(
        &self,
        caller: &Caller,
        id: &str,
        client_env: Vec<(ByteString, ByteString)>,
    ) -> Result<StartRequest, Error> {
        let entry = self.core.registry.find(caller, id)?;
        let caller = project::starting_again(caller, &entry.owner());
        restart_request::command_request(&self.core, &entry, &caller.owner, client_env)
    }

    /// See [`Engine::start_service`](crate::Engine::start_service).
    pub(crate) async fn start_service(
        &self,
        caller: &Caller,
        request: ServiceRequest,
    ) -> Result<StartGuard, Error> {
        let id = request.start.id;
        if let Some(guard) = start::find_existing_after_starts(&self.core, caller, id).await? {
            guard.wait_started().await?;
            return Ok(guard);
        }
        let result = self.start_new_service(caller, request).await;
        if result.is_err()
            && let Some(guard) = start::find_existing_after_starts(&self.core, caller, id).await?
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
        let starter = ServiceStarter::new(self, caller, &context);
        if let Some(name) = &request.name {
            starter.ensure_name_free(name)?;
        }
        let service = ResolvedService::from_request(request);
        if !service.request.depends_on.is_empty() {
            let context = self.context_with_manifest(caller, &service.request.start)?;
            let starter = ServiceStarter::new(self, caller, &context);
            Box::pin(starter.start_dependencies(&service)).await?;
        }
        Box::pin(starter.start(&service)).await
    }

    /// See [`Engine::ensure_service`](crate::Engine::ensure_service).
    pub(crate) async fn ensure_service(
        &self,
        caller: &Caller,
        request: ServiceRequest,
    ) -> Result<EnsureResult, Error> {
        let base = request.start.clone();
        let (context, service) = self.resolve_request(caller, request)?;
        let starter = ServiceStarter::new(self, caller, &context);
        let steps = starter.steps(vec![service], &base)?;
        let outcomes = Box::pin(starter.run_to_end(&steps)).await;
        start_plan::last_outcome(outcomes)
    }

    /// The service that a request is about, in its workspace: the definition it names, or itself.
    pub(super) fn resolve_request(
        &self,
        caller: &Caller,
        request: ServiceRequest,
    ) -> Result<(WorkspaceContext, ResolvedService), Error> {
        let has_command = !request.start.command.program().is_empty();
        let context = if has_command && request.depends_on.is_empty() {
            self.context(&request.start)
        } else {
            self.context_with_manifest(caller, &request.start)?
        };
        let starter = ServiceStarter::new(self, caller, &context);
        let service = match &request.name {
            Some(name) if !has_command => match starter.find_definition(name, &request.start) {
                Some(mut defined) => {
                    defined.request.start.id = request.start.id;
                    defined
                }
                None => self.find_restartable(starter, name, None)?,
            },
            Some(_) | None => ResolvedService::from_request(request),
        };
        Ok((context, service))
    }

    /// See [`Engine::restart_service`](crate::Engine::restart_service).
    pub(crate) async fn restart_service(
        &self,
        caller: &Caller,
        name: &str,
        cwd: Option<&Path>,
    ) -> Result<ServiceInfo, Error> {
        let mut context = self.context_for_listing(caller, cwd);
        let problem = context.problem.take();
        let starter = ServiceStarter::new(self, caller, &context);
        let found = match starter.services().find_reachable(name) {
            Some(_) => Some(starter.services().get(name)?),
            None => None,
        };
        let living = found.as_ref().filter(|entry| !entry.is_finished());
        if let Some(entry) = living.filter(|entry| !self.is_redefined(caller, entry)) {
            let by = caller.owner.principal.clone();
            let reason = "asked for".to_owned();
            match stop::restart_and_wait(&self.core, entry, by, reason).await {
                Ok(()) if !entry.is_finished() => return Ok(starter.service_info(entry)),
                Ok(()) | Err(Error::ControlFailed(_)) => {}
                Err(error) => return Err(error),
            }
        }
        let caller = match &found {
            Some(entry) => &project::starting_again(caller, &entry.owner()),
            None => caller,
        };
        let service = match found {
            Some(entry) => restart_request::service_request(self, &entry)?,
            None => self.find_restartable(starter, name, problem)?,
        };
        let (context, base, service) = self.current_definition(caller, service)?;
        let starter = ServiceStarter::new(self, caller, &context);
        let steps = starter.steps(vec![service], &base)?;
        let outcomes = Box::pin(starter.run_to_end(&steps)).await;
        Ok(start_plan::last_outcome(outcomes)?.service)
    }

    /// Whether a service was defined anew since it was started.
    fn is_redefined(&self, caller: &Caller, entry: &ExecutionHandle) -> bool {
        let service = restart_request::service_request(self, entry);
        let current = service.and_then(|service| self.current_definition(caller, service));
        current.is_ok_and(|(_, _, service)| service.is_changed_since_start(entry))
    }

    /// A service as it is defined now, where it was started from a definition; with the workspace of
    /// the definition and the request that it is based on.
    fn current_definition(
        &self,
        caller: &Caller,
        service: ResolvedService,
    ) -> Result<(WorkspaceContext, StartRequest, ResolvedService), Error> {
        let context = match service.origin.as_ref().map(|it| it.defined_in.as_path()) {
            Some(path) if path.is_file() => WorkspaceContext::from_manifest(Manifest::read(path)?),
            Some(_) | None => self.context(&service.request.start),
        };
        let base = service
            .base
            .as_deref()
            .unwrap_or(&service.request.start)
            .clone();
        let starter = ServiceStarter::new(self, caller, &context);
        let defined = service
            .origin
            .as_ref()
            .and_then(|_| starter.find_definition(service.name(), &base));
        Ok((context, base, defined.unwrap_or(service)))
    }

    /// See [`Engine::services`](crate::Engine::services).
    pub(crate) fn services(
        &self,
        caller: &Caller,
        cwd: Option<&Path>,
    ) -> Result<Vec<ServiceInfo>, Error> {
        self.service_rows(caller, cwd, false)
    }

    /// See [`Engine::services_and_dismissed`](crate::Engine::services_and_dismissed).
    pub(crate) fn services_and_dismissed(
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
        let context = self.context_for_listing(caller, cwd);
        let starter = ServiceStarter::new(self, caller, &context);
        let mut rows: Vec<ServiceInfo> = Vec::new();
        for info in self.services.pending.list(|owner| caller.can_access(owner)) {
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
            // Living ones come before ended ones, and each of them has a row.
            let same = rows.iter_mut().find(|row| {
                is_same_service(row, &info) && (row.execution.is_none() || entry.is_finished())
            });
            match same {
                Some(row) if row.execution.is_some() => {}
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
        let failed = &self.services.failed_starts;
        for info in failed.unlisted(caller, context.name_scope()) {
            if !rows.iter().any(|row| is_same_service(row, &info)) {
                rows.push(info);
            }
        }
        match context.problem {
            Some(problem) if rows.is_empty() => return Err(problem.into()),
            Some(problem) => rows
                .iter_mut()
                .for_each(|row| row.notes.push(problem.to_string())),
            None => {}
        }
        Ok(rows)
    }

    /// See [`Engine::services_elsewhere`](crate::Engine::services_elsewhere).
    pub(crate) fn services_elsewhere(&self, caller: &Caller, cwd: Option<&Path>) -> usize {
        let context = self.context_at(cwd);
        let starter = ServiceStarter::new(self, caller, &context);
        starter.services().elsewhere().count()
    }

    /// See [`Engine::service`](crate::Engine::service).
    pub(crate) fn service(
        &self,
        caller: &Caller,
        name: &str,
        cwd: Option<&Path>,
    ) -> Result<ServiceInfo, Error> {
        let mut context = self.context_for_listing(caller, cwd);
        let problem = context.problem.take();
        let starter = ServiceStarter::new(self, caller, &context);
        let defined = starter.definitions();
        let entry = if defined.iter().any(|it| it.name == name) {
            starter.services().find(name)
        } else {
            starter.services().find_reachable(name)
        };
        if let Some(running) = entry.as_ref().filter(|it| !it.is_finished()) {
            return Ok(starter.service_info(running));
        }
        let pending = self.services.pending.list(|owner| caller.can_access(owner));
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
                let failed = &self.services.failed_starts;
                let mut failed = failed.unlisted(caller, context.name_scope()).into_iter();
                let failed = failed.find(|it| it.name == name);
                failed.ok_or_else(|| starter.unknown_name(name, problem))
            }
        }
    }

    /// See [`ServiceManager::diagnose_service`](crate::Engine::diagnose_service).
    pub(crate) async fn diagnose_service(
        &self,
        caller: &Caller,
        name: &str,
        cwd: Option<&Path>,
    ) -> Result<Diagnosis, Error> {
        let info = self.service(caller, name, cwd)?;
        let entry = info.execution.as_ref();
        let entry = entry.and_then(|it| self.core.registry.get(it.id));
        let lines = match &entry {
            Some(entry) => format::last_lines(entry, LINES),
            None => Vec::new(),
        };
        let mut ports = contested_ports(&info, &lines);
        ports.extend(info.main_port());
        let holders = self.foreign_holders(caller, &info, &ports).await;
        let question = entry.as_ref().and_then(|it| self.question_of(caller, it));
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
            question,
            now: Timestamp::now(),
        };
        Ok(diagnose(&input))
    }

    /// The open question of a service.
    fn question_of(&self, caller: &Caller, entry: &ExecutionHandle) -> Option<ServiceQuestion> {
        let interactions = self.launcher.interactions();
        let found = interactions.question_of(caller, entry.id)?;
        Some(ServiceQuestion {
            text: found.question.message,
            interaction: found.id.to_string(),
            secret: found.question.secret,
        })
    }

    /// See [`Engine::hit_port_conflict`](crate::Engine::hit_port_conflict).
    pub(crate) fn hit_port_conflict(&self, id: ExecutionId) -> bool {
        let entry = self.core.registry.get(id);
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
        // The ports of the host are none of its own.
        if info
            .execution
            .as_ref()
            .is_some_and(|it| ports::has_own_network(&it.spec))
        {
            return Vec::new();
        }
        let mut holders = self.core.backend.port_holders(ports).await;
        let own_ports = info.execution.as_ref().map(|it| (it.id, &it.state.ports));
        holders.retain(|holder| {
            !own_ports.as_ref().is_some_and(|(id, ports)| {
                holder.execution == Some(*id) || ports.iter().any(|it| Some(it.pid) == holder.pid)
            })
        });
        let resolve = |holder| ports::resolve_holder(&self.core, caller, holder);
        holders.into_iter().map(resolve).collect()
    }

    /// See [`Engine::define_service`](crate::Engine::define_service).
    pub(crate) fn define_service(
        &self,
        caller: &Caller,
        request: &ServiceRequest,
    ) -> Result<(), Error> {
        project::check_created(caller)?;
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
        let starter = ServiceStarter::new(self, caller, &context);
        starter.check(&service)?;
        let options = &definition.options;
        let client_env = &request.start.base_env;
        let known = secrets::known_secrets(&self.core.settings, &options.secrets, client_env);
        secret_fields::check_definition(options, &definition.texts(), &known)?;
        self.services.definitions.put(caller, definition)
    }

    /// See [`Engine::forget_service`](crate::Engine::forget_service).
    pub(crate) fn forget_service(&self, caller: &Caller, name: &str) -> Result<(), Error> {
        if self.services.definitions.remove(caller, name)? {
            return Ok(());
        }
        let known = self.services.definitions.list(caller);
        Err(ServiceError::Unknown {
            name: name.to_owned(),
            known: other_names(name, known.into_iter().map(|it| it.name)),
            elsewhere: Vec::new(),
        }
        .into())
    }
}
