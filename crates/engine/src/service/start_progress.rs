//! The progress of a start plan: the state of each of its steps, and a wait for it.

use parking_lot::Mutex;
use tokio::sync::watch;

use super::{EnsureResult, ServiceError};
use crate::error::Error;

/// The outcome of one step; none where there was nothing to do.
pub(crate) type StepResult = Result<Option<EnsureResult>, Error>;

/// The steps of one plan, in its order.
#[derive(Debug)]
pub(crate) struct StartProgress {
    inner: Mutex<ProgressState>,
    counts: watch::Sender<StepCounts>,
}

#[derive(Debug)]
struct ProgressState {
    /// The outcome of each ended step.
    results: Vec<Option<StepResult>>,
    /// Whether the plan goes on although the request that began it was answered.
    in_background: bool,
    /// Whether the session ended that it was begun in.
    session_ended: bool,
}

/// How many steps are at which point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct StepCounts {
    /// Those that have not ended.
    pub(crate) unfinished: usize,
    /// Those among them that wait for no dependency.
    pub(crate) starting: usize,
}

/// While it lives, one step waits for its dependencies.
#[derive(Debug)]
pub(crate) struct DependencyWait<'a>(&'a StartProgress);

impl Drop for DependencyWait<'_> {
    fn drop(&mut self) {
        self.0.counts.send_modify(|counts| counts.starting += 1);
    }
}

impl StartProgress {
    /// Of this many steps, none of which has begun.
    pub(crate) fn new(steps: usize) -> Self {
        let state = ProgressState {
            results: std::iter::repeat_with(|| None).take(steps).collect(),
            in_background: false,
            session_ended: false,
        };
        Self {
            inner: Mutex::new(state),
            counts: watch::Sender::new(StepCounts {
                unfinished: steps,
                starting: steps,
            }),
        }
    }

    /// One step begins to wait for its dependencies.
    pub(crate) fn begin_wait(&self) -> DependencyWait<'_> {
        self.counts.send_modify(|counts| counts.starting -= 1);
        DependencyWait(self)
    }

    /// Stores the outcome of one step; returns whether the plan is in the background.
    pub(crate) fn set_result(&self, step: usize, result: StepResult) -> bool {
        let mut inner = self.inner.lock();
        inner.results[step] = Some(result);
        inner.in_background
    }

    /// One step has ended, and its outcome is stored: tells those who wait.
    pub(crate) fn finish_step(&self) {
        self.counts.send_modify(|counts| {
            counts.unfinished -= 1;
            counts.starting -= 1;
        });
    }

    /// Waits until the counts are so.
    pub(crate) async fn wait_until(&self, condition: impl Fn(StepCounts) -> bool) {
        let mut counts = self.counts.subscribe();
        // The sender outlives this borrow of it.
        let _counts = counts.wait_for(|counts| condition(*counts)).await;
    }

    /// Whether this step has ended.
    pub(crate) fn has_ended(&self, step: usize) -> bool {
        self.inner.lock().results[step].is_some()
    }

    /// Whether every step has ended.
    pub(crate) fn is_complete(&self) -> bool {
        self.counts.borrow().unfinished == 0
    }

    /// From now on the plan goes on in the background.
    pub(crate) fn set_in_background(&self) {
        self.inner.lock().in_background = true;
    }

    /// Whether the plan goes on although the request that began it was answered.
    pub(crate) fn is_in_background(&self) -> bool {
        self.inner.lock().in_background
    }

    /// The session ends that the plan was begun in.
    pub(crate) fn end_session(&self) {
        self.inner.lock().session_ended = true;
    }

    /// Whether the session ended that the plan was begun in.
    pub(crate) fn has_session_ended(&self) -> bool {
        self.inner.lock().session_ended
    }

    /// Whether a step has failed so far.
    pub(crate) fn has_failure(&self) -> bool {
        let inner = self.inner.lock();
        inner.results.iter().flatten().any(Result::is_err)
    }

    /// The outcome of each step that has ended; later calls get them again.
    pub(crate) fn results(&self, names: &[String]) -> Vec<Option<StepResult>> {
        let mut inner = self.inner.lock();
        let results = inner.results.iter_mut().zip(names);
        results
            .map(|(result, name)| result.as_mut().map(|it| take_result(it, name)))
            .collect()
    }

    /// The outcomes of all steps, which have ended.
    pub(crate) fn into_results(self) -> Vec<StepResult> {
        let results = self.inner.into_inner().results.into_iter();
        results.map(|it| it.unwrap_or(Ok(None))).collect()
    }
}

/// Takes an outcome and leaves a copy: of an error, what people and programs see of it.
fn take_result(result: &mut StepResult, name: &str) -> StepResult {
    let copy = match &*result {
        Ok(ensured) => Ok(ensured.clone()),
        Err(Error::ApprovalRequired {
            rule,
            reason,
            interaction,
            path,
        }) => Err(Error::ApprovalRequired {
            rule: rule.clone(),
            reason: reason.clone(),
            interaction: interaction.clone(),
            path: *path,
        }),
        Err(error) => Err(ServiceError::Start {
            name: name.to_owned(),
            problem: error.to_string(),
            code: error.code(),
            hint: error.hint(),
        }
        .into()),
    };
    std::mem::replace(result, copy)
}
