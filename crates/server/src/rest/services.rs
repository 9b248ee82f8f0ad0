//! Services: start, ensure, up, stop, restart, why; what is defined (E5–E8).

use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use ostler_engine::{
    Ensured, Face, Info, ServiceRequest, StartRequest, StopRequest, WaitEnd, WaitFor,
};
use ostler_model::{Caller, Command, Restart, Text};
use tokio::task::JoinSet;

use super::answer::Answer;
use super::caller::Asking;
use super::executions;
use super::extract::{Body, Id};
use super::query::{Asked, LIST_CURSOR, LIST_LIMIT, window};
use super::state::RestState;
use crate::params::{Arguments, Kind, Parameter};
use crate::window::service_position;
use crate::wire::{
    DetectBody, DetectedBody, EnsuredBody, InfoBody, Problem, ReadyBody, ServiceBody,
    ServiceStartBody, ServiceStoppedBody, ServicesBody, StartBody, StopBody, UpBody, UppedBody,
    WhyBody,
};

const WHERE: &[Parameter] = &[Parameter::optional(
    "cwd",
    Kind::Text,
    "The absolute directory from which an ostler.toml is looked for, upwards: names hold in its \
     workspace; in all of them where it is absent",
)];

const LIST: &[Parameter] = &[
    WHERE[0],
    Parameter::optional("dismissed", Kind::Flag, "Also those that were dismissed").or_flag(false),
    LIST_LIMIT,
    LIST_CURSOR,
];

/// `GET /api/v1/services`: what lives or waits to; then what ended and is kept, and what is
/// defined.
pub(super) async fn list(
    State(state): State<RestState>,
    Asking(caller): Asking,
    asked: Asked,
) -> Answer<Json<ServicesBody>> {
    let mut arguments = asked.check(LIST)?;
    let cwd = cwd(&mut arguments)?;
    let found = if arguments.flag("dismissed") {
        state.engine.services_and_dismissed(&caller, cwd.as_deref())
    } else {
        state.engine.services(&caller, cwd.as_deref())
    }?;
    let page = window(&found, service_position, &mut arguments)?;
    let elsewhere = cwd.as_deref();
    let elsewhere = elsewhere.map(|cwd| state.engine.services_elsewhere(&caller, Some(cwd)));
    Ok(Json(ServicesBody {
        elsewhere,
        services: page.entries.into_iter().map(ServiceBody::from).collect(),
        total: Some(found.len()),
        next: page.next,
    }))
}

/// `GET /api/v1/services/{name}`.
pub(super) async fn show(
    State(state): State<RestState>,
    Asking(caller): Asking,
    Id(name): Id,
    asked: Asked,
) -> Answer<Json<ServiceBody>> {
    let cwd = cwd(&mut asked.check(WHERE)?)?;
    let service = state.engine.service(&caller, &name, cwd.as_deref())?;
    Ok(Json(ServiceBody::from(&service)))
}

/// `GET /api/v1/services/{name}/why`.
pub(super) async fn why(
    State(state): State<RestState>,
    Asking(caller): Asking,
    Id(name): Id,
    asked: Asked,
) -> Answer<Json<WhyBody>> {
    let cwd = cwd(&mut asked.check(WHERE)?)?;
    let why = state.engine.why(&caller, &name, cwd.as_deref()).await?;
    Ok(Json(WhyBody::from(why)))
}

fn cwd(arguments: &mut Arguments) -> Answer<Option<std::path::PathBuf>> {
    let Some(given) = arguments.text("cwd") else {
        return Ok(None);
    };
    absolute(&Text::from(given), "parameter 'cwd'").map(Some)
}

fn absolute(given: &Text, what: &str) -> Answer<std::path::PathBuf> {
    let path = given.as_path();
    if path.is_absolute() {
        return Ok(path.to_path_buf());
    }
    let message = format!("{what} is '{given}'; allowed: an absolute directory");
    Err(Problem::value(message))
}

/// `POST /api/v1/services`.
pub(super) async fn start(
    State(state): State<RestState>,
    Asking(caller): Asking,
    Body(body): Body<ServiceStartBody>,
) -> Answer<(StatusCode, Json<EnsuredBody>)> {
    let wait = body.service.wait_ms;
    let begun = state.engine.start_service(&caller, asked(body)).await?;
    let info = begun.keep();
    let body = EnsuredBody {
        service: ServiceBody::from(&info),
        reused: false,
        completes: false,
        note: "started".to_owned(),
        waited: None,
        reason: None,
        shared: Vec::new(),
        message: String::new(),
    };
    let body = settled(&state, &caller, body, wait).await?;
    Ok((StatusCode::CREATED, Json(body)))
}

/// A start whose command is a service without having been asked to be one (E4): it is started
/// as such.
pub(super) async fn start_detected(
    state: &RestState,
    caller: &Caller,
    (start, restart): (StartRequest, Option<Restart>),
) -> Answer<Info> {
    let request = ServiceRequest {
        restart: restart.unwrap_or(Restart::Never),
        automatic: true,
        ..ServiceRequest::new(StartRequest {
            lifetime: None,
            ..start
        })
    };
    let begun = state.engine.start_service(caller, request).await?;
    Ok(begun.keep())
}

/// `POST /api/v1/services/ensure`.
pub(super) async fn ensure(
    State(state): State<RestState>,
    Asking(caller): Asking,
    Body(body): Body<ServiceStartBody>,
) -> Answer<Json<EnsuredBody>> {
    let wait = body.service.wait_ms;
    let ensured = state.engine.ensure_service(&caller, asked(body)).await?;
    let body = settled(&state, &caller, EnsuredBody::from(&ensured), wait).await?;
    Ok(Json(body))
}

/// `POST /api/v1/services/up`.
pub(super) async fn up(
    State(state): State<RestState>,
    Asking(caller): Asking,
    Body(body): Body<UpBody>,
) -> Answer<Json<UppedBody>> {
    let cwd = absolute(&body.cwd, "field 'cwd'")?;
    let (names, wait) = (body.names.clone(), body.wait_ms);
    let base = base(body);
    let up = state.engine.service_up(&caller, &cwd, &names, &base);
    let ensured = state.unless_leaving(up).await??;
    let services = all_settled(&state, &caller, ensured, wait).await?;
    Ok(Json(UppedBody { services }))
}

/// What everything that is started has in common; the command is the definition's.
fn base(body: UpBody) -> StartRequest {
    let nothing = Command::Argv {
        program: Text::default(),
        args: Vec::new(),
    };
    let mut base = StartRequest::new(nothing, body.cwd);
    base.base_env = body.base_env;
    base.inherit_env = body.inherit_env;
    base.level = body.isolation;
    base.allowed = body.allowed;
    base.approval = body.approval;
    base.face = if body.cli { Face::Cli } else { Face::Rest };
    base
}

fn asked(body: ServiceStartBody) -> ServiceRequest {
    let restart = body.start.restart;
    let start = StartRequest {
        lifetime: None,
        ..executions::request(body.start)
    };
    ServiceStartBody::request(body.service, restart, start)
}

/// Waits for all of them at once, and answers in their order.
async fn all_settled(
    state: &RestState,
    caller: &Caller,
    ensured: Vec<Ensured>,
    wait: Option<u64>,
) -> Answer<Vec<EnsuredBody>> {
    let mut waits = JoinSet::new();
    for (at, ensured) in ensured.iter().enumerate() {
        let (state, caller) = (state.clone(), caller.clone());
        let body = EnsuredBody::from(ensured);
        waits.spawn(async move { (at, settled(&state, &caller, body, wait).await) });
    }
    let mut settled = waits.join_all().await;
    settled.sort_by_key(|(at, _)| *at);
    settled.into_iter().map(|(_, body)| body).collect()
}

/// The answer, after a wait where one is asked for. The wait's end changes nothing: what was
/// started goes on.
async fn settled(
    state: &RestState,
    caller: &Caller,
    mut body: EnsuredBody,
    wait: Option<u64>,
) -> Answer<EnsuredBody> {
    let living = body.service.execution.as_ref().map(|info| info.uuid);
    if let (Some(id), Some(millis)) = (living, wait) {
        let at_most = Some(Duration::from_millis(millis));
        let id = id.to_string();
        let until = if body.completes {
            WaitFor::Exit
        } else {
            WaitFor::Ready
        };
        let wait = state.engine.wait(caller, &id, &until, at_most);
        let waited = state.unless_leaving(wait).await??;
        if waited.why == WaitEnd::Exit {
            waited.info.born()?;
        }
        body.service = body.service.with_execution(InfoBody::from(&waited.info));
        body.waited = Some(ReadyBody::from(&waited.why));
        let cwd = waited.info.spec.cwd.as_path();
        if let Ok(why) = state.engine.why(caller, &id, Some(cwd)).await {
            body.explained(WhyBody::from(why));
        }
    }
    body.message = body.told(wait.unwrap_or_default());
    Ok(body)
}

/// `POST /api/v1/services/{name}/stop`.
pub(super) async fn stop(
    State(state): State<RestState>,
    Asking(caller): Asking,
    Id(name): Id,
    asked: Asked,
    Body(body): Body<StopBody>,
) -> Answer<Json<ServiceStoppedBody>> {
    let cwd = cwd(&mut asked.check(WHERE)?)?;
    let request = StopRequest {
        force: body.force,
        grace: body.grace_ms.map(Duration::from_millis),
        reason: body.reason,
    };
    let named = (name.as_str(), cwd.as_deref());
    let stopped = state.engine.stop_service(&caller, named, request).await?;
    Ok(Json(ServiceStoppedBody::from(stopped)))
}

/// `POST /api/v1/services/{name}/dismiss`: an ended one is left out of lists.
pub(super) async fn dismiss(
    State(state): State<RestState>,
    Asking(caller): Asking,
    Id(name): Id,
    asked: Asked,
) -> Answer<Json<ServiceBody>> {
    let cwd = cwd(&mut asked.check(WHERE)?)?;
    let dismissed = state
        .engine
        .dismiss_service(&caller, &name, cwd.as_deref())?;
    Ok(Json(ServiceBody::from(&dismissed)))
}

/// `POST /api/v1/services/{name}/restart`.
pub(super) async fn restart(
    State(state): State<RestState>,
    Asking(caller): Asking,
    Id(name): Id,
    asked: Asked,
) -> Answer<Json<ServiceBody>> {
    let cwd = cwd(&mut asked.check(WHERE)?)?;
    let again = state.engine.restart_service(&caller, &name, cwd.as_deref());
    let service = again.await?;
    Ok(Json(ServiceBody::from(&service)))
}

/// `PUT /api/v1/services/{name}`: keeps a definition; nothing is started.
pub(super) async fn define(
    State(state): State<RestState>,
    Asking(caller): Asking,
    Id(name): Id,
    Body(mut body): Body<ServiceStartBody>,
) -> Answer<StatusCode> {
    match &body.service.name {
        Some(given) if *given != name => {
            return Err(Problem::value(format!(
                "field 'name' is '{given}', and the path says '{name}'"
            )));
        }
        Some(_) | None => body.service.name = Some(name),
    }
    state.engine.define_service(&caller, &asked(body))?;
    Ok(StatusCode::NO_CONTENT)
}

/// `DELETE /api/v1/services/{name}`: forgets a definition; what runs goes on.
pub(super) async fn forget(
    State(state): State<RestState>,
    Asking(caller): Asking,
    Id(name): Id,
    asked: Asked,
) -> Answer<StatusCode> {
    asked.check(&[])?;
    state.engine.forget_service(&caller, &name)?;
    Ok(StatusCode::NO_CONTENT)
}

/// `POST /api/v1/detect`: which service a command is; nothing is started.
pub(super) async fn detect(
    State(state): State<RestState>,
    _asking: Asking,
    Body(body): Body<StartBody>,
) -> Answer<Json<DetectBody>> {
    let request = executions::request(body);
    absolute(&request.cwd, "field 'cwd'")?;
    let found = state.engine.detect(&request);
    Ok(Json(DetectBody {
        service: found.map(DetectedBody::from),
    }))
}
