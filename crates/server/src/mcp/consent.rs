//! Starts the command policy asks a person about (B3): asked at the client where it shows
//! forms, within the same call. The agent itself cannot answer.

use std::time::Duration;

use ostler_engine::interaction::CancelReason;
use ostler_engine::{Answer, Begun, Ensured, Error, ServiceRequest, StartRequest};
use ostler_model::{ErrorCode, ExecutionId};
use tokio::time::Instant;

use super::context::Call;
use super::elicit::{self, Asked};
use super::link::YIELD_MS;
use super::reply::Interrupted;
use crate::error::Failure;

/// A start, and how it reports.
#[derive(Debug, Clone)]
pub(super) enum Order {
    /// [`Engine::begin`](ostler_engine::Engine::begin).
    Begin(Box<StartRequest>),
    /// [`Engine::launch`](ostler_engine::Engine::launch).
    Launch(Box<StartRequest>),
    /// [`Engine::start_service`](ostler_engine::Engine::start_service).
    Service(Box<ServiceRequest>),
}

impl From<StartRequest> for Order {
    fn from(request: StartRequest) -> Self {
        Self::Launch(Box::new(request))
    }
}

impl From<ServiceRequest> for Order {
    fn from(request: ServiceRequest) -> Self {
        Self::Service(Box::new(request))
    }
}

impl Order {
    /// The same with a person's consent.
    fn approved(mut self, approval: Option<String>) -> Self {
        let request = match &mut self {
            Self::Begin(request) | Self::Launch(request) => request,
            Self::Service(request) => &mut request.start,
        };
        request.approval = approval.or_else(|| request.approval.take());
        self
    }

    /// The same under this id, where it is to have one.
    fn under(mut self, id: Option<ExecutionId>) -> Self {
        let request = match &mut self {
            Self::Begin(request) | Self::Launch(request) => request,
            Self::Service(request) => &mut request.start,
        };
        request.id = id;
        self
    }

    /// The same, waiting at most this long for a place.
    pub(super) fn waiting(mut self, at_most: Option<Duration>) -> Self {
        let request = match &mut self {
            Self::Begin(request) | Self::Launch(request) => request,
            Self::Service(request) => &mut request.start,
        };
        let limits = [request.wait_for_place, at_most];
        request.wait_for_place = limits.into_iter().flatten().min();
        self
    }

    async fn carry_out(self, call: Call<'_>) -> Result<Begun, Error> {
        let begun = self.begin(call).await?;
        call.link.queued(begun.queued());
        Ok(begun)
    }

    async fn begin(self, call: Call<'_>) -> Result<Begun, Error> {
        match self {
            Self::Begin(request) => call.engine.begin(call.caller, *request).await,
            Self::Launch(request) => call.engine.launch(call.caller, *request).await,
            Self::Service(request) => call.engine.start_service(call.caller, *request).await,
        }
    }
}

/// As [`Engine::begin`](ostler_engine::Engine::begin), with a person's consent where it takes
/// one.
pub(super) async fn begin(call: Call<'_>, request: StartRequest) -> Result<Begun, Interrupted> {
    launch(call, Order::Begin(Box::new(request))).await
}

/// Starts what is ordered, with a person's consent where it takes one.
pub(super) async fn launch(call: Call<'_>, order: impl Into<Order>) -> Result<Begun, Interrupted> {
    let order = order.into().under(next_execution(call)?);
    consented(call, |approval| {
        order.clone().approved(approval).carry_out(call)
    })
    .await
}

/// As [`Engine::ensure_service`](ostler_engine::Engine::ensure_service), with a person's
/// consent where it takes one.
pub(super) async fn ensure(
    call: Call<'_>,
    mut request: ServiceRequest,
) -> Result<Ensured, Interrupted> {
    request.start.id = next_execution(call)?;
    let mut ensured = consented(call, |approval| {
        let mut request = request.clone();
        request.start.approval = approval.or_else(|| request.start.approval.take());
        call.engine.ensure_service(call.caller, request)
    })
    .await?;
    let attempt = call.link.attempt();
    let execution = ensured.service.execution.as_ref();
    if !ensured.reused {
        call.link.queued(execution.and_then(|it| it.queued));
    }
    let id = execution.map(|execution| execution.id);
    if attempt
        .zip(id)
        .is_some_and(|(attempt, id)| attempt.started(id))
    {
        // It was this call that started it, under an earlier daemon.
        (ensured.reused, ensured.note) = (false, "started".to_owned());
    }
    Ok(ensured)
}

/// The id of what this call starts next, where an earlier attempt may have started it.
fn next_execution(call: Call<'_>) -> Result<Option<ExecutionId>, Failure> {
    let Some(attempt) = call.link.attempt() else {
        return Ok(None);
    };
    let id = attempt.next_execution().map_err(|error| {
        let message = format!("the connection's log cannot be written: {error}");
        Failure::new(ErrorCode::Internal, message)
    })?;
    Ok(Some(id))
}

/// As [`Engine::service_up`](ostler_engine::Engine::service_up), with a person's consent where
/// it takes one.
pub(super) async fn up(
    call: Call<'_>,
    (names, base): (&[String], StartRequest),
) -> Result<Vec<Ensured>, Interrupted> {
    consented(call, |approval| {
        let mut base = base.clone();
        base.approval = approval.or_else(|| base.approval.take());
        async move {
            let cwd = base.cwd.as_path().to_owned();
            call.engine
                .service_up(call.caller, &cwd, names, &base)
                .await
        }
    })
    .await
}

/// Tries, asks the person where the command policy wants that, and tries again with the answer.
async fn consented<T, F: Future<Output = Result<T, Error>>>(
    call: Call<'_>,
    attempt: impl Fn(Option<String>) -> F,
) -> Result<T, Interrupted> {
    let answered = call.link.answers();
    let asked = match answered {
        Some(_) => elicit::resume(call).await?,
        None => None,
    };
    let told = |error| refused(error, asked.as_ref());
    if !call.link.shows_forms() {
        return Ok(attempt(answered).await.map_err(told)?);
    }
    let interaction = match attempt(answered).await.map_err(told) {
        Err(Error::ApprovalRequired { interaction, .. }) => interaction,
        other => return Ok(other?),
    };
    let open = call.engine.interaction(call.caller, &interaction)?;
    let patience = call
        .link
        .patience()
        .map(|_| Duration::from_millis(YIELD_MS));
    let until = patience.and_then(|patience| Instant::now().checked_add(patience));
    let asked = elicit::ask(call, &open, until).await?;
    // A no is an answer, too: named, it is the reason of the refusal.
    let attempted = attempt(Some(interaction)).await;
    Ok(attempted.map_err(|error| refused(error, Some(&asked)))?)
}

/// A refusal of the command policy in the words of what the person did with the question.
fn refused(error: Error, asked: Option<&Asked>) -> Error {
    let Some(Asked::Closed(Answer::Cancelled(CancelReason::Requested { reason, .. }))) = asked
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
