//! Services: start, ensure, up, stop, restart, diagnose; and their definitions.

use std::time::{Duration, Instant};

use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::get;
use axum::{Json, Router};
use ostler_api::{
    DetectResponse, EnsureResponse, ServiceBody, ServiceDiagnosisBody, ServiceStartBody,
    ServiceStopResponse, ServicesBody, StartBody, StopBody, UpBody, UpResponse,
};
use ostler_engine::{
    ClientKind, EnsureResult, ExecutionInfo, ServiceInfo, ServiceRequest, ServiceReuse,
    ServiceStart, StartLimits, StartRequest, StopRequest, WaitEnd, WaitFor,
};
use ostler_model::duration::as_millis;
use ostler_model::{ByteString, Caller, Command, RestartPolicy};
use tokio::task::JoinSet;

use super::caller::RequestCaller;
use super::extract::{JsonBody, NoBody, PathId};
use super::query::{LIST_CURSOR, LIST_LIMIT, QueryString, list_page};
use super::response::RestResult;
use super::start_request::start_request;
use super::state::RestState;
use ostler_interface::convert::{
    self, detected_service_body, ensure_message, ensure_response, execution_body,
    readiness_wait_body, service_body, service_body_of_execution, service_diagnosis_body,
    service_stop_response, start_failure_body,
};
use ostler_interface::http::HttpProblem;
use ostler_interface::pagination::service_position;
use ostler_interface::params::{Arguments, Parameter, ParameterKind};

const CWD_PARAM: &[Parameter] = &[Parameter::optional(
    "cwd",
    ParameterKind::Text,
    "The absolute directory from which an ostler.toml is looked for, upwards: names hold in its \
     workspace; in all of them where it is absent",
)];

const LIST: &[Parameter] = &[
    CWD_PARAM[0],
    Parameter::optional(
        "dismissed",
        ParameterKind::Flag,
        "Also those that were dismissed",
    )
    .with_default_flag(false),
    LIST_LIMIT,
    LIST_CURSOR,
];

/// `GET /api/v1/services`: services. Running and pending ones first, then those that ended and are
/// kept, and definitions.
pub(super) async fn list(
    State(state): State<RestState>,
    RequestCaller(caller): RequestCaller,
    query_string: QueryString,
) -> RestResult<Json<ServicesBody>> {
    let mut arguments = query_string.check(LIST)?;
    let cwd = cwd(&mut arguments)?;
    let services = if arguments.flag("dismissed") {
        state.engine.services_and_dismissed(&caller, cwd.as_deref())
    } else {
        state.engine.services(&caller, cwd.as_deref())
    }?;
    let page = list_page(&services, service_position, &mut arguments)?;
    let elsewhere = cwd.as_deref();
    let elsewhere = elsewhere.map(|cwd| state.engine.services_elsewhere(&caller, Some(cwd)));
    Ok(Json(ServicesBody {
        elsewhere,
        services: page.entries.into_iter().map(service_body).collect(),
        total: Some(services.len()),
        next: page.next,
    }))
}

/// The routes of services that have the name of an action: their path matches that of the action.
pub(super) fn action_name_routes() -> Router<RestState> {
    let routes_of = |name: &'static str| {
        let id = move || PathId(name.to_owned());
        get(move |state, caller, query| show(state, caller, id(), query))
            .put(move |state, caller, body| define(state, caller, id(), body))
            .delete(move |state, caller, query, body| forget(state, caller, id(), query, body))
    };
    Router::new()
        .route("/services/ensure", routes_of("ensure"))
        .route("/services/up", routes_of("up"))
}

/// `GET /api/v1/services/{name}`: one service.
pub(super) async fn show(
    State(state): State<RestState>,
    RequestCaller(caller): RequestCaller,
    PathId(name): PathId,
    query_string: QueryString,
) -> RestResult<Json<ServiceBody>> {
    let cwd = cwd(&mut query_string.check(CWD_PARAM)?)?;
    let service = state.engine.service(&caller, &name, cwd.as_deref())?;
    Ok(Json(service_body(&service)))
}

/// `GET /api/v1/services/{name}/why`: why a service is as it is.
pub(super) async fn why(
    State(state): State<RestState>,
    RequestCaller(caller): RequestCaller,
    PathId(name): PathId,
    query_string: QueryString,
) -> RestResult<Json<ServiceDiagnosisBody>> {
    let cwd = cwd(&mut query_string.check(CWD_PARAM)?)?;
    let diagnosis = state
        .engine
        .diagnose_service(&caller, &name, cwd.as_deref())
        .await?;
    Ok(Json(service_diagnosis_body(diagnosis)))
}

fn cwd(arguments: &mut Arguments) -> RestResult<Option<std::path::PathBuf>> {
    let Some(given) = arguments.text("cwd") else {
        return Ok(None);
    };
    absolute(&ByteString::from(given), "parameter 'cwd'").map(Some)
}

fn absolute(given: &ByteString, label: &str) -> RestResult<std::path::PathBuf> {
    let path = given.as_path();
    if path.is_absolute() {
        return Ok(path.to_path_buf());
    }
    let message = format!("{label} is '{given}'; allowed: an absolute directory");
    Err(HttpProblem::value(message))
}

/// `POST /api/v1/services`: starts a service; where it waits, the answer has the outcome. Where one
/// that depends on others is still pending after `wait_ms`, the status is 202, and it is started
/// later, without a further request.
pub(super) async fn start(
    State(state): State<RestState>,
    RequestCaller(caller): RequestCaller,
    JsonBody(body): JsonBody<ServiceStartBody>,
) -> RestResult<(StatusCode, Json<EnsureResponse>)> {
    let wait_ms = body.service.wait_ms;
    if !body.service.depends_on.is_empty() {
        let started = start_within(&state, &caller, body, ServiceReuse::Refuse).await?;
        return Ok(match started {
            StartOutcome::Running(response) => (StatusCode::CREATED, Json(response)),
            StartOutcome::Pending(response) => (StatusCode::ACCEPTED, Json(response)),
        });
    }
    let start_guard = state
        .engine
        .start_service(&caller, service_request(body))
        .await?;
    let info = start_guard.commit()?;
    let response = EnsureResponse {
        service: service_body_of_execution(&info),
        reused: false,
        completes: false,
        note: "started".to_owned(),
        waited: None,
        reason: None,
        shared: Vec::new(),
        message: String::new(),
    };
    let response = wait_until_ready(&state, &caller, response, RequestTime::new(wait_ms)).await?;
    Ok((StatusCode::CREATED, Json(response)))
}

/// Starts a command as a service that was recognised as one without being requested as one.
pub(super) async fn start_detected(
    state: &RestState,
    caller: &Caller,
    start: StartRequest,
    restart: Option<RestartPolicy>,
) -> RestResult<ExecutionInfo> {
    let request = ServiceRequest {
        restart: restart.unwrap_or(RestartPolicy::Never),
        automatic: true,
        ..ServiceRequest::new(StartRequest {
            lifetime: None,
            ..start
        })
    };
    let start_guard = state.engine.start_service(caller, request).await?;
    Ok(start_guard.commit()?)
}

/// `POST /api/v1/services/ensure`: the healthy service of this name, or a new one. Where it is still
/// pending after `wait_ms`, the status is 202, and it is started later, without a further request.
pub(super) async fn ensure(
    State(state): State<RestState>,
    RequestCaller(caller): RequestCaller,
    JsonBody(body): JsonBody<ServiceStartBody>,
) -> RestResult<(StatusCode, Json<EnsureResponse>)> {
    let started = start_within(&state, &caller, body, ServiceReuse::Allow).await?;
    Ok(match started {
        StartOutcome::Running(response) => (StatusCode::OK, Json(response)),
        StartOutcome::Pending(response) => (StatusCode::ACCEPTED, Json(response)),
    })
}

/// The outcome of a start within `wait_ms`.
enum StartOutcome {
    Running(EnsureResponse),
    Pending(EnsureResponse),
}

/// Starts or reuses a service, with its dependencies, and waits until it is ready, within `wait_ms`.
async fn start_within(
    state: &RestState,
    caller: &Caller,
    body: ServiceStartBody,
    reuse: ServiceReuse,
) -> RestResult<StartOutcome> {
    let time = RequestTime::new(body.service.wait_ms);
    let starting =
        state
            .engine
            .start_service_within(caller, service_request(body), reuse, time.limits());
    let ensured = match state.unless_shutting_down(starting).await?? {
        ServiceStart::Running(ensured) => ensured,
        ServiceStart::Pending(service) => {
            return Ok(StartOutcome::Pending(pending_response(&service)));
        }
    };
    let response = ensure_response(&ensured);
    let response = wait_until_ready(state, caller, response, time).await?;
    Ok(StartOutcome::Running(response))
}

/// The response about a service that the request waited no longer for.
fn pending_response(service: &ServiceInfo) -> EnsureResponse {
    let waits_for = service.pending.as_deref();
    let waits_for = waits_for.map_or_else(String::new, |it| format!(": it waits for {it}"));
    let note = format!("{}{waits_for}", service.status());
    EnsureResponse {
        service: service_body(service),
        reused: false,
        completes: false,
        message: format!("{} is {note}", service.name),
        note,
        waited: None,
        reason: None,
        shared: Vec::new(),
    }
}

/// How long a request waits.
#[derive(Debug, Clone, Copy)]
struct RequestTime {
    began: Instant,
    /// As requested; none waits as long as it takes until the programs run, and no longer.
    wait: Option<Duration>,
}

impl RequestTime {
    fn new(wait_ms: Option<u64>) -> Self {
        Self {
            began: Instant::now(),
            wait: wait_ms.map(Duration::from_millis),
        }
    }

    /// For the start.
    const fn limits(self) -> StartLimits {
        StartLimits {
            dependencies: self.wait,
            total: None,
        }
    }

    /// The rest of it, for a wait until ready.
    fn remaining(self) -> Option<Duration> {
        let wait = self.wait?;
        Some(wait.saturating_sub(self.began.elapsed()))
    }
}

/// `POST /api/v1/services/up`: starts services of an `ostler.toml` in the order of their
/// dependencies. What is still pending after `wait_ms` is started later, without a further request.
pub(super) async fn up(
    State(state): State<RestState>,
    RequestCaller(caller): RequestCaller,
    JsonBody(body): JsonBody<UpBody>,
) -> RestResult<Json<UpResponse>> {
    let cwd = absolute(&body.cwd, "field 'cwd'")?;
    let (names, time) = (body.names.clone(), RequestTime::new(body.wait_ms));
    let base_request = base_request(body);
    let limits = time.limits();
    let up = state
        .engine
        .service_up_within(&caller, &cwd, &names, &base_request, limits);
    let result = state.unless_shutting_down(up).await??;
    let failures = result
        .failures
        .into_iter()
        .map(start_failure_body)
        .collect();
    let services = wait_all_ready(&state, &caller, result.services, time).await?;
    Ok(Json(UpResponse {
        services,
        failures,
        pending: result.pending.iter().map(service_body).collect(),
    }))
}

/// The request shared by everything that is started; the command is the definition's.
fn base_request(body: UpBody) -> StartRequest {
    let nothing = Command::Argv {
        program: ByteString::default(),
        args: Vec::new(),
    };
    let mut request = StartRequest::new(nothing, body.cwd);
    request.base_env = body.base_env;
    request.options.inherit_env = body.inherit_env;
    request.options.level = body.isolation;
    request.options.allowed = body.allowed;
    request.options.approval = body.approval;
    request.client_kind = if body.cli {
        ClientKind::Cli
    } else {
        ClientKind::Rest
    };
    request
}

fn service_request(body: ServiceStartBody) -> ServiceRequest {
    let restart = body.start.restart;
    let start = StartRequest {
        lifetime: None,
        ..start_request(body.start)
    };
    convert::service_request(body.service, restart, start)
}

/// Waits for all of them at once, and answers in their order.
async fn wait_all_ready(
    state: &RestState,
    caller: &Caller,
    ensured: Vec<EnsureResult>,
    time: RequestTime,
) -> RestResult<Vec<EnsureResponse>> {
    let mut waiting = JoinSet::new();
    for (at, ensured) in ensured.iter().enumerate() {
        let (state, caller) = (state.clone(), caller.clone());
        let body = ensure_response(ensured);
        waiting.spawn(async move { (at, wait_until_ready(&state, &caller, body, time).await) });
    }
    let mut responses = waiting.join_all().await;
    responses.sort_by_key(|(at, _)| *at);
    responses.into_iter().map(|(_, body)| body).collect()
}

/// The response, after a wait if one is requested. The end of the wait changes nothing: started
/// services continue.
async fn wait_until_ready(
    state: &RestState,
    caller: &Caller,
    mut response: EnsureResponse,
    time: RequestTime,
) -> RestResult<EnsureResponse> {
    let running_id = response.service.execution.as_ref().map(|info| info.uuid);
    if let (Some(id), Some(timeout)) = (running_id, time.remaining()) {
        let id = id.to_string();
        let until = if response.completes {
            WaitFor::Exit
        } else {
            WaitFor::Ready
        };
        let wait = state.engine.wait(caller, &id, &until, Some(timeout));
        let outcome = state.unless_shutting_down(wait).await??;
        if outcome.end == WaitEnd::Exit {
            outcome.info.ensure_spawned()?;
        }
        response.service = response
            .service
            .with_execution(execution_body(&outcome.info));
        response.waited = Some(readiness_wait_body(&outcome.end));
        let cwd = outcome.info.spec.cwd.as_path();
        // It may be the one that replaced the awaited one.
        let id = outcome.info.id.to_string();
        if let Ok(why) = state.engine.diagnose_service(caller, &id, Some(cwd)).await {
            response.explain(service_diagnosis_body(why));
        }
    }
    response.message = ensure_message(&response, time.wait.map_or(0, as_millis));
    Ok(response)
}

/// `POST /api/v1/services/{name}/stop`: stops a service; it is done when its tree is empty and its
/// ports are free.
pub(super) async fn stop(
    State(state): State<RestState>,
    RequestCaller(caller): RequestCaller,
    PathId(name): PathId,
    query_string: QueryString,
    JsonBody(body): JsonBody<StopBody>,
) -> RestResult<Json<ServiceStopResponse>> {
    let cwd = cwd(&mut query_string.check(CWD_PARAM)?)?;
    let request = StopRequest {
        force: body.force,
        grace: body.grace_ms.map(Duration::from_millis),
        reason: body.reason,
    };
    let stopped = state
        .engine
        .stop_service(&caller, &name, cwd.as_deref(), request)
        .await?;
    Ok(Json(service_stop_response(stopped)))
}

/// `POST /api/v1/services/{name}/dismiss`: hides an ended one from lists.
pub(super) async fn dismiss(
    State(state): State<RestState>,
    RequestCaller(caller): RequestCaller,
    PathId(name): PathId,
    query_string: QueryString,
    _: NoBody,
) -> RestResult<Json<ServiceBody>> {
    let cwd = cwd(&mut query_string.check(CWD_PARAM)?)?;
    let dismissed = state
        .engine
        .dismiss_service(&caller, &name, cwd.as_deref())?;
    Ok(Json(service_body(&dismissed)))
}

/// `POST /api/v1/services/{name}/restart`: starts a service again with its definition.
pub(super) async fn restart(
    State(state): State<RestState>,
    RequestCaller(caller): RequestCaller,
    PathId(name): PathId,
    query_string: QueryString,
    _: NoBody,
) -> RestResult<Json<ServiceBody>> {
    let cwd = cwd(&mut query_string.check(CWD_PARAM)?)?;
    let restarted = state.engine.restart_service(&caller, &name, cwd.as_deref());
    let service = restarted.await?;
    Ok(Json(service_body(&service)))
}

/// `PUT /api/v1/services/{name}`: stores a definition; nothing is started.
pub(super) async fn define(
    State(state): State<RestState>,
    RequestCaller(caller): RequestCaller,
    PathId(name): PathId,
    JsonBody(mut body): JsonBody<ServiceStartBody>,
) -> RestResult<StatusCode> {
    match &body.service.name {
        Some(given) if *given != name => {
            return Err(HttpProblem::value(format!(
                "field 'name' is '{given}', and the path says '{name}'"
            )));
        }
        Some(_) | None => body.service.name = Some(name),
    }
    state
        .engine
        .define_service(&caller, &service_request(body))?;
    Ok(StatusCode::NO_CONTENT)
}

/// `DELETE /api/v1/services/{name}`: deletes a definition; what runs continues.
pub(super) async fn forget(
    State(state): State<RestState>,
    RequestCaller(caller): RequestCaller,
    PathId(name): PathId,
    query_string: QueryString,
    _: NoBody,
) -> RestResult<StatusCode> {
    query_string.check(&[])?;
    state.engine.forget_service(&caller, &name)?;
    Ok(StatusCode::NO_CONTENT)
}

/// `POST /api/v1/detect`: the service that a command would be; nothing is started.
pub(super) async fn detect(
    State(state): State<RestState>,
    RequestCaller(caller): RequestCaller,
    JsonBody(body): JsonBody<StartBody>,
) -> RestResult<Json<DetectResponse>> {
    let request = start_request(body);
    absolute(&request.cwd, "field 'cwd'")?;
    state
        .engine
        .check_directory(&caller, request.cwd.as_path())?;
    let detected = state.engine.detect(&request);
    Ok(Json(DetectResponse {
        service: detected.map(detected_service_body),
    }))
}
