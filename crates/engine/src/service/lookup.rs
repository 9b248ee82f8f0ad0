//! Finds the `ostler.toml` of a request, and resolves a name to an execution.

use std::path::{Path, PathBuf};

use ostler_model::Caller;
use ostler_policy::PolicyDecision;

use super::caller_services::{CallerServices, manifest_path, plan_of};
use super::manifest::Manifest;
use super::starter::{ResolvedService, ServiceStarter};
use super::workspace::{ServiceScope, WorkspaceContext};
use super::{ServiceInfo, restart_request};
use crate::admission::{self, arguments, environment, sandbox};
use crate::engine::Engine;
use crate::error::Error;
use crate::request::StartRequest;

impl Engine {
    /// The home directory of the front that asks.
    pub(super) fn home(&self, request: Option<&StartRequest>) -> Option<PathBuf> {
        let settings = &self.inner.settings.base_env;
        let env = match request {
            Some(front) if !front.base_env.is_empty() => &front.base_env,
            Some(_) | None => settings,
        };
        environment::value(env, b"HOME").map(|home| home.as_path().to_owned())
    }

    /// Where a request's command would run.
    pub(super) fn context(&self, request: &StartRequest) -> WorkspaceContext {
        let home = self.home(Some(request));
        WorkspaceContext::at(
            request.cwd.as_path(),
            home.as_deref(),
            &self.inner.services.watches,
        )
    }

    /// The same with what the file says that holds there.
    pub(super) fn context_with_manifest(
        &self,
        request: &StartRequest,
    ) -> Result<WorkspaceContext, Error> {
        let home = self.home(Some(request));
        let manifest = Manifest::find(request.cwd.as_path(), home.as_deref())?;
        Ok(self.context(request).with_manifest(manifest))
    }

    /// Where somebody stands who looks, or stops something: every workspace where `cwd` is none.
    pub(super) fn context_at(&self, cwd: Option<&Path>) -> WorkspaceContext {
        let home = self.home(None);
        cwd.map(|cwd| WorkspaceContext::at(cwd, home.as_deref(), &self.inner.services.watches))
            .unwrap_or_default()
    }

    /// The same with what the file says that holds there; one that cannot be used is no error
    /// where services of it live, which say so.
    pub(super) fn context_for_listing(
        &self,
        caller: &Caller,
        cwd: Option<&Path>,
    ) -> Result<WorkspaceContext, Error> {
        let context = self.context_at(cwd);
        let Some(cwd) = cwd else {
            return Ok(context);
        };
        match Manifest::find(cwd, self.home(None).as_deref()) {
            Ok(found) => Ok(context.with_manifest(found)),
            Err(error) => {
                let mut living = CallerServices::new(&self.inner, caller).living();
                let is_reported = living.any(|entry| {
                    let at = plan_of(&entry).defined_in.as_ref().and_then(manifest_path);
                    at.is_some() && at == context.file()
                });
                if is_reported {
                    Ok(context)
                } else {
                    Err(error.into())
                }
            }
        }
    }

    /// What a name means that is to be restarted: what ran under it, else what the API
    /// defined.
    pub(super) fn find_restartable(
        &self,
        starter: ServiceStarter<'_>,
        name: &str,
    ) -> Result<ResolvedService, Error> {
        if let Some(service) = starter.find_started(name)? {
            return Ok(service);
        }
        let base = StartRequest::argv(["true"], "/");
        starter.find_definition(name, &base).ok_or_else(|| {
            let defined = starter.definitions().into_iter().map(|it| it.name);
            starter.services().unknown_name(name, defined)
        })
    }
}

impl ServiceStarter<'_> {
    /// What lives here under this name, or was started here without a definition, to be started
    /// anew. What has ended and whose definition is gone does not come back.
    pub(super) fn find_started(self, name: &str) -> Result<Option<ResolvedService>, Error> {
        let found = self.services().find(name);
        let entry = found.filter(|it| !it.is_finished() || plan_of(it).defined_in.is_none());
        entry
            .map(|it| restart_request::rebuild_service(self.core, &it))
            .transpose()
    }

    /// Refuses what can be refused without looking at the machine.
    pub(super) fn check(self, service: &ResolvedService) -> Result<(), Error> {
        let start = self.preview_request(service);
        let settings = &self.core.settings;
        arguments::check(&start)?;
        let level = sandbox::effective_level(&settings.isolation, &start)?;
        admission::service_plan::check_plan(start.lifetime.as_ref(), level, &settings.state_dir)
    }
}

impl ServiceStarter<'_> {
    /// Refuses what would be refused at its start without anybody being asked, and what
    /// somebody would have to be asked about: nobody is there to answer.
    pub(super) fn check_unattended(self, service: &ResolvedService) -> Result<(), Error> {
        self.check(service)?;
        let start = self.preview_request(service);
        admission::working_dir::check(&start.cwd)?;
        let _secrets =
            admission::secrets::resolve(&self.core.settings, &self.caller.owner, &start)?;
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
