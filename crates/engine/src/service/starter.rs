//! The start pipeline of services, for one caller.

use std::path::Path;
use std::sync::Arc;

use ostler_model::{ByteString, Caller, Command, RequestRecord, ServiceRecord, Timestamp};

use super::build_request::{AssignedPort, DefinitionOrigin, RequestInputs, build_request};
use super::caller_services::{CallerServices, plan_of, service_info};
use super::definition::ServiceDefinition;
use super::definition_store::API;
use super::locks::ServiceKey;
use super::manager::ServiceManager;
use super::manifest::Manifest;
use super::registry::unstarted_info;
use super::workspace::{NameScope, ServiceScope, WorkspaceContext};
use super::{ServiceError, ServiceInfo, ServiceRequest, ports, reload};
use crate::admission::quota::QuotaKey;
use crate::engine_inner::EngineInner;
use crate::error::Error;
use crate::execution::ExecutionHandle;
use crate::request::StartRequest;
use crate::service_names;
use crate::start::{StartAdmission, StartGuard};

/// Starts services for one caller, by the definitions of the caller's workspace.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ServiceStarter<'a> {
    pub(crate) manager: &'a ServiceManager,
    pub(crate) core: &'a Arc<EngineInner>,
    pub(crate) caller: &'a Caller,
    /// The workspace's `ostler.toml`, where there is one.
    pub(crate) manifest: Option<&'a Manifest>,
    /// The scope that names are resolved in.
    pub(crate) scope: NameScope<'a>,
}

/// A service to start.
#[derive(Debug, Clone)]
pub(crate) struct ResolvedService {
    /// The request, with its definition applied.
    pub(crate) request: ServiceRequest,
    /// Where it is defined; none for an ad-hoc request.
    pub(crate) origin: Option<DefinitionOrigin>,
    /// The client's environment and options, for a defined service: a later version of the
    /// definition is started with the same.
    pub(crate) base: Option<Arc<StartRequest>>,
}

impl ResolvedService {
    /// Whether its definition differs from the one that an execution was started from.
    pub(super) fn is_changed_since_start(&self, entry: &ExecutionHandle) -> bool {
        let plan = plan_of(entry);
        match (&self.origin, &plan.defined_as) {
            (Some(origin), Some(fingerprint)) => {
                plan.defined_in.as_ref() == Some(&origin.defined_in)
                    && *fingerprint != origin.defined_as
            }
            (Some(_), None) | (None, _) => false,
        }
    }

    /// An ad-hoc request.
    pub(crate) const fn from_request(request: ServiceRequest) -> Self {
        Self {
            request,
            origin: None,
            base: None,
        }
    }

    /// A definition, with a client's environment.
    pub(crate) fn from_definition(
        definition: &ServiceDefinition,
        at: ByteString,
        base: &StartRequest,
    ) -> Self {
        Self {
            request: definition.to_request(base),
            origin: Some(DefinitionOrigin {
                defined_in: at,
                defined_as: definition.fingerprint(),
            }),
            base: Some(Arc::new(base.clone())),
        }
    }

    /// The request for the record, where `command` is what it is started with.
    fn record(&self, command: &Command) -> RequestRecord {
        let request = &self.request;
        let requested = &request.start.command;
        let base = self.base.as_ref();
        RequestRecord {
            command: (requested != command).then(|| requested.clone()),
            service: Some(Box::new(ServiceRecord {
                name: request.name.clone(),
                ready_when: request.ready_when.clone(),
                ready_pattern: request.ready_pattern.clone(),
                fail_pattern: request.fail_pattern.clone(),
                ready_timeout: request.ready_timeout,
                restart: request.restart,
                health: request.health.clone(),
                depends_on: request.depends_on.clone(),
                port: request.port,
                automatic: request.automatic,
                base: base.map(|it| Box::new(it.options.clone().for_every_start())),
            })),
            ..RequestRecord::new(request.start.options.clone())
        }
    }

    /// Its name, as far as it is known.
    pub(crate) fn name(&self) -> &str {
        self.request.name.as_deref().unwrap_or("this service")
    }
}

impl<'a> ServiceStarter<'a> {
    pub(crate) fn new(
        manager: &'a ServiceManager,
        caller: &'a Caller,
        context: &'a WorkspaceContext,
    ) -> Self {
        Self {
            manager,
            core: &manager.core,
            caller,
            manifest: context.manifest.as_ref(),
            scope: context.name_scope(),
        }
    }

    /// The caller's services of this workspace.
    pub(crate) fn services(self) -> CallerServices<'a> {
        CallerServices::new(self.core, self.caller).in_scope(self.scope)
    }

    /// The definition of this name, in the workspace or through the API; the workspace takes
    /// precedence.
    pub(crate) fn find_definition(
        self,
        name: &str,
        base: &StartRequest,
    ) -> Option<ResolvedService> {
        let here = self.manifest.and_then(|manifest| {
            let definition = manifest.services.get(name)?;
            let at = ByteString::from(manifest.path.as_path());
            let mut service = ResolvedService::from_definition(definition, at, base);
            // A workspace file may tighten the defaults, never loosen them.
            let start = &mut service.request.start;
            if base.options.level.is_none() {
                let default_level = self.core.settings.isolation.default;
                start.options.level = start.options.level.map(|level| level.max(default_level));
            }
            Some(service)
        });
        here.or_else(|| {
            let definition = self.manager.services.definitions.get(self.caller, name)?;
            Some(ResolvedService::from_definition(
                &definition,
                ByteString::from(API),
                base,
            ))
        })
    }

    /// Where a name is defined: the path of the workspace's file, or `api`.
    fn definition_of(self, name: &str) -> Option<String> {
        let here = self
            .manifest
            .filter(|it| it.services.contains_key(name))
            .map(|it| it.path.display().to_string());
        here.or_else(|| {
            let stored = self.manager.services.definitions.get(self.caller, name);
            stored.map(|_| API.to_owned())
        })
    }

    /// Every definition that the caller can start by name here, as list rows.
    pub(crate) fn definitions(self) -> Vec<ServiceInfo> {
        let from_manifest = self.manifest.into_iter().flat_map(|manifest| {
            let at = ByteString::from(manifest.path.as_path());
            manifest
                .services
                .values()
                .map(move |it| (it.clone(), at.clone()))
        });
        let stored = self.manager.services.definitions.list(self.caller);
        let from_api = stored.into_iter().map(|it| (it, ByteString::from(API)));
        let base = StartRequest::argv(["true"], "/");
        from_manifest
            .chain(from_api)
            .map(|(definition, at)| {
                self.preview(&ResolvedService::from_definition(&definition, at, &base))
            })
            .collect()
    }

    /// The request it would be started with now, as far as it can be built without inspecting the
    /// machine.
    pub(crate) fn preview_request(self, service: &ResolvedService) -> StartRequest {
        self.build_request(service, self.expected_name(service), AssignedPort::None)
    }

    /// The name it has or, where nothing else takes that, is assigned.
    pub(crate) fn expected_name(self, service: &ResolvedService) -> String {
        let name = service.request.name.clone();
        name.unwrap_or_else(|| self.derived_name(&service.request, |_| false))
    }

    /// Its info as if it were started now.
    pub(crate) fn preview(self, service: &ResolvedService) -> ServiceInfo {
        let start = self.preview_request(service);
        let plan = start.lifetime.as_ref().and_then(|it| it.plan()).cloned();
        let command = start.command.display();
        let plan = plan.unwrap_or_default();
        let name = self.expected_name(service);
        let scope = ServiceScope::new(&self.core.settings, plan.defined_in.as_ref(), &start.cwd);
        ServiceInfo {
            notes: self.failed_start(&name, None).into_iter().collect(),
            workspace: scope.workspace(),
            definition: self.definition_of(&name),
            ..unstarted_info(&name, command, plan)
        }
    }

    fn build_request(
        self,
        service: &ResolvedService,
        name: String,
        port: AssignedPort,
    ) -> StartRequest {
        let ResolvedService {
            request, origin, ..
        } = service;
        let detected = self
            .manager
            .services
            .detect(&self.core.settings, &request.start);
        let inputs = RequestInputs {
            name,
            detected: detected.as_ref(),
            port,
            origin: origin.as_ref(),
        };
        let mut start = build_request(request, inputs);
        start.original = Some(Box::new(service.record(&start.command)));
        start
    }

    /// Chooses its name and port, admits it, and waits until its program runs.
    pub(crate) async fn start(self, service: &ResolvedService) -> Result<StartGuard, Error> {
        let guard = self.admit(service).await?;
        guard.wait_started().await?;
        Ok(guard)
    }

    async fn admit(self, service: &ResolvedService) -> Result<StartGuard, Error> {
        let ResolvedService {
            request, origin, ..
        } = service;
        let registry = &self.manager.services;
        // Outside the lock: other starts do not wait for this one's slot within the quota.
        let share = QuotaKey::Other(self.caller.owner.principal.clone());
        let admission = self
            .manager
            .launcher
            .enter_queue(self.caller, &request.start, share)
            .await?;
        let permit = match admission {
            StartAdmission::Existing(guard) => return Ok(guard),
            StartAdmission::Granted(permit) => permit,
        };
        let _lock = registry.admission_lock.lock().await;
        let name = self.name_for(request)?;
        let start = &request.start;
        let port = ports::assign(self.core, self.caller, request.port, start, &name).await?;
        let start = self.build_request(service, name, port);
        let guard = self
            .manager
            .launcher
            .start_with_permit(self.caller, start, permit, true)
            .await?;
        registry.store_request(self.core, guard.id(), service.clone());
        if let (Some(_), Some(manifest)) = (origin, self.manifest) {
            reload::watch(self.manager, &manifest.path);
        }
        Ok(guard)
    }

    /// The name it is assigned.
    fn name_for(self, request: &ServiceRequest) -> Result<String, Error> {
        let Some(name) = &request.name else {
            let services = self.services();
            let is_taken = |name: &str| services.find_living(name).is_some();
            return Ok(self.derived_name(request, is_taken));
        };
        self.ensure_name_free(name)?;
        Ok(name.clone())
    }

    /// The name of a service that is requested without one.
    fn derived_name(self, request: &ServiceRequest, is_taken: impl Fn(&str) -> bool) -> String {
        let start = &request.start;
        let detected = self.manager.services.detect(&self.core.settings, start);
        let detected = detected.as_ref().map(|it| it.name.as_str());
        service_names::choose(detected, &start.command, is_taken)
    }

    /// Whether a service may have this name now.
    ///
    /// # Errors
    /// When the name is invalid, or a running service has it.
    pub(crate) fn ensure_name_free(self, name: &str) -> Result<(), Error> {
        service_names::check(name).map_err(|problem| ServiceError::Value {
            what: "service name",
            given: name.to_owned(),
            problem,
        })?;
        match self.services().find_living(name) {
            Some(living) => Err(ServiceError::Running {
                name: name.to_owned(),
                id: living.id.short(),
            }
            .into()),
            None => Ok(()),
        }
    }

    /// The info of an execution, with a note when its definition has moved or gone.
    pub(crate) fn service_info(self, entry: &ExecutionHandle) -> ServiceInfo {
        let mut info = service_info(entry, self.services().scope_of(entry));
        info.definition = self.definition_of(&info.name);
        if let Some(at) = &info.plan.defined_in {
            let watches = &self.manager.services.watches;
            let definition = info.plan.defined_as.as_deref();
            let is_alive = !entry.is_finished();
            info.notes = watches.notes(at.as_path(), &info.name, definition, is_alive);
        }
        if entry.is_finished() {
            let started = info.execution.as_ref().and_then(|it| it.state.created_at);
            info.notes.extend(self.failed_start(&info.name, started));
            info.command = self.redefined_command(entry).unwrap_or(info.command);
        }
        info
    }

    /// The command of the next start, where the definition has changed since the last one.
    fn redefined_command(self, entry: &ExecutionHandle) -> Option<String> {
        let plan = plan_of(entry);
        plan.defined_in.as_ref()?;
        let service = self.find_definition(&plan.name, &StartRequest::argv(["true"], "/"))?;
        service
            .is_changed_since_start(entry)
            .then(|| self.preview_request(&service).command.display())
    }

    /// The key of a name in the caller's workspace.
    pub(crate) fn key(self, name: &str) -> ServiceKey {
        let file = match self.scope {
            NameScope::Workspace(file) => file.map(Path::to_owned),
            NameScope::AllWorkspaces => None,
        };
        ServiceKey::new(self.caller, file, name)
    }

    fn failed_start(self, name: &str, after: Option<Timestamp>) -> Option<String> {
        let registry = &self.manager.services;
        registry
            .failed_starts
            .find(self.caller, &self.key(name), after)
    }
}
