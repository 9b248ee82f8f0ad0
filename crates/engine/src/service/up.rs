//! Starts the definitions of a workspace, with their dependencies.

use std::collections::HashSet;
use std::path::Path;

use ostler_model::Caller;

use super::manager::ServiceManager;
use super::manifest;
use super::plan_task::{PlanKey, PlanParts, PlanTask};
use super::start_plan::{self, OWN_START};
use super::starter::{ResolvedService, ServiceStarter};
use super::workspace::WorkspaceContext;
use super::{ServiceError, ServiceInfo, StartLimits, UpResult};
use crate::error::Error;
use crate::request::StartRequest;

/// A plan that was not begun yet.
#[derive(Debug)]
struct UpPlan {
    parts: PlanParts,
    /// The names that were requested.
    requested: Vec<String>,
}

impl ServiceManager {
    /// See [`Engine::service_up`](crate::Engine::service_up).
    pub(crate) async fn service_up(
        &self,
        caller: &Caller,
        cwd: &Path,
        names: &[String],
        base: &StartRequest,
    ) -> Result<UpResult, Error> {
        self.service_up_within(caller, cwd, names, base, StartLimits::default())
            .await
    }

    /// See [`Engine::service_up_within`](crate::Engine::service_up_within).
    pub(crate) async fn service_up_within(
        &self,
        caller: &Caller,
        cwd: &Path,
        names: &[String],
        base: &StartRequest,
        limits: StartLimits,
    ) -> Result<UpResult, Error> {
        let UpPlan { parts, requested } = self.plan_up(caller, cwd, names, base)?;
        let previews = previews(ServiceStarter::new(self, caller, &parts.context), &parts);
        let key = PlanKey::new(&parts, &requested, base);
        let plan = self.run_plan_within(key, parts, limits).await?;
        self.collect_plan(caller, cwd, &plan, &requested, previews)
    }

    /// The steps to these services, or to all that are defined.
    fn plan_up(
        &self,
        caller: &Caller,
        cwd: &Path,
        names: &[String],
        base: &StartRequest,
    ) -> Result<UpPlan, Error> {
        let home = self.home(Some(base));
        let manifest = Self::find_manifest(caller, cwd, home.as_deref())?;
        let context = WorkspaceContext::at(cwd, home.as_deref(), &self.services.watches)
            .with_manifest(manifest);
        let starter = ServiceStarter::new(self, caller, &context);
        let of_manifest = || {
            let services = context.manifest.iter().flat_map(|it| it.services.keys());
            services.cloned().collect()
        };
        let mut requested: Vec<String> = if names.is_empty() {
            of_manifest()
        } else {
            names.to_vec()
        };
        let mut seen = HashSet::new();
        requested.retain(|name| seen.insert(name.clone()));
        let no_manifest = |name: Option<&String>| ServiceError::NoManifest {
            from: cwd.display().to_string(),
            wrong_type: manifest::find_wrong_type(cwd, home.as_deref()),
            name: name.cloned(),
        };
        if requested.is_empty() {
            return Err(match &context.manifest {
                Some(manifest) => ServiceError::Manifest {
                    file: manifest.path.display().to_string(),
                    problem: "it defines no services".to_owned(),
                }
                .into(),
                None => no_manifest(None).into(),
            });
        }
        let mut roots: Vec<ResolvedService> = Vec::with_capacity(requested.len());
        for name in &requested {
            let found = match starter.find_definition(name, base) {
                Some(defined) => Some(defined),
                None => starter.find_started(name)?,
            };
            roots.push(match (found, &context.manifest) {
                (Some(found), _) => found,
                (None, None) => return Err(no_manifest(Some(name)).into()),
                (None, Some(_)) => {
                    let known = starter.definitions().into_iter().map(|it| it.name);
                    return Err(starter.services().undefined_name(name, known));
                }
            });
        }
        let steps = starter.steps(roots, base)?;
        Ok(UpPlan {
            parts: PlanParts {
                caller: caller.clone(),
                context,
                steps,
            },
            requested,
        })
    }

    /// The outcome of a plan so far.
    fn collect_plan(
        &self,
        caller: &Caller,
        cwd: &Path,
        plan: &PlanTask,
        requested: &[String],
        previews: Vec<Option<ServiceInfo>>,
    ) -> Result<UpResult, Error> {
        let names = &plan.names;
        let results = plan.progress.results(names);
        let (mut ended, mut pending) = (Vec::new(), Vec::new());
        for ((name, result), preview) in names.iter().zip(results).zip(previews) {
            match result {
                Some(result) => ended.push((name.as_str(), result)),
                None => pending.push((name, preview)),
            }
        }
        let mut result = start_plan::collect_ended(ended, requested)?;
        for (name, preview) in pending {
            let found = self.service(caller, name, Some(cwd)).ok().or(preview);
            result.pending.extend(found.map(as_pending));
        }
        Ok(result)
    }
}

/// Each service of a plan as if it were started now.
fn previews(starter: ServiceStarter<'_>, parts: &PlanParts) -> Vec<Option<ServiceInfo>> {
    let services = parts.steps.iter().map(|step| step.service());
    services
        .map(|service| service.map(|it| starter.preview(it)))
        .collect()
}

/// A service whose step has not ended: it waits at least for its own start.
pub(super) fn as_pending(mut info: ServiceInfo) -> ServiceInfo {
    if !info.is_living() && info.pending.is_none() {
        info.pending = Some(OWN_START.to_owned());
    }
    info
}
