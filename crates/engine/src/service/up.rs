//! Several services in the order of their dependencies (E6): each begins as soon as what it
//! needs is so, those that need nothing of each other at the same time.

use std::collections::HashMap;

use futures_util::future::join_all;
use ostler_model::{Condition, Dependency};
use tokio::sync::watch;

use super::book::Waiting;
use super::clerk::{Clerk, Wanted};
use super::view::plan_of;
use super::{Ensured, ServiceError, condition, graph, words};
use crate::error::Error;
use crate::request::StartRequest;

/// One service of several, in the order of what comes first.
#[derive(Debug)]
pub(crate) struct Step {
    pub(crate) name: String,
    /// What is to run; none where it runs, or ran, without a definition: it is only waited for.
    wanted: Option<Wanted>,
    needs: Vec<Dependency>,
    /// Whether it is only there to be completed before others of these begin.
    is_task: bool,
    /// The same, before any that is known here: its end is what is waited for.
    completes: bool,
}

/// What became of each step, for those that come after it: none while it is under way.
type Outcomes<'a> = HashMap<&'a str, watch::Sender<Option<Result<(), String>>>>;

impl<'c> Clerk<'c> {
    /// The steps to these services.
    ///
    /// # Errors
    /// For names nobody has and for circles; nothing was started then.
    pub(crate) fn steps(
        self,
        roots: Vec<Wanted>,
        base: &StartRequest,
    ) -> Result<Vec<Step>, ServiceError> {
        let names: Vec<String> = roots.iter().map(|it| it.name().to_owned()).collect();
        let mut asked: HashMap<String, Wanted> = names.iter().cloned().zip(roots).collect();
        let needs = |name: &str| match asked.get(name) {
            Some(root) => Some(root.request.depends_on.clone()),
            None => self.needs(name, base),
        };
        let order = graph::order(&names, needs, &[])?;
        let mut steps: Vec<Step> = Vec::with_capacity(order.len());
        for name in order {
            let wanted = asked.remove(&name).or_else(|| self.defined(&name, base));
            let needs = wanted.as_ref().map(|it| it.request.depends_on.clone());
            steps.push(Step {
                name,
                wanted,
                needs: needs.unwrap_or_default(),
                is_task: false,
                completes: false,
            });
        }
        self.mark_tasks(&mut steps);
        Ok(steps)
    }

    /// Marks what is only there to be completed, also where it was asked for by name: beside
    /// those that need it, it runs when one of them begins.
    fn mark_tasks(self, steps: &mut [Step]) {
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

    fn needs(self, name: &str, base: &StartRequest) -> Option<Vec<Dependency>> {
        if let Some(defined) = self.defined(name, base) {
            return Some(defined.request.depends_on);
        }
        // What runs without a definition has what it needs.
        let entry = self.view().find(name)?;
        (plan_of(&entry).name == name).then(Vec::new)
    }

    /// Carries the steps out; what became of each, in their order. One that fails keeps only
    /// those from beginning that need it.
    pub(crate) async fn climb(self, steps: &[Step]) -> Vec<Result<Option<Ensured>, Error>> {
        let outcomes: Outcomes<'_> = steps
            .iter()
            .map(|step| (step.name.as_str(), watch::Sender::new(None)))
            .collect();
        let all = steps.iter().map(|step| {
            let outcomes = &outcomes;
            async move {
                let done = Box::pin(self.step(step, steps, outcomes)).await;
                let told = done.as_ref().map(drop).map_err(ToString::to_string);
                outcomes[step.name.as_str()].send_replace(Some(told));
                done
            }
        });
        join_all(all).await
    }

    /// Starts what a service depends on, and waits until all of it is so.
    ///
    /// # Errors
    /// For names nobody has and for circles, before anything is started; for what cannot be
    /// started or will not be as it must.
    pub(crate) async fn start_needs(self, wanted: &Wanted) -> Result<(), Error> {
        let steps = self.steps(vec![wanted.clone()], &wanted.request.start)?;
        // The last step is the service itself.
        let before = &steps[..steps.len() - 1];
        every(before, self.climb(before).await)?;
        self.prepare(wanted, &Outcomes::new()).await
    }

    async fn step(
        self,
        step: &Step,
        steps: &[Step],
        outcomes: &Outcomes<'_>,
    ) -> Result<Option<Ensured>, Error> {
        let Some(wanted) = &step.wanted else {
            return Ok(None);
        };
        if step.is_task && self.all_run(steps, &step.name) {
            return Ok(None);
        }
        self.prepare(wanted, outcomes).await?;
        let ensured = self.ensure_one(wanted).await?;
        Ok(Some(Ensured {
            completes: step.completes,
            ..ensured
        }))
    }

    /// Until everything it needs is so; what is among `outcomes` is begun first.
    async fn prepare(self, wanted: &Wanted, outcomes: &Outcomes<'_>) -> Result<(), Error> {
        for need in &wanted.request.depends_on {
            let _told = self.tell_pending(wanted, need);
            if let Some(outcome) = outcomes.get(need.name.as_str()) {
                let mut outcome = outcome.subscribe();
                // The senders outlive every step.
                let begun = outcome.wait_for(Option::is_some).await;
                let begun = begun.ok().and_then(|it| it.clone());
                if let Some(Err(error)) = begun {
                    let problem = format!("could not be started: {error}");
                    return Err(depends(need, problem));
                }
            }
            self.meet(need).await?;
        }
        Ok(())
    }

    /// Until a dependency is as it must be, at most as long as its own readiness may take.
    pub(crate) async fn meet(self, need: &Dependency) -> Result<(), Error> {
        let Some(entry) = self.view().find(&need.name) else {
            return Err(depends(need, "is neither running nor defined".to_owned()));
        };
        let at_most = plan_of(&entry).ready.timeout();
        let met = condition::wait(&entry, need.condition, at_most).await;
        met.map_err(|problem| depends(need, problem))
    }

    /// While what is returned lives, the service is told as pending.
    fn tell_pending(self, wanted: &Wanted, need: &Dependency) -> Waiting<'c> {
        let mut info = self.row(wanted);
        let far = words::condition(need.condition);
        info.pending = Some(format!("'{}' to be {far}", need.name));
        self.core.book.waits(self.caller.owner.clone(), info)
    }

    /// Whether everybody who needs it runs already.
    fn all_run(self, steps: &[Step], name: &str) -> bool {
        let mut dependents = steps
            .iter()
            .filter(|step| step.needs.iter().any(|it| it.name == name));
        dependents.all(|step| self.view().rival(&step.name).is_some())
    }
}

fn depends(need: &Dependency, problem: String) -> Error {
    let on = need.name.clone();
    ServiceError::Dependency { on, problem }.into()
}

/// Whether a service is needed, and by everybody as completed.
fn only_completed<'a>(name: &str, needs: impl Iterator<Item = &'a Dependency>) -> bool {
    let mut of_it = needs.filter(|it| it.name == name).peekable();
    of_it.peek().is_some() && of_it.all(|it| it.condition == Condition::Completed)
}

/// Whether a person has to be asked first: callers must see that as it is.
fn needs_approval(outcome: &Result<Option<Ensured>, Error>) -> bool {
    matches!(outcome, Err(Error::ApprovalRequired { .. }))
}

/// The last step's outcome: that of the one service asked for. Where a step before it failed,
/// so did it, and says so.
pub(crate) fn last(mut outcomes: Vec<Result<Option<Ensured>, Error>>) -> Result<Ensured, Error> {
    let asks = outcomes.iter().position(needs_approval);
    let told = asks.unwrap_or(outcomes.len().saturating_sub(1));
    match outcomes.drain(..).nth(told) {
        Some(Ok(Some(ensured))) => Ok(ensured),
        Some(Err(error)) => Err(error),
        Some(Ok(None)) | None => Err(Error::NotFound),
    }
}

/// Every step's outcome, or the first failure that is not another one's consequence, with the
/// name of its service.
pub(crate) fn every(
    steps: &[Step],
    outcomes: Vec<Result<Option<Ensured>, Error>>,
) -> Result<Vec<Ensured>, Error> {
    let asks = outcomes.iter().position(needs_approval);
    let mut all = Vec::with_capacity(outcomes.len());
    for (at, (step, outcome)) in steps.iter().zip(outcomes).enumerate() {
        match outcome {
            Ok(ensured) => all.extend(ensured),
            Err(error) if asks == Some(at) => return Err(error),
            Err(_) if asks.is_some() => {}
            Err(error) => {
                return Err(ServiceError::Start {
                    name: step.name.clone(),
                    problem: error.to_string(),
                    code: error.code(),
                    hint: error.hint(),
                }
                .into());
            }
        }
    }
    Ok(all)
}
