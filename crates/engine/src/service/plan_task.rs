//! Start plans that run as tasks of the engine: a request that waits no longer leaves its plan behind.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use ostler_model::{ByteString, Caller, Owner, StartOptions, Timestamp};
use parking_lot::Mutex;
use tokio::time::{Instant, timeout_at};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use super::StartLimits;
use super::manager::ServiceManager;
use super::pending_start_file::{PendingStart, PendingStartFile};
use super::start_plan::StartStep;
use super::start_progress::{StartProgress, StepCounts};
use super::starter::ServiceStarter;
use super::workspace::WorkspaceContext;
use crate::error::Error;
use crate::request::StartRequest;

/// The most plans that go on in the background; further ones end with the requests that wait for
/// them.
pub(crate) const BACKGROUND_PLANS_MAX: usize = 64;

/// The plans that run as tasks.
#[derive(Debug)]
pub(crate) struct StartPlans {
    plans: Mutex<Vec<Arc<PlanTask>>>,
    file: PendingStartFile,
}

/// One start plan that runs as a task.
#[derive(Debug)]
pub(crate) struct PlanTask {
    key: PlanKey,
    /// The names of its steps.
    pub(crate) names: Vec<String>,
    /// What a later engine is told of each step that this one does not end.
    pending: Vec<PendingStart>,
    pub(crate) progress: StartProgress,
    /// Ends the plan: nothing more is started for it.
    cancel: CancellationToken,
    /// Cancelled when its task has ended.
    ended: CancellationToken,
}

/// What two requests have in common that mean the same plan.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct PlanKey {
    owner: Owner,
    cwd: ByteString,
    manifest: Option<PathBuf>,
    requested: Vec<String>,
    /// Without a person's approval, which a later request need not repeat.
    options: StartOptions,
    env: Vec<(ByteString, ByteString)>,
    /// Each service with the fingerprint of what it is.
    steps: Vec<(String, Option<String>)>,
}

/// A plan, and what runs it where it ends with its request.
#[derive(Debug)]
struct PlanWait {
    plan: Arc<PlanTask>,
    /// None where the plan goes on in the background already.
    task: Option<AbortOnDropHandle<()>>,
}

/// What a plan is made of.
#[derive(Debug)]
pub(crate) struct PlanParts {
    pub(crate) caller: Caller,
    pub(crate) context: WorkspaceContext,
    pub(crate) steps: Vec<StartStep>,
}

impl PlanKey {
    pub(crate) fn new(parts: &PlanParts, requested: &[String], base: &StartRequest) -> Self {
        let steps = parts.steps.iter();
        Self {
            owner: parts.caller.owner.clone(),
            cwd: base.cwd.clone(),
            manifest: parts.context.file().map(ToOwned::to_owned),
            requested: requested.to_vec(),
            options: StartOptions {
                approval: None,
                ..base.options.clone()
            },
            env: base.base_env.clone(),
            steps: steps
                .map(|step| (step.name.clone(), step.fingerprint()))
                .collect(),
        }
    }
}

/// Until when a request waits.
#[derive(Debug, Clone, Copy)]
struct WaitDeadlines {
    dependencies: Option<Instant>,
    total: Option<Instant>,
}

impl WaitDeadlines {
    fn after(limits: StartLimits) -> Self {
        let deadline =
            |limit: Option<Duration>| limit.and_then(|it| Instant::now().checked_add(it));
        let total = deadline(limits.total);
        Self {
            dependencies: deadline(limits.dependencies).into_iter().chain(total).min(),
            total,
        }
    }
}

impl StartPlans {
    pub(crate) fn new(file: PendingStartFile) -> Self {
        Self {
            plans: Mutex::default(),
            file,
        }
    }

    /// Stores the steps that plans in the background have not ended, for a later engine.
    pub(crate) fn store(&self) {
        self.write(&self.plans.lock());
    }

    fn write(&self, plans: &[Arc<PlanTask>]) {
        let kept = plans.iter().filter(|it| it.progress.is_in_background());
        self.file
            .write(kept.flat_map(|it| it.unfinished()).collect());
    }

    /// The plan of the background that these requests have in common; none where one of its steps
    /// failed: it is tried again.
    fn find(&self, key: &PlanKey) -> Option<Arc<PlanTask>> {
        let plans = self.plans.lock();
        let found = plans.iter().find(|plan| {
            plan.key == *key
                && plan.progress.is_in_background()
                && !plan.cancel.is_cancelled()
                && !plan.progress.has_failure()
        });
        found.cloned()
    }

    /// Lets a plan go on in the background; false where too many do.
    fn keep(&self, plan: &PlanTask) -> bool {
        let plans = self.plans.lock();
        let kept = plans.iter().filter(|it| it.progress.is_in_background());
        if kept.count() >= BACKGROUND_PLANS_MAX {
            return false;
        }
        plan.progress.set_in_background();
        self.write(&plans);
        true
    }

    /// Removes a plan. One that ends with the engine stays in the file.
    fn remove(&self, plan: &Arc<PlanTask>, is_closing: bool) {
        let mut plans = self.plans.lock();
        plans.retain(|it| !Arc::ptr_eq(it, plan));
        if plan.progress.is_in_background() && !is_closing {
            self.write(&plans);
        }
    }

    /// See [`ServiceManager::end_plans`].
    async fn end_session(&self, caller: &Caller) {
        let session = &caller.owner.session;
        if session.is_none() {
            return;
        }
        let theirs = |plan: &&Arc<PlanTask>| {
            plan.key.owner.session == *session && caller.can_access(&plan.key.owner)
        };
        let ending: Vec<Arc<PlanTask>> = self.plans.lock().iter().filter(theirs).cloned().collect();
        for plan in &ending {
            plan.progress.end_session();
            plan.cancel.cancel();
        }
        for plan in &ending {
            plan.ended.cancelled().await;
        }
    }
}

impl ServiceManager {
    /// Ends the start plans of the caller's session, and waits until nothing more is started for
    /// them.
    pub(crate) async fn end_plans(&self, caller: &Caller) {
        self.services.plans.end_session(caller).await;
        self.services.failed_starts.end_session(caller);
    }

    /// Runs a plan, or finds the one of these requests, and waits until it is over. Past the limits
    /// it goes on in the background, unless too many do.
    ///
    /// # Errors
    /// Where the plan was ended before.
    pub(crate) async fn run_plan_within(
        &self,
        key: PlanKey,
        parts: PlanParts,
        limits: StartLimits,
    ) -> Result<Arc<PlanTask>, Error> {
        let deadlines = WaitDeadlines::after(limits);
        let mut wait = self.run_plan(key, parts);
        let is_over = |counts: StepCounts| counts.unfinished == 0;
        if !wait.wait_until(is_over, deadlines.dependencies).await? {
            wait.wait_until(|counts| counts.starting == 0, deadlines.total)
                .await?;
            if !wait.detach(&self.services.plans) {
                wait.wait_until(is_over, None).await?;
            }
        }
        Ok(wait.plan)
    }

    /// The plan of these requests: the one that goes on in the background, else a new task.
    fn run_plan(&self, key: PlanKey, parts: PlanParts) -> PlanWait {
        if let Some(plan) = self.services.plans.find(&key) {
            return PlanWait { plan, task: None };
        }
        let plan = Arc::new(PlanTask {
            pending: self.pending_starts(&parts),
            key,
            names: parts.steps.iter().map(|it| it.name.clone()).collect(),
            progress: StartProgress::new(parts.steps.len()),
            cancel: CancellationToken::new(),
            ended: CancellationToken::new(),
        });
        self.services.plans.plans.lock().push(Arc::clone(&plan));
        let registered = RegisteredPlan {
            manager: self.clone(),
            plan: Arc::clone(&plan),
        };
        let task = self.core.tracker.spawn(registered.run(parts));
        PlanWait {
            plan,
            task: Some(AbortOnDropHandle::new(task)),
        }
    }
}

impl PlanTask {
    /// The steps that have not ended.
    fn unfinished(&self) -> Vec<PendingStart> {
        let steps = self.pending.iter().enumerate();
        let unfinished = steps.filter(|(step, _)| !self.progress.has_ended(*step));
        unfinished.map(|(_, start)| start.clone()).collect()
    }
}

impl ServiceManager {
    /// What is stored of each step while it is pending in the background.
    fn pending_starts(&self, parts: &PlanParts) -> Vec<PendingStart> {
        let starter = ServiceStarter::new(self, &parts.caller, &parts.context);
        let began = Timestamp::now();
        let start = |step: &StartStep| PendingStart {
            owner: parts.caller.owner.clone(),
            name: step
                .service()
                .map_or_else(|| step.name.clone(), |it| starter.expected_name(it)),
            workspace: parts.context.file().map(ByteString::from),
            began,
            program: step
                .ad_hoc()
                .map(|it| it.request.start.command.program().clone()),
        };
        parts.steps.iter().map(start).collect()
    }
}

/// A plan in the table; dropped with its task, which may never have run.
#[derive(Debug)]
struct RegisteredPlan {
    manager: ServiceManager,
    plan: Arc<PlanTask>,
}

impl RegisteredPlan {
    async fn run(self, parts: PlanParts) {
        let starter = ServiceStarter::new(&self.manager, &parts.caller, &parts.context);
        let running = Box::pin(starter.run_steps(&parts.steps, &self.plan.progress));
        tokio::select! {
            biased;
            () = self.manager.core.closing.cancelled() => {}
            () = self.plan.cancel.cancelled() => {}
            () = running => {}
        }
    }
}

impl Drop for RegisteredPlan {
    fn drop(&mut self) {
        let is_closing = self.manager.core.closing.is_cancelled();
        self.manager.services.plans.remove(&self.plan, is_closing);
        self.plan.ended.cancel();
    }
}

impl PlanWait {
    /// Waits until the counts are so or the deadline has passed; returns whether they are.
    ///
    /// # Errors
    /// Where the plan was ended before.
    async fn wait_until(
        &self,
        condition: impl Fn(StepCounts) -> bool,
        deadline: Option<Instant>,
    ) -> Result<bool, Error> {
        let waiting = async {
            tokio::select! {
                biased;
                () = self.plan.progress.wait_until(condition) => Ok(true),
                () = self.plan.ended.cancelled() => self.plan.check_complete().map(|()| true),
            }
        };
        match deadline {
            Some(deadline) => timeout_at(deadline, waiting).await.unwrap_or(Ok(false)),
            None => waiting.await,
        }
    }

    /// Lets the plan go on without this request; false where too many do.
    fn detach(&mut self, plans: &StartPlans) -> bool {
        let Some(task) = self.task.take() else {
            return true;
        };
        if !plans.keep(&self.plan) {
            self.task = Some(task);
            return false;
        }
        drop(task.detach());
        true
    }
}

impl PlanTask {
    /// Refuses a plan that has ended before all of its steps had.
    fn check_complete(&self) -> Result<(), Error> {
        if self.progress.is_complete() {
            return Ok(());
        }
        Err(if self.cancel.is_cancelled() {
            Error::SessionEnded
        } else {
            Error::Closing
        })
    }
}
