//! Executions: start, list, wait, stop, signal, write input, remove.

use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse as _, Response};
use ostler_api::{
    ExecutionBody, ExecutionsBody, InputResponse, LineMatchBody, QueuedStartBody, RerunBody,
    SignalBody, StartBody, StopBody, WaitBody, WaitResponse, WaitUntil,
};
use ostler_engine::{
    CleanOutcome, ClientKind, ExecutionInfo, ListFilter, StopRequest, WaitEnd, WaitFor, WaitOutcome,
};
use ostler_journal::Pattern;
use ostler_model::status::ProcessStatus;
use ostler_model::{ErrorCode, InputId};

use super::caller::RequestCaller;
use super::extract::{ExecutionPathId, JsonBody, NoBody, PathId, RawBody};
use super::query::{LIST_CURSOR, LIST_LIMIT, QueryString, list_page};
use super::response::{RestResult, still_running_problem};
use super::services;
use super::start_request::start_request;
use super::state::RestState;
use ostler_interface::convert::{
    execution_body, prompt_body, queued_start_body, wait_end_kind, wait_error,
};
use ostler_interface::error::{ApiError, bad_pattern};
use ostler_interface::http::HttpProblem;
use ostler_interface::pagination::newest_first;
use ostler_interface::params::{Parameter, ParameterKind};

/// An additional status filter: running executions whose trees are frozen.
const PAUSED: &str = "paused";

/// The header of a removal that discarded undecided changes in an overlay.
const DISCARDED_CHANGES: HeaderName = HeaderName::from_static("ostler-discarded-changes");

const LIST: &[Parameter] = &[
    Parameter::optional(
        "status",
        ParameterKind::Choice(&[
            "running",
            "completed",
            "failed",
            "terminated",
            "error",
            PAUSED,
        ]),
        "Only those with this status; paused: those of the running ones that are frozen",
    ),
    Parameter::optional(
        "label",
        ParameterKind::List,
        "Only those with all of these labels",
    ),
    Parameter::optional("id", ParameterKind::Text, "Only those whose id begins so"),
    Parameter::optional(
        "name",
        ParameterKind::Text,
        "Only those with this in their description, or in their name as a service",
    ),
    Parameter::optional("service", ParameterKind::Flag, "Only services").with_default_flag(false),
    LIST_LIMIT,
    LIST_CURSOR,
];

const INPUT: &[Parameter] = &[
    Parameter::optional("close", ParameterKind::Flag, "End the input afterwards")
        .with_default_flag(false),
    Parameter::optional(
        "input_id",
        ParameterKind::Text,
        "A UUID of this input: sent again with the same bytes, what was accepted of it is not written twice",
    ),
];

/// `POST /api/v1/executions`: starts a command.
pub(super) async fn start(
    State(state): State<RestState>,
    RequestCaller(caller): RequestCaller,
    JsonBody(body): JsonBody<StartBody>,
) -> RestResult<(StatusCode, Json<ExecutionBody>)> {
    let (mode, restart) = (body.service, body.restart);
    let request = start_request(body);
    // What runs in a context is finite, or a terminal.
    let may_be_service = mode.is_some() && request.context.is_none();
    let service = may_be_service && state.engine.detect(&request).is_some();
    let info = if service {
        services::start_detected(&state, &caller, request, restart).await?
    } else {
        state.engine.start(&caller, request).await?
    };
    Ok((StatusCode::CREATED, Json(execution_body(&info))))
}

/// `GET /api/v1/starts/{id}`: how the start with this client-chosen id waits for its slot.
pub(super) async fn queued(
    State(state): State<RestState>,
    RequestCaller(caller): RequestCaller,
    PathId(id): PathId,
    query_string: QueryString,
) -> RestResult<Json<QueuedStartBody>> {
    let queued = id.parse().ok();
    let queued = queued.and_then(|id| state.engine.queued_start(&caller, id));
    let queued = queued.ok_or(ostler_engine::Error::NotFound)?;
    query_string.check(&[])?;
    Ok(Json(queued_start_body(queued)))
}

/// `POST /api/v1/executions/{id}/again`: starts the same command again, under a new id.
pub(super) async fn rerun(
    State(state): State<RestState>,
    RequestCaller(caller): RequestCaller,
    ExecutionPathId(id): ExecutionPathId,
    JsonBody(body): JsonBody<RerunBody>,
) -> RestResult<(StatusCode, Json<ExecutionBody>)> {
    let base_env = body.base_env;
    let mut request = state.engine.rerun_request(&caller, &id, base_env)?;
    let caller = state.engine.rerun_caller(&caller, &id)?;
    request.id = body.id;
    request.options.approval = body.approval;
    request.options.allowed = body.allowed;
    request.client_kind = if body.cli {
        ClientKind::Cli
    } else {
        ClientKind::Rest
    };
    if body.stop && !state.engine.info(&caller, &id)?.state.is_finished() {
        // If the start is refused, or denied by a person, the running execution is left alone.
        state.engine.check_start(&caller, request.clone()).await?;
        let stop = StopRequest {
            reason: Some("started again".to_owned()),
            ..StopRequest::default()
        };
        state.engine.stop(&caller, &id, stop).await?;
    }
    let info = state.engine.start(&caller, request).await?;
    Ok((StatusCode::CREATED, Json(execution_body(&info))))
}

/// The filters of a list besides status and labels.
#[derive(Debug)]
struct ExecutionFilter {
    paused: bool,
    id: Option<String>,
    name: Option<String>,
    service: bool,
}

impl ExecutionFilter {
    fn matches(&self, info: &ExecutionInfo) -> bool {
        let has_prefix = |beginning: &str| {
            let beginning = beginning.to_ascii_lowercase();
            info.id.short().starts_with(&beginning) || info.id.to_string().starts_with(&beginning)
        };
        (!self.paused || info.state.paused)
            && (!self.service || info.spec.lifetime.plan().is_some())
            && self.id.as_deref().is_none_or(has_prefix)
            && self
                .name
                .as_deref()
                .is_none_or(|it| name_contains(info, it))
    }
}

fn name_contains(info: &ExecutionInfo, name: &str) -> bool {
    let service = || execution_body(info).service;
    info.spec.description.contains(name) || service().is_some_and(|it| it.name.contains(name))
}

/// `GET /api/v1/executions`: executions, newest first.
pub(super) async fn list(
    State(state): State<RestState>,
    RequestCaller(caller): RequestCaller,
    query_string: QueryString,
) -> RestResult<Json<ExecutionsBody>> {
    let mut arguments = query_string.check(LIST)?;
    let status = arguments.text("status");
    let extra_filter = ExecutionFilter {
        paused: status.as_deref() == Some(PAUSED),
        id: arguments.text("id"),
        name: arguments.text("name"),
        service: arguments.flag("service"),
    };
    let filter = ListFilter {
        status: status
            .and_then(|word| ProcessStatus::parse(&word))
            .or(extra_filter.paused.then_some(ProcessStatus::Running)),
        labels: arguments.list("label"),
        limit: None,
    };
    let mut executions = state.engine.list(&caller, &filter);
    executions.retain(|info| extra_filter.matches(info));
    let page = list_page(&executions, newest_first, &mut arguments)?;
    let mut bodies: Vec<ExecutionBody> = page.entries.into_iter().map(execution_body).collect();
    state.add_statistics(&mut bodies).await;
    Ok(Json(ExecutionsBody {
        executions: bodies,
        total: Some(executions.len()),
        next: page.next,
    }))
}

/// `GET /api/v1/executions/{id}`: one execution.
pub(super) async fn show(
    State(state): State<RestState>,
    RequestCaller(caller): RequestCaller,
    ExecutionPathId(id): ExecutionPathId,
    query_string: QueryString,
) -> RestResult<Json<ExecutionBody>> {
    query_string.check(&[])?;
    let mut body = execution_body(&state.engine.info(&caller, &id)?);
    state.add_statistics(std::slice::from_mut(&mut body)).await;
    Ok(Json(body))
}

/// `POST /api/v1/executions/{id}/wait`: waits for an end, a line, silence, a prompt or readiness.
/// Where a service is replaced, the wait for its readiness continues with its replacement, which the
/// response describes.
pub(super) async fn wait(
    State(state): State<RestState>,
    RequestCaller(caller): RequestCaller,
    ExecutionPathId(id): ExecutionPathId,
    JsonBody(body): JsonBody<WaitBody>,
) -> RestResult<Json<WaitResponse>> {
    let timeout = body.at_most_ms.map(Duration::from_millis);
    let until_condition = parse_until(body)?;
    let waiting = state.engine.wait(&caller, &id, &until_condition, timeout);
    let outcome = state.unless_shutting_down(waiting).await??;
    Ok(Json(wait_response(outcome)))
}

fn parse_until(body: WaitBody) -> RestResult<WaitFor> {
    match (body.until, body.pattern, body.idle_ms) {
        (WaitUntil::Exit, None, None) => Ok(WaitFor::Exit),
        (WaitUntil::Idle, None, Some(millis)) => Ok(WaitFor::Idle(Duration::from_millis(millis))),
        (WaitUntil::Prompt, None, None) => Ok(WaitFor::Prompt),
        (WaitUntil::Ready, None, None) => Ok(WaitFor::Ready),
        (WaitUntil::Pattern, Some(given), None) => Pattern::new(&given)
            .map(WaitFor::Pattern)
            .map_err(|error| bad_pattern("pattern", &given, &error).into()),
        _ => Err(HttpProblem::value(
            "fields 'until', 'pattern' and 'idle_ms' do not go together; allowed: exit, prompt \
             or ready alone, pattern with 'pattern', idle with 'idle_ms'",
        )),
    }
}

fn wait_response(outcome: WaitOutcome) -> WaitResponse {
    let end_kind = wait_end_kind(&outcome.end);
    let error = wait_error(&outcome);
    let (mut detail, mut matched, mut prompt) = (None, None, None);
    match outcome.end {
        WaitEnd::NotReady(reason) => detail = Some(reason),
        WaitEnd::Prompt(found) => prompt = Some(prompt_body(found)),
        WaitEnd::Pattern(line) => {
            matched = Some(LineMatchBody {
                at: line.at,
                stream: line.stream,
                number: line.number,
                line: line.line,
            });
        }
        WaitEnd::Exit
        | WaitEnd::Ready
        | WaitEnd::Output
        | WaitEnd::Idle
        | WaitEnd::TimedOut
        | WaitEnd::Nothing => {}
    }
    WaitResponse {
        why: end_kind,
        detail,
        matched,
        prompt,
        error,
        info: execution_body(&outcome.info),
        cursor: outcome.cursor,
    }
}

/// `POST /api/v1/executions/{id}/stop`: stops an execution with its whole tree: SIGTERM, then
/// SIGKILL after a grace period.
pub(super) async fn stop(
    State(state): State<RestState>,
    RequestCaller(caller): RequestCaller,
    ExecutionPathId(id): ExecutionPathId,
    JsonBody(body): JsonBody<StopBody>,
) -> RestResult<Json<ExecutionBody>> {
    let request = StopRequest {
        force: body.force,
        grace: body.grace_ms.map(Duration::from_millis),
        reason: body.reason,
    };
    let info = state.engine.stop(&caller, &id, request).await?;
    Ok(Json(execution_body(&info)))
}

/// `POST /api/v1/executions/{id}/pause`: freezes the tree of an execution.
pub(super) async fn pause(
    State(state): State<RestState>,
    RequestCaller(caller): RequestCaller,
    ExecutionPathId(id): ExecutionPathId,
    query_string: QueryString,
    _: NoBody,
) -> RestResult<Json<ExecutionBody>> {
    query_string.check(&[])?;
    let info = state.engine.pause(&caller, &id).await?;
    Ok(Json(execution_body(&info)))
}

/// `POST /api/v1/executions/{id}/resume`: lets a frozen tree go on.
pub(super) async fn resume(
    State(state): State<RestState>,
    RequestCaller(caller): RequestCaller,
    ExecutionPathId(id): ExecutionPathId,
    query_string: QueryString,
    _: NoBody,
) -> RestResult<Json<ExecutionBody>> {
    query_string.check(&[])?;
    let info = state.engine.resume(&caller, &id).await?;
    Ok(Json(execution_body(&info)))
}

/// `POST /api/v1/executions/{id}/signal`: sends a signal to the command.
pub(super) async fn signal(
    State(state): State<RestState>,
    RequestCaller(caller): RequestCaller,
    ExecutionPathId(id): ExecutionPathId,
    JsonBody(body): JsonBody<SignalBody>,
) -> RestResult<StatusCode> {
    state.engine.signal(&caller, &id, body.signal).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// `POST /api/v1/executions/{id}/input`: writes to the input of the command.
pub(super) async fn input(
    State(state): State<RestState>,
    RequestCaller(caller): RequestCaller,
    ExecutionPathId(id): ExecutionPathId,
    query_string: QueryString,
    RawBody(bytes): RawBody,
) -> RestResult<Json<InputResponse>> {
    let mut arguments = query_string.check(INPUT)?;
    let input = arguments.text("input_id");
    let input = input.map(|text| text.parse::<InputId>());
    let input = input
        .transpose()
        .map_err(|error| ApiError::value(format!("parameter 'input_id': {error}")))?;
    let written = match input {
        _ if bytes.is_empty() => 0,
        Some(input) => {
            let write = state.engine.write_once(&caller, &id, bytes.into(), input);
            write.await?
        }
        None => state.engine.write(&caller, &id, bytes.into()).await?,
    };
    if arguments.flag("close") {
        state.engine.close_input(&caller, &id).await?;
    }
    Ok(Json(InputResponse { taken: written }))
}

/// `DELETE /api/v1/executions/{id}`: removes an execution that has ended, with its output. Where it
/// had changes in the overlay of its workspace that were neither committed nor discarded, these are
/// discarded, and the response has the header `Ostler-Discarded-Changes`.
pub(super) async fn remove(
    State(state): State<RestState>,
    RequestCaller(caller): RequestCaller,
    ExecutionPathId(id): ExecutionPathId,
    query_string: QueryString,
    _: NoBody,
) -> RestResult<Response> {
    query_string.check(&[])?;
    let discarded_changes = clean_one(&state, &caller, id).await?;
    let mut response = StatusCode::NO_CONTENT.into_response();
    if discarded_changes {
        let value = HeaderValue::from_static("true");
        response.headers_mut().insert(DISCARDED_CHANGES, value);
    }
    Ok(response)
}

/// Cleans one execution; every outcome but success is a problem. Returns whether undecided changes in
/// its overlay were discarded.
pub(super) async fn clean_one(
    state: &RestState,
    caller: &ostler_model::Caller,
    id: String,
) -> RestResult<bool> {
    let outcomes = state
        .engine
        .clean(caller, std::slice::from_ref(&id))
        .await?;
    match outcomes.into_iter().next().map(|(_, outcome)| outcome) {
        Some(CleanOutcome::Cleaned) => Ok(false),
        Some(CleanOutcome::Discarded) => Ok(true),
        Some(CleanOutcome::Running) => Err(still_running_problem(&id)),
        Some(CleanOutcome::NotFound) | None => Err(ostler_engine::Error::NotFound.into()),
        Some(CleanOutcome::Failed(reason)) => {
            Err(HttpProblem::new(ErrorCode::ProcessClean, reason, None))
        }
    }
}
