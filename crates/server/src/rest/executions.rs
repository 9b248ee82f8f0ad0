//! Executions: start, list, wait, stop, signal, feed, remove.

use std::time::Duration;

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use ostler_engine::{
    CleanOutcome, Face, Info, ListFilter, RetentionRequest, StartRequest, StdinRequest,
    StopRequest, WaitEnd, WaitFor, Waited,
};
use ostler_journal::Pattern;
use ostler_model::status::ProcessStatus;
use ostler_model::{ErrorCode, Lifetime};

use super::answer::{Answer, still_running};
use super::caller::Asking;
use super::extract::{Body, Execution, Octets};
use super::query::{Asked, LIST_CURSOR, LIST_LIMIT, window};
use super::services;
use super::state::RestState;
use crate::error::bad_pattern;
use crate::params::{Kind, Parameter};
use crate::window::newest_first;
use crate::wire::{
    AgainBody, InfoBody, ListBody, MatchedBody, Problem, PromptBody, QueuedStartBody,
    RetentionBody, SignalBody, StartBody, StdinBody, StopBody, TakenBody, Until, WaitBody,
    WaitedBody, Why,
};

/// What is asked for besides the statuses: the running ones whose trees are frozen.
const PAUSED: &str = "paused";

const LIST: &[Parameter] = &[
    Parameter::optional(
        "status",
        Kind::Choice(&[
            "running",
            "completed",
            "failed",
            "terminated",
            "error",
            PAUSED,
        ]),
        "Only those with this status; paused: those of the running ones that are frozen",
    ),
    Parameter::optional("label", Kind::List, "Only those with all of these labels"),
    Parameter::optional("id", Kind::Text, "Only those whose id begins so"),
    Parameter::optional(
        "name",
        Kind::Text,
        "Only those with this in their description, or in their name as a service",
    ),
    Parameter::optional("service", Kind::Flag, "Only services").or_flag(false),
    LIST_LIMIT,
    LIST_CURSOR,
];

const INPUT: &[Parameter] =
    &[Parameter::optional("close", Kind::Flag, "End the input afterwards").or_flag(false)];

/// `POST /api/v1/executions`.
pub(super) async fn start(
    State(state): State<RestState>,
    Asking(caller): Asking,
    Body(body): Body<StartBody>,
) -> Answer<(StatusCode, Json<InfoBody>)> {
    let (mode, restart) = (body.service, body.restart);
    let request = request(body);
    let service = mode.is_some() && state.engine.detect(&request).is_some();
    let info = if service {
        services::start_detected(&state, &caller, (request, restart)).await?
    } else {
        state.engine.start(&caller, request).await?
    };
    Ok((StatusCode::CREATED, Json(InfoBody::from(&info))))
}

/// `GET /api/v1/starts/{id}`: how the start that its client gave this id waits for a place.
pub(super) async fn queued(
    State(state): State<RestState>,
    Asking(caller): Asking,
    Path(id): Path<String>,
    asked: Asked,
) -> Answer<Json<QueuedStartBody>> {
    let queued = id.parse().ok();
    let queued = queued.and_then(|id| state.engine.queued_start(&caller, id));
    let queued = queued.ok_or(ostler_engine::Error::NotFound)?;
    asked.check(&[])?;
    Ok(Json(queued.into()))
}

/// `POST /api/v1/executions/{id}/again`: starts the same command once more, under an id of its
/// own.
pub(super) async fn again(
    State(state): State<RestState>,
    Asking(caller): Asking,
    Execution(id): Execution,
    Body(body): Body<AgainBody>,
) -> Answer<(StatusCode, Json<InfoBody>)> {
    let front = body.base_env;
    let mut request = state.engine.request_again(&caller, &id, front)?;
    request.id = body.id;
    request.approval = body.approval;
    request.allowed = body.allowed;
    request.face = if body.cli { Face::Cli } else { Face::Rest };
    if body.stop && !state.engine.info(&caller, &id)?.state.is_finished() {
        // What is refused, or denied by a person, goes on.
        state.engine.check_start(&caller, request.clone()).await?;
        let stop = StopRequest {
            reason: Some("started again".to_owned()),
            ..StopRequest::default()
        };
        state.engine.stop(&caller, &id, stop).await?;
    }
    let info = state.engine.start(&caller, request).await?;
    Ok((StatusCode::CREATED, Json(InfoBody::from(&info))))
}

/// A start, as the engine is asked.
pub(super) fn request(body: StartBody) -> StartRequest {
    let mut request = StartRequest::new(body.command, body.cwd);
    request.id = body.id;
    request.stdin = match body.stdin {
        StdinBody::Default => StdinRequest::Default,
        StdinBody::Empty => StdinRequest::Empty,
        StdinBody::Given(bytes) => StdinRequest::Given(bytes.into_bytes()),
        StdinBody::Open => StdinRequest::Open,
    };
    request.retention = retention(body.retention);
    request.base_env = body.base_env;
    request.set_env = body.env;
    request.inherit_env = body.inherit_env;
    request.timeout = body.timeout_ms.map(Duration::from_millis);
    request.idle = body.idle_ms.map(Duration::from_millis);
    request.level = body.isolation;
    request.limits = body.limits;
    request.confine = body.confine.into_request();
    request.secrets = body.secrets;
    request.approval = body.approval;
    request.wait_for_place = body.place_wait_ms.map(Duration::from_millis);
    request.labels = body.labels;
    request.description = body.description;
    request.encoding = body.encoding;
    request.keep = body.keep;
    request.lifetime = body.restart.map(Lifetime::service);
    request.pty = body.pty;
    request.allowed = body.allowed;
    request.lossless_reader = body.lossless_reader;
    request.face = if body.cli { Face::Cli } else { Face::Rest };
    request
}

/// How long it is kept, as the engine is asked.
pub(super) const fn retention(body: RetentionBody) -> RetentionRequest {
    match body {
        RetentionBody::Default => RetentionRequest::Default,
        RetentionBody::ForMs(millis) => RetentionRequest::For(Duration::from_millis(millis)),
        RetentionBody::Forever => RetentionRequest::Forever,
    }
}

/// What a list is asked for besides status and labels.
#[derive(Debug)]
struct Choice {
    paused: bool,
    id: Option<String>,
    name: Option<String>,
    service: bool,
}

impl Choice {
    fn takes(&self, info: &Info) -> bool {
        let begins = |beginning: &str| {
            let beginning = beginning.to_ascii_lowercase();
            info.id.short().starts_with(&beginning) || info.id.to_string().starts_with(&beginning)
        };
        (!self.paused || info.state.paused)
            && (!self.service || info.spec.lifetime.plan().is_some())
            && self.id.as_deref().is_none_or(begins)
            && self.name.as_deref().is_none_or(|it| is_called(info, it))
    }
}

fn is_called(info: &Info, name: &str) -> bool {
    let service = || InfoBody::from(info).service;
    info.spec.description.contains(name) || service().is_some_and(|it| it.name.contains(name))
}

/// `GET /api/v1/executions`.
pub(super) async fn list(
    State(state): State<RestState>,
    Asking(caller): Asking,
    asked: Asked,
) -> Answer<Json<ListBody>> {
    let mut arguments = asked.check(LIST)?;
    let status = arguments.text("status");
    let choice = Choice {
        paused: status.as_deref() == Some(PAUSED),
        id: arguments.text("id"),
        name: arguments.text("name"),
        service: arguments.flag("service"),
    };
    let filter = ListFilter {
        status: status
            .and_then(|word| ProcessStatus::parse(&word))
            .or(choice.paused.then_some(ProcessStatus::Running)),
        labels: arguments.list("label"),
        limit: None,
    };
    let mut found = state.engine.list(&caller, &filter);
    found.retain(|info| choice.takes(info));
    let page = window(&found, newest_first, &mut arguments)?;
    Ok(Json(ListBody {
        executions: page.entries.into_iter().map(InfoBody::from).collect(),
        total: Some(found.len()),
        next: page.next,
    }))
}

/// `GET /api/v1/executions/{id}`.
pub(super) async fn show(
    State(state): State<RestState>,
    Asking(caller): Asking,
    Execution(id): Execution,
    asked: Asked,
) -> Answer<Json<InfoBody>> {
    asked.check(&[])?;
    let info = state.engine.info(&caller, &id)?;
    Ok(Json(InfoBody::from(&info)))
}

/// `POST /api/v1/executions/{id}/wait`.
pub(super) async fn wait(
    State(state): State<RestState>,
    Asking(caller): Asking,
    Execution(id): Execution,
    Body(body): Body<WaitBody>,
) -> Answer<Json<WaitedBody>> {
    let at_most = body.at_most_ms.map(Duration::from_millis);
    let until = until(body)?;
    let wait = state.engine.wait(&caller, &id, &until, at_most);
    let waited = state.unless_leaving(wait).await??;
    Ok(Json(waited_body(waited)))
}

fn until(body: WaitBody) -> Answer<WaitFor> {
    match (body.until, body.pattern, body.idle_ms) {
        (Until::Exit, None, None) => Ok(WaitFor::Exit),
        (Until::Idle, None, Some(millis)) => Ok(WaitFor::Idle(Duration::from_millis(millis))),
        (Until::Prompt, None, None) => Ok(WaitFor::Prompt),
        (Until::Ready, None, None) => Ok(WaitFor::Ready),
        (Until::Pattern, Some(given), None) => Pattern::new(&given)
            .map(WaitFor::Pattern)
            .map_err(|error| bad_pattern("pattern", &given, &error).into()),
        _ => Err(Problem::value(
            "fields 'until', 'pattern' and 'idle_ms' do not go together; allowed: exit, prompt \
             or ready alone, pattern with 'pattern', idle with 'idle_ms'",
        )),
    }
}

fn waited_body(waited: Waited) -> WaitedBody {
    let why = Why::from(&waited.why);
    let (mut detail, mut matched, mut prompt) = (None, None, None);
    match waited.why {
        WaitEnd::NotReady(seen) => detail = Some(seen),
        WaitEnd::Prompt(asked) => prompt = Some(PromptBody::from(asked)),
        WaitEnd::Pattern(found) => {
            matched = Some(MatchedBody {
                at: found.at,
                stream: found.stream,
                number: found.number,
                line: found.line,
            });
        }
        WaitEnd::Exit
        | WaitEnd::Ready
        | WaitEnd::Output
        | WaitEnd::Idle
        | WaitEnd::AtMost
        | WaitEnd::Nothing => {}
    }
    WaitedBody {
        why,
        detail,
        matched,
        prompt,
        info: InfoBody::from(&waited.info),
        cursor: waited.cursor,
    }
}

/// `POST /api/v1/executions/{id}/stop`.
pub(super) async fn stop(
    State(state): State<RestState>,
    Asking(caller): Asking,
    Execution(id): Execution,
    Body(body): Body<StopBody>,
) -> Answer<Json<InfoBody>> {
    let request = StopRequest {
        force: body.force,
        grace: body.grace_ms.map(Duration::from_millis),
        reason: body.reason,
    };
    let info = state.engine.stop(&caller, &id, request).await?;
    Ok(Json(InfoBody::from(&info)))
}

/// `POST /api/v1/executions/{id}/pause`.
pub(super) async fn pause(
    State(state): State<RestState>,
    Asking(caller): Asking,
    Execution(id): Execution,
    asked: Asked,
) -> Answer<Json<InfoBody>> {
    asked.check(&[])?;
    let info = state.engine.pause(&caller, &id).await?;
    Ok(Json(InfoBody::from(&info)))
}

/// `POST /api/v1/executions/{id}/resume`.
pub(super) async fn resume(
    State(state): State<RestState>,
    Asking(caller): Asking,
    Execution(id): Execution,
    asked: Asked,
) -> Answer<Json<InfoBody>> {
    asked.check(&[])?;
    let info = state.engine.resume(&caller, &id).await?;
    Ok(Json(InfoBody::from(&info)))
}

/// `POST /api/v1/executions/{id}/signal`.
pub(super) async fn signal(
    State(state): State<RestState>,
    Asking(caller): Asking,
    Execution(id): Execution,
    Body(body): Body<SignalBody>,
) -> Answer<StatusCode> {
    state.engine.signal(&caller, &id, body.signal).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// `POST /api/v1/executions/{id}/input`.
pub(super) async fn input(
    State(state): State<RestState>,
    Asking(caller): Asking,
    Execution(id): Execution,
    asked: Asked,
    Octets(bytes): Octets,
) -> Answer<Json<TakenBody>> {
    let arguments = asked.check(INPUT)?;
    let taken = match bytes.is_empty() {
        true => 0,
        false => state.engine.write(&caller, &id, bytes.into()).await?,
    };
    if arguments.flag("close") {
        state.engine.close_input(&caller, &id).await?;
    }
    Ok(Json(TakenBody { taken }))
}

/// `DELETE /api/v1/executions/{id}`.
pub(super) async fn remove(
    State(state): State<RestState>,
    Asking(caller): Asking,
    Execution(id): Execution,
    asked: Asked,
) -> Answer<StatusCode> {
    asked.check(&[])?;
    clean_one(&state, &caller, id).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Cleans one execution; everything but success is a problem.
pub(super) async fn clean_one(
    state: &RestState,
    caller: &ostler_model::Caller,
    id: String,
) -> Answer<()> {
    let outcomes = state
        .engine
        .clean(caller, std::slice::from_ref(&id))
        .await?;
    match outcomes.into_iter().next().map(|(_, outcome)| outcome) {
        Some(CleanOutcome::Cleaned | CleanOutcome::Discarded) => Ok(()),
        Some(CleanOutcome::Running) => Err(still_running(&id)),
        Some(CleanOutcome::NotFound) | None => Err(ostler_engine::Error::NotFound.into()),
        Some(CleanOutcome::Failed(reason)) => {
            Err(Problem::new(ErrorCode::ProcessClean, reason, None))
        }
    }
}
