//! Finds the `ostler.toml` of a request, and resolves a name to an execution.

use std::path::{Path, PathBuf};

use ostler_model::Caller;
use ostler_policy::PolicyDecision;

use super::caller_services::{CallerServices, manifest_path, plan_of};
use super::manager::ServiceManager;
use super::manifest::Manifest;
use super::starter::{ResolvedService, ServiceStarter};
use super::workspace::{ServiceScope, WorkspaceContext};
use super::{ServiceError, ServiceInfo, restart_request};
use crate::admission::{self, arguments, environment, isolation_level};
use crate::error::Error;
use crate::project;
use crate::request::StartRequest;
use crate::start::ApprovalMode;

impl ServiceManager {
    /// The client's home directory.
    pub(super) fn home(&self, request: Option<&StartRequest>) -> Option<PathBuf> {
        let settings = &self.core.settings.base_env;
        let env = match request {
            Some(front) if !front.base_env.is_empty() => &front.base_env,
            Some(_) | None => settings,
        };
        environment::value(env, b"HOME").map(|home| home.as_path().to_owned())
    }

    /// The workspace of a request's working directory.
    pub(super) fn context(&self, request: &StartRequest) -> WorkspaceContext {
        let home = self.home(Some(request));
        WorkspaceContext::at(
            request.cwd.as_path(),
            home.as_deref(),
            &self.services.watches,
        )
    }

    /// The parsed `ostler.toml` of a directory; none where the caller does not see what holds it.
    pub(super) fn find_manifest(
        caller: &Caller,
        cwd: &Path,
        home: Option<&Path>,
    ) -> Result<Option<Manifest>, ServiceError> {
        let sees = |directory: &Path| project::sees_directory(caller, directory);
        if !sees(cwd) {
            return Ok(None);
        }
        let found = Manifest::find(cwd, home)?;
        Ok(found.filter(|manifest| manifest.path.parent().is_some_and(sees)))
    }

    /// The same, with the parsed `ostler.toml` of the workspace.
    pub(super) fn context_with_manifest(
        &self,
        caller: &Caller,
        request: &StartRequest,
    ) -> Result<WorkspaceContext, Error> {
        let home = self.home(Some(request));
        let manifest = Self::find_manifest(caller, request.cwd.as_path(), home.as_deref())?;
        Ok(self.context(request).with_manifest(manifest))
    }

    /// The workspace of a caller that lists or stops services: every workspace where `cwd` is none.
    pub(super) fn context_at(&self, cwd: Option<&Path>) -> WorkspaceContext {
        let home = self.home(None);
        cwd.map(|cwd| WorkspaceContext::at(cwd, home.as_deref(), &self.services.watches))
            .unwrap_or_default()
    }

    /// The same, with the parsed `ostler.toml`, or with the reason why it cannot be used. Where
    /// services of it run, their notes report that.
    pub(super) fn context_for_listing(
        &self,
        caller: &Caller,
        cwd: Option<&Path>,
    ) -> WorkspaceContext {
        let context = self.context_at(cwd);
        let Some(cwd) = cwd else {
            return context;
        };
        match Self::find_manifest(caller, cwd, self.home(None).as_deref()) {
            Ok(found) => context.with_manifest(found),
            Err(error) => {
                let mut living = CallerServices::new(&self.core, caller).living();
                let is_reported = living.any(|entry| {
                    let at = plan_of(&entry).defined_in.as_ref().and_then(manifest_path);
                    at.is_some() && at == context.file()
                });
                context.with_problem((!is_reported).then_some(error))
            }
        }
    }

    /// The service to restart under a name: what ran under it, else its definition.
    pub(super) fn find_restartable(
        &self,
        starter: ServiceStarter<'_>,
        name: &str,
        problem: Option<ServiceError>,
    ) -> Result<ResolvedService, Error> {
        if let Some(service) = starter.find_started(name)? {
            return Ok(service);
        }
        let base = StartRequest::argv(["true"], "/");
        starter
            .find_definition(name, &base)
            .ok_or_else(|| starter.unknown_name(name, problem))
    }
}

impl ServiceStarter<'_> {
    /// The service that runs here under this name, or was started here without a definition, for a
    /// restart. An ended service whose definition is gone does not come back.
    pub(super) fn find_started(self, name: &str) -> Result<Option<ResolvedService>, Error> {
        let found = self.services().find(name);
        let entry = found.filter(|it| !it.is_finished() || plan_of(it).defined_in.is_none());
        entry
            .map(|it| restart_request::service_request(self.manager, &it))
            .transpose()
    }

    /// The error for an unknown name: the `problem` of the file that may define it, where it has one.
    pub(super) fn unknown_name(self, name: &str, problem: Option<ServiceError>) -> Error {
        if let Some(problem) = problem {
            return problem.into();
        }
        let defined = self.definitions().into_iter().map(|it| it.name);
        self.services().unknown_name(name, defined)
    }

    /// Refuses what can be refused without inspecting the machine.
    pub(super) fn check(self, service: &ResolvedService) -> Result<(), Error> {
        let start = self.preview_request(service);
        let settings = &self.core.settings;
        arguments::check(&start)?;
        let level = isolation_level::effective_level(&settings.isolation, &start)?;
        admission::service_plan::check_plan(start.lifetime.as_ref(), level, &settings.state_dir)
    }
}

impl ServiceStarter<'_> {
    /// Refuses a service whose start would be refused or would need an approval: there is no person
    /// to approve it.
    pub(super) async fn check_unattended(self, service: &ResolvedService) -> Result<(), Error> {
        self.check(service)?;
        let start = self.preview_request(service);
        self.manager
            .launcher
            .check(self.caller, start.clone(), ApprovalMode::Assume)
            .await?;
        match admission::command_policy::evaluate(&self.core.settings, &start)? {
            Some(verdict) if verdict.decision != PolicyDecision::Allow => Err(Error::Denied {
                rule: verdict.rule,
                reason: format!(
                    "{}; a person has to agree: bring it up again",
                    verdict.reason
                ),
            }),
            Some(_) | None => Ok(()),
        }
    }
}

/// Whether two rows are about the same service.
pub(super) fn is_same_service(one: &ServiceInfo, other: &ServiceInfo) -> bool {
    one.name == other.name
        && ServiceScope::from_info(one).shares_names(&ServiceScope::from_info(other))
}
