//! Starts several services in dependency order: each begins as soon as its dependencies satisfy
//! their conditions; independent services start in parallel.

use std::collections::HashMap;

use futures_util::future::join_all;
use ostler_model::{Dependency, DependencyCondition};
use tokio::sync::watch;

use super::caller_services::plan_of;
use super::pending::PendingGuard;
use super::start_progress::{StartProgress, StepResult};
use super::starter::{ResolvedService, ServiceStarter};
use super::{
    EnsureResult, ServiceDefinition, ServiceError, ServiceReuse, StartFailure, UpResult, condition,
    format, graph,
};
use crate::error::Error;
use crate::request::StartRequest;

/// One service of a start plan, in dependency order.
#[derive(Debug)]
pub(crate) struct StartStep {
    pub(crate) name: String,
    /// The service to start; none where it runs, or ran, without a definition: it is only awaited.
    service: Option<ResolvedService>,
    needs: Vec<Dependency>,
    /// Whether it only has to complete before its dependents begin.
    is_task: bool,
    /// Whether any known dependent needs it completed: its end is awaited.
    completes: bool,
    reuse: ServiceReuse,
}

/// What a service waits for whose dependencies are satisfied.
pub(crate) const OWN_START: &str = "the start of its program";

/// What the steps of one run of a plan share.
struct PlanRun<'a> {
    steps: &'a [StartStep],
    outcomes: StepOutcomes<'a>,
    progress: &'a StartProgress,
}

/// The outcome of each step, for its dependents: none while it is in progress.
type StepOutcomes<'a> = HashMap<&'a str, watch::Sender<Option<Result<(), String>>>>;

/// While it has a name, a step is in progress: dropped then, it records that its start was given up.
struct StepGuard<'a, 'c> {
    starter: ServiceStarter<'c>,
    progress: &'a StartProgress,
    name: Option<String>,
}

impl Drop for StepGuard<'_, '_> {
    fn drop(&mut self) {
        let starter = self.starter;
        // The next engine reports what one that ends leaves.
        let is_reported = starter.core.closing.is_cancelled() || self.progress.has_session_ended();
        if let Some(name) = self.name.take().filter(|_| !is_reported) {
            let problem = Some("the request that started it was given up".to_owned());
            let services = &starter.manager.services;
            services.record_start(starter.caller, starter.key(&name), problem);
        }
    }
}

impl StartStep {
    /// The fingerprint of its definition, or of the request where it has none; none where it is only
    /// awaited.
    pub(crate) fn fingerprint(&self) -> Option<String> {
        let service = self.service.as_ref()?;
        Some(match &service.origin {
            Some(origin) => origin.defined_as.clone(),
            None => {
                ServiceDefinition::from_request(self.name.clone(), &service.request).fingerprint()
            }
        })
    }

    /// The service, where it is none that is defined.
    pub(crate) fn ad_hoc(&self) -> Option<&ResolvedService> {
        self.service.as_ref().filter(|it| it.origin.is_none())
    }

    /// Refuses to reuse a running service.
    pub(crate) const fn refuse_reuse(&mut self) {
        self.reuse = ServiceReuse::Refuse;
    }

    /// The service to start; none where it is only awaited.
    pub(crate) const fn service(&self) -> Option<&ResolvedService> {
        self.service.as_ref()
    }
}

impl<'c> ServiceStarter<'c> {
    /// Plans the steps to these services.
    ///
    /// # Errors
    /// For unknown names and for cycles; nothing was started then.
    pub(crate) fn steps(
        self,
        roots: Vec<ResolvedService>,
        base: &StartRequest,
    ) -> Result<Vec<StartStep>, ServiceError> {
        let names: Vec<String> = roots.iter().map(|it| it.name().to_owned()).collect();
        let mut requested: HashMap<String, ResolvedService> =
            names.iter().cloned().zip(roots).collect();
        let needs = |name: &str| match requested.get(name) {
            Some(root) => Some(root.request.depends_on.clone()),
            None => self.dependencies_of(name, base),
        };
        let order = graph::topological_order(&names, needs, &[])?;
        let mut steps: Vec<StartStep> = Vec::with_capacity(order.len());
        for name in order {
            let service = requested
                .remove(&name)
                .or_else(|| self.find_definition(&name, base));
            let needs = service.as_ref().map(|it| it.request.depends_on.clone());
            steps.push(StartStep {
                name,
                service,
                needs: needs.unwrap_or_default(),
                is_task: false,
                completes: false,
                reuse: ServiceReuse::Allow,
            });
        }
        self.mark_tasks(&mut steps);
        Ok(steps)
    }

    /// Marks services that only have to complete, also where they were requested by name: they run
    /// when one of their dependents begins.
    fn mark_tasks(self, steps: &mut [StartStep]) {
        let defined = self
            .manifest
            .into_iter()
            .flat_map(|it| it.services.values());
        let defined: Vec<Dependency> = defined.flat_map(|it| it.depends_on.clone()).collect();
        for at in 0..steps.len() {
            let name = &steps[at].name;
            let needed: Vec<&Dependency> = steps.iter().flat_map(|step| &step.needs).collect();
            let is_task = only_completed(name, needed.iter().copied());
            let completes = only_completed(name, needed.into_iter().chain(&defined));
            (steps[at].is_task, steps[at].completes) = (is_task, completes);
        }
    }

    fn dependencies_of(self, name: &str, base: &StartRequest) -> Option<Vec<Dependency>> {
        if let Some(defined) = self.find_definition(name, base) {
            return Some(defined.request.depends_on);
        }
        // A service that runs without a definition has its dependencies already.
        let entry = self.services().find(name)?;
        (plan_of(&entry).name == name).then(Vec::new)
    }

    /// Runs the steps; returns their outcomes, in order. A failed step prevents only its dependents
    /// from starting.
    pub(crate) async fn run_to_end(self, steps: &[StartStep]) -> Vec<StepResult> {
        let progress = StartProgress::new(steps.len());
        self.run_steps(steps, &progress).await;
        progress.into_results()
    }

    /// As [`ServiceStarter::run_to_end`]; the outcomes go to `progress`.
    pub(crate) async fn run_steps(self, steps: &[StartStep], progress: &StartProgress) {
        let outcomes = steps
            .iter()
            .map(|step| (step.name.as_str(), watch::Sender::new(None)));
        let run = PlanRun {
            steps,
            outcomes: outcomes.collect(),
            progress,
        };
        let all = (0..steps.len()).map(|index| self.run_and_record(index, &run));
        join_all(all).await;
    }

    /// Runs one step, and tells its dependents and the plan of its outcome.
    async fn run_and_record(self, index: usize, run: &PlanRun<'_>) {
        let step = &run.steps[index];
        let name = match &step.service {
            Some(service) => self.expected_name(service),
            None => step.name.clone(),
        };
        let mut guard = StepGuard {
            starter: self,
            progress: run.progress,
            name: step.service.is_some().then(|| name.clone()),
        };
        // It is listed as pending until its failure is recorded, so that it is in every list.
        let mut pending = None;
        let done = Box::pin(self.run_step(step, run, &mut pending)).await;
        let waits_for_person = needs_approval(&done);
        let problem = done.as_ref().err().map(ToString::to_string);
        let hint = done.as_ref().err().and_then(Error::hint);
        let was_stopped = matches!(done, Err(Error::Service(ServiceError::StoppedBeforeStart)));
        let in_background = run.progress.set_result(index, done);
        let services = &self.manager.services;
        guard.name = None;
        let key = self.key(&name);
        match &problem {
            None => services.record_start(self.caller, key, None),
            // The caller learns of it by the error.
            Some(_) if waits_for_person && !in_background => {}
            Some(problem) => {
                let hint = hint.filter(|_| waits_for_person);
                let texts: Vec<String> = std::iter::once(problem.clone()).chain(hint).collect();
                let is_unlisted = in_background && !was_stopped;
                let unlisted = step.ad_hoc().filter(|_| is_unlisted);
                let unlisted = unlisted.map(|service| Box::new(self.preview(service)));
                services.record_failed_start(self.caller, key, texts.join("; "), unlisted);
            }
        }
        drop(pending);
        run.progress.finish_step();
        if in_background {
            services.plans.store();
        }
        let result = problem.map_or(Ok(()), Err);
        run.outcomes[step.name.as_str()].send_replace(Some(result));
    }

    /// Starts the dependencies of a service, and waits until all their conditions are satisfied.
    ///
    /// # Errors
    /// For unknown names and for cycles, before anything is started; for a dependency that cannot
    /// be started or whose condition fails; where the service is stopped meanwhile.
    pub(crate) async fn start_dependencies(self, service: &ResolvedService) -> Result<(), Error> {
        let steps = self.steps(vec![service.clone()], &service.request.start)?;
        // The last step is the service itself.
        let dependencies = &steps[..steps.len() - 1];
        let pending = self.mark_pending(service);
        let starting = async {
            let outcomes = self.run_to_end(dependencies).await;
            // None of them is requested: any failure is one of the service.
            collect_outcomes(dependencies, &[], outcomes)?;
            let outcomes = StepOutcomes::new();
            self.wait_for_dependencies(service, &outcomes, pending.as_ref())
                .await
        };
        unless_stopped(pending.as_ref(), Box::pin(starting)).await
    }

    async fn run_step(
        self,
        step: &StartStep,
        run: &PlanRun<'_>,
        pending: &mut Option<PendingGuard<'c>>,
    ) -> StepResult {
        let Some(service) = &step.service else {
            return Ok(None);
        };
        if step.is_task && self.dependents_running(run.steps, &step.name) {
            return Ok(None);
        }
        *pending = self.mark_pending(service);
        let pending = pending.as_ref();
        let starting = async {
            {
                let _wait = run.progress.begin_wait();
                self.wait_for_dependencies(service, &run.outcomes, pending)
                    .await?;
            }
            if let Some(pending) = pending {
                pending.set_condition(OWN_START.to_owned());
            }
            match step.reuse {
                ServiceReuse::Allow => self.ensure_one(service).await,
                ServiceReuse::Refuse => self.start_one(service).await,
            }
        };
        let ensured = unless_stopped(pending, Box::pin(starting)).await?;
        Ok(Some(EnsureResult {
            completes: step.completes,
            ..ensured
        }))
    }

    /// Waits until every dependency's condition is satisfied; those among `outcomes` are started
    /// first.
    async fn wait_for_dependencies(
        self,
        service: &ResolvedService,
        outcomes: &StepOutcomes<'_>,
        pending: Option<&PendingGuard<'_>>,
    ) -> Result<(), Error> {
        for need in &service.request.depends_on {
            if let Some(pending) = pending {
                pending.set_condition(condition_text(need));
            }
            if let Some(outcome) = outcomes.get(need.name.as_str()) {
                let mut outcome = outcome.subscribe();
                // The senders outlive every step.
                let result = outcome.wait_for(Option::is_some).await;
                let result = result.ok().and_then(|it| it.clone());
                if let Some(Err(error)) = result {
                    let problem = format!("could not be started: {error}");
                    return Err(dependency_error(need, problem));
                }
            }
            self.wait_for_dependency(need).await?;
        }
        Ok(())
    }

    /// Waits until a dependency's condition is satisfied, at most for its own ready timeout.
    pub(crate) async fn wait_for_dependency(self, need: &Dependency) -> Result<(), Error> {
        let Some(entry) = self.services().find(&need.name) else {
            return Err(dependency_error(
                need,
                "is neither running nor defined".to_owned(),
            ));
        };
        let timeout = plan_of(&entry).ready.timeout();
        let result = condition::wait(&entry, need.condition, timeout).await;
        result.map_err(|problem| dependency_error(need, problem))
    }

    /// Lists the service as pending while the returned guard lives; none for one without a name and
    /// without dependencies, which nobody can refer to yet.
    fn mark_pending(self, service: &ResolvedService) -> Option<PendingGuard<'c>> {
        let needs = &service.request.depends_on;
        if service.request.name.is_none() && needs.is_empty() {
            return None;
        }
        let mut info = self.preview(service);
        let condition = needs.first().map(condition_text);
        info.pending = Some(condition.unwrap_or_else(|| OWN_START.to_owned()));
        let pending = &self.manager.services.pending;
        Some(pending.register(self.caller.owner.clone(), info))
    }

    /// Whether all its dependents run already.
    fn dependents_running(self, steps: &[StartStep], name: &str) -> bool {
        let mut dependents = steps
            .iter()
            .filter(|step| step.needs.iter().any(|it| it.name == name));
        dependents.all(|step| self.services().find_living(&step.name).is_some())
    }
}

/// A dependency with its condition, as text: `'db' to be ready`.
fn condition_text(need: &Dependency) -> String {
    let required = format::condition_name(need.condition);
    format!("'{}' to be {required}", need.name)
}

/// Does the work, unless the service that is pending is stopped meanwhile.
async fn unless_stopped<T>(
    pending: Option<&PendingGuard<'_>>,
    work: impl Future<Output = Result<T, Error>>,
) -> Result<T, Error> {
    match pending {
        Some(pending) => pending.unless_stopped(work).await,
        None => work.await,
    }
}

fn dependency_error(need: &Dependency, problem: String) -> Error {
    let on = need.name.clone();
    ServiceError::Dependency { on, problem }.into()
}

/// Whether a service has dependents, which all need it completed.
fn only_completed<'a>(name: &str, needs: impl Iterator<Item = &'a Dependency>) -> bool {
    let mut conditions = needs.filter(|it| it.name == name).peekable();
    conditions.peek().is_some()
        && conditions.all(|it| it.condition == DependencyCondition::Completed)
}

/// Whether a person has to approve it first: callers must see that error unchanged.
fn needs_approval(outcome: &StepResult) -> bool {
    matches!(outcome, Err(Error::ApprovalRequired { .. }))
}

/// The last step's outcome: that of the requested service. Where a step before it failed, it failed
/// too, with that error.
pub(crate) fn last_outcome(mut outcomes: Vec<StepResult>) -> Result<EnsureResult, Error> {
    let approval_at = outcomes.iter().position(needs_approval);
    let index = approval_at.unwrap_or(outcomes.len().saturating_sub(1));
    match outcomes.drain(..).nth(index) {
        Some(Ok(Some(ensured))) => Ok(ensured),
        Some(Err(error)) => Err(error),
        Some(Ok(None)) | None => Err(Error::NotFound),
    }
}

/// The outcomes of all steps, failures among them.
///
/// # Errors
/// Where a person has to approve one first; where one failed and none of the `requested` ones started,
/// the first failure, which is no consequence of another.
pub(crate) fn collect_outcomes(
    steps: &[StartStep],
    requested: &[String],
    outcomes: Vec<StepResult>,
) -> Result<UpResult, Error> {
    let names = steps.iter().map(|step| step.name.as_str());
    collect_ended(names.zip(outcomes).collect(), requested)
}

/// As [`collect_outcomes`], of steps that have ended, each with its name.
pub(crate) fn collect_ended(
    mut ended: Vec<(&str, StepResult)>,
    requested: &[String],
) -> Result<UpResult, Error> {
    check_approvals(&mut ended)?;
    let mut result = UpResult {
        services: Vec::with_capacity(ended.len()),
        failures: Vec::new(),
        pending: Vec::new(),
    };
    for (name, outcome) in ended {
        match outcome {
            Ok(ensured) => result.services.extend(ensured),
            Err(error) => result.failures.push(StartFailure {
                name: name.to_owned(),
                error,
            }),
        }
    }
    let failed = |name: &String| result.failures.iter().any(|it| it.name == *name);
    if requested.iter().all(failed) {
        first_failure(&mut result.failures)?;
    }
    Ok(result)
}

/// Refuses steps of which a person has to approve one first.
pub(crate) fn check_approvals(ended: &mut Vec<(&str, StepResult)>) -> Result<(), Error> {
    if let Some(at) = ended.iter().position(|(_, it)| needs_approval(it)) {
        ended.swap_remove(at).1?;
    }
    Ok(())
}

/// Fails with the first failure, if there is any, and with the name of its service.
fn first_failure(failures: &mut Vec<StartFailure>) -> Result<(), Error> {
    let Some(StartFailure { name, error }) = failures.drain(..).next() else {
        return Ok(());
    };
    Err(ServiceError::Start {
        name,
        problem: error.to_string(),
        code: error.code(),
        hint: error.hint(),
    }
    .into())
}
