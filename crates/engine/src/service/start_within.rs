//! The start of one service with its dependencies, within limits.

use ostler_model::{Caller, ExecutionId};

use super::ensure::STARTED;
use super::lookup::is_same_service;
use super::manager::ServiceManager;
use super::plan_task::{PlanKey, PlanParts, PlanTask};
use super::start_plan;
use super::starter::ServiceStarter;
use super::up::as_pending;
use super::{EnsureResult, ServiceRequest, ServiceReuse, ServiceStart, StartLimits};
use crate::error::Error;
use crate::start;

impl ServiceManager {
    /// See [`Engine::start_service_within`](crate::Engine::start_service_within).
    pub(crate) async fn start_service_within(
        &self,
        caller: &Caller,
        request: ServiceRequest,
        reuse: ServiceReuse,
        limits: StartLimits,
    ) -> Result<ServiceStart, Error> {
        if reuse == ServiceReuse::Allow {
            return Box::pin(self.start_plan_of(caller, request, reuse, limits)).await;
        }
        let id = request.start.id;
        if let Some(existing) = self.existing_start(caller, id).await? {
            return Ok(existing);
        }
        let result = Box::pin(self.start_plan_of(caller, request, reuse, limits)).await;
        if result.is_err()
            && let Some(existing) = self.existing_start(caller, id).await?
        {
            // The same start arrived twice, and this one found its own name taken.
            return Ok(existing);
        }
        result
    }

    /// The service that an earlier request of the same id started; none where there is none.
    async fn existing_start(
        &self,
        caller: &Caller,
        id: Option<ExecutionId>,
    ) -> Result<Option<ServiceStart>, Error> {
        let Some(guard) = start::find_existing_after_starts(&self.core, caller, id).await? else {
            return Ok(None);
        };
        guard.wait_started().await?;
        let id = guard.id().to_string();
        guard.detach()?;
        let service = self.service(caller, &id, None)?;
        Ok(Some(ServiceStart::Running(Box::new(EnsureResult {
            service,
            reused: false,
            completes: false,
            note: STARTED.to_owned(),
        }))))
    }

    async fn start_plan_of(
        &self,
        caller: &Caller,
        request: ServiceRequest,
        reuse: ServiceReuse,
        limits: StartLimits,
    ) -> Result<ServiceStart, Error> {
        let base = request.start.clone();
        let (context, service) = self.resolve_request(caller, request)?;
        let starter = ServiceStarter::new(self, caller, &context);
        let preview = starter.preview(&service);
        let requested = [service.name().to_owned()];
        let name = service.request.name.clone();
        let mut steps = starter.steps(vec![service], &base)?;
        if let (ServiceReuse::Refuse, Some(last)) = (reuse, steps.last_mut()) {
            name.iter()
                .try_for_each(|name| starter.ensure_name_free(name))?;
            last.refuse_reuse();
        }
        let parts = PlanParts {
            caller: caller.clone(),
            context,
            steps,
        };
        let key = PlanKey::new(&parts, &requested, &base);
        let plan = self.run_plan_within(key, parts, limits).await?;
        if let Some(running) = running_service(&plan, reuse)? {
            return Ok(running);
        }
        let pending = self.services.pending.list(|owner| caller.can_access(owner));
        let mut pending = pending.into_iter();
        let listed =
            pending.find(|it| is_same_service(it, &preview) && it.command == preview.command);
        // It may have begun to run meanwhile.
        let now = || {
            self.service(caller, name.as_deref()?, Some(base.cwd.as_path()))
                .ok()
        };
        let info = listed.or_else(now).unwrap_or(preview);
        Ok(ServiceStart::Pending(Box::new(as_pending(info))))
    }
}

/// The outcome of the last step of a plan, that of the requested service; none while it is in
/// progress.
///
/// # Errors
/// Where a person has to approve a step first; where the service could not be started.
fn running_service(plan: &PlanTask, reuse: ServiceReuse) -> Result<Option<ServiceStart>, Error> {
    let mut results = plan.progress.results(&plan.names);
    let last = results.pop().flatten();
    let names = plan.names.iter().map(String::as_str);
    let ended = names
        .zip(results)
        .filter_map(|(name, it)| Some((name, it?)));
    let mut ended: Vec<_> = ended.collect();
    start_plan::check_approvals(&mut ended)?;
    let Some(last) = last else {
        return Ok(None);
    };
    if reuse == ServiceReuse::Refuse {
        // None of them is requested: any failure is one of the service.
        start_plan::collect_ended(ended, &[])?;
    }
    let ensured = last?.ok_or(Error::NotFound)?;
    Ok(Some(ServiceStart::Running(Box::new(ensured))))
}
