//! Approval of starts that the command policy holds back: the person at the client is asked within
//! the same call where the client supports forms. The agent itself cannot answer.

use std::time::Duration;

use ostler_engine::interaction::CancelReason;
use ostler_engine::{
    EnsureResult, Error, InteractionOutcome, ServiceRequest, ServiceReuse, ServiceStart,
    StartGuard, StartLimits, StartRequest, UpResult,
};
use ostler_model::ExecutionId;
use tokio::time::Instant;

use super::call_context::MAX_WAIT_MS;
use super::elicit::{self, ElicitOutcome};
use super::planned_start::PlannedStart;
use super::reply::ToolInterrupt;
use super::tool_call::ToolCall;
use ostler_interface::error::ApiError;

/// A start, and the engine method that carries it out.
#[derive(Debug, Clone)]
pub(super) enum StartOrder {
    /// Started by [`Engine::start_guarded`](ostler_engine::Engine::start_guarded).
    Begin(Box<StartRequest>),
    /// Started by [`Engine::start_unawaited`](ostler_engine::Engine::start_unawaited).
    Launch(Box<StartRequest>),
    /// Started by [`Engine::start_service`](ostler_engine::Engine::start_service).
    Service(Box<ServiceRequest>),
}

impl From<StartRequest> for StartOrder {
    fn from(request: StartRequest) -> Self {
        Self::Launch(Box::new(request))
    }
}

impl From<ServiceRequest> for StartOrder {
    fn from(request: ServiceRequest) -> Self {
        Self::Service(Box::new(request))
    }
}

impl StartOrder {
    /// The same order with a person's approval.
    fn with_approval(mut self, approval: Option<String>) -> Self {
        let request = match &mut self {
            Self::Begin(request) | Self::Launch(request) => request,
            Self::Service(request) => &mut request.start,
        };
        request.options.approval = approval.or_else(|| request.options.approval.take());
        self
    }

    /// The same order under this execution id, if there is one.
    fn with_id(mut self, id: Option<ExecutionId>) -> Self {
        let request = match &mut self {
            Self::Begin(request) | Self::Launch(request) => request,
            Self::Service(request) => &mut request.start,
        };
        request.id = id;
        self
    }

    /// The same order, waiting at most this long for a slot within the quota.
    pub(super) fn with_queue_timeout(mut self, timeout: Option<Duration>) -> Self {
        let request = match &mut self {
            Self::Begin(request) | Self::Launch(request) => request,
            Self::Service(request) => &mut request.start,
        };
        let limits = [request.options.queue_timeout, timeout];
        request.options.queue_timeout = limits.into_iter().flatten().min();
        self
    }

    async fn execute(self, call: ToolCall<'_>) -> Result<StartGuard, Error> {
        let start_guard = self.begin(call).await?;
        call.context.set_queue_wait(start_guard.queue_wait());
        Ok(start_guard)
    }

    async fn begin(self, call: ToolCall<'_>) -> Result<StartGuard, Error> {
        match self {
            Self::Begin(request) => call.engine.start_guarded(call.caller, *request).await,
            Self::Launch(request) => call.engine.start_unawaited(call.caller, *request).await,
            Self::Service(request) => call.engine.start_service(call.caller, *request).await,
        }
    }
}

/// As [`Engine::start`](ostler_engine::Engine::start), with a person's approval where it needs
/// one.
pub(super) async fn begin(
    call: ToolCall<'_>,
    request: StartRequest,
) -> Result<StartGuard, ToolInterrupt> {
    start(call, StartOrder::Begin(Box::new(request))).await
}

/// Carries the order out, with a person's approval where the policy requires one.
pub(super) async fn start(
    call: ToolCall<'_>,
    request: impl Into<StartOrder>,
) -> Result<StartGuard, ToolInterrupt> {
    let start_order = request.into().with_id(next_execution(call)?);
    with_approval(call, |approval| {
        start_order.clone().with_approval(approval).execute(call)
    })
    .await
}

/// As [`Engine::start_service_within`](ostler_engine::Engine::start_service_within), with a person's
/// approval where it needs one; `limits` returns what is left of the call's time.
pub(super) async fn start_within(
    call: ToolCall<'_>,
    mut request: ServiceRequest,
    reuse: ServiceReuse,
    limits: impl Fn() -> StartLimits,
) -> Result<ServiceStart, ToolInterrupt> {
    request.start.id = next_execution(call)?;
    let mut started = with_approval(call, |approval| {
        let mut request = request.clone();
        request.start.options.approval = approval.or_else(|| request.start.options.approval.take());
        call.engine
            .start_service_within(call.caller, request, reuse, limits())
    })
    .await?;
    if let ServiceStart::Running(ensured) = &mut started {
        note_start(call, ensured);
    }
    Ok(started)
}

/// Records the start with the call; corrects the outcome of one that an earlier attempt of this call
/// began.
fn note_start(call: ToolCall<'_>, ensured: &mut EnsureResult) {
    let attempt = call.context.attempt();
    let execution = ensured.service.execution.as_ref();
    if !ensured.reused {
        call.context
            .set_queue_wait(execution.and_then(|it| it.queue_wait));
    }
    let id = execution.map(|execution| execution.id);
    if attempt
        .zip(id)
        .is_some_and(|(attempt, id)| attempt.has_started(id))
    {
        // This call started it, in an earlier daemon.
        (ensured.reused, ensured.note) = (false, "started".to_owned());
    }
}

/// The id for the next execution this call starts, where it is chosen before; an earlier attempt may
/// have started it.
fn next_execution(call: ToolCall<'_>) -> Result<Option<ExecutionId>, ApiError> {
    let Some(attempt) = call.context.attempt() else {
        let planned = call.context.planned_start();
        return Ok(planned.and_then(PlannedStart::next_execution));
    };
    Ok(Some(attempt.next_execution()?))
}

/// As [`Engine::service_up_within`](ostler_engine::Engine::service_up_within), with a person's
/// approval where it needs one; `limits` returns what is left of the call's time.
pub(super) async fn service_up(
    call: ToolCall<'_>,
    names: &[String],
    base: StartRequest,
    limits: impl Fn() -> StartLimits,
) -> Result<UpResult, ToolInterrupt> {
    with_approval(call, |approval| {
        let mut base = base.clone();
        base.options.approval = approval.or_else(|| base.options.approval.take());
        let limits = limits();
        async move {
            let cwd = base.cwd.as_path().to_owned();
            call.engine
                .service_up_within(call.caller, &cwd, names, &base, limits)
                .await
        }
    })
    .await
}

/// Tries; where the policy requires approval, asks the person and tries again with the answer.
async fn with_approval<T, F: Future<Output = Result<T, Error>>>(
    call: ToolCall<'_>,
    try_start: impl Fn(Option<String>) -> F,
) -> Result<T, ToolInterrupt> {
    let prior_interaction = call.context.answered_interaction();
    let outcome = match prior_interaction {
        Some(_) => elicit::resume_elicitation(call).await?,
        None => None,
    };
    let to_refusal = |error| refusal_error(error, outcome.as_ref());
    if !call.context.supports_forms() {
        return Ok(try_start(prior_interaction).await.map_err(to_refusal)?);
    }
    let interaction = match try_start(prior_interaction).await.map_err(to_refusal) {
        Err(Error::ApprovalRequired { interaction, .. }) => interaction,
        other => return Ok(other?),
    };
    let open = call.engine.interaction(call.caller, &interaction)?;
    let max_wait = call
        .context
        .max_wait()
        .map(|_| Duration::from_millis(MAX_WAIT_MS));
    let until = max_wait.and_then(|patience| Instant::now().checked_add(patience));
    let outcome = elicit::elicit(call, &open, until).await?;
    // A refusal is an answer, too: passed on, it becomes the reason of the error.
    let result = try_start(Some(interaction)).await;
    Ok(result.map_err(|error| refusal_error(error, Some(&outcome)))?)
}

/// Words a refusal of the command policy by what the person did with the question.
fn refusal_error(error: Error, outcome: Option<&ElicitOutcome>) -> Error {
    let Some(ElicitOutcome::Closed(InteractionOutcome::Cancelled(CancelReason::Requested {
        reason,
        ..
    }))) = outcome
    else {
        return error;
    };
    match (error, reason) {
        (Error::Denied { rule, .. }, Some(reason)) => {
            let reason = format!("{reason}; it was not started");
            Error::Denied { rule, reason }
        }
        (error, _) => error,
    }
}
