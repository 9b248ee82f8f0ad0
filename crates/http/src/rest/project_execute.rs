//! The start of a task: a program, or a command template.

use std::time::Duration;

use axum::Json;
use axum::extract::{MatchedPath, State};
use axum::http::{Method, StatusCode};
use ostler_api::{ContextChoice, ExecuteBody, ShellStartBody, TaskStartedBody};
use ostler_engine::{ClientKind, ContextInfo, ContextRequest, RefusedRequest, StartRequest};
use ostler_interface::error::ApiError;
use ostler_interface::http::HttpProblem;
use ostler_interface::project_access::ProjectAccess;
use ostler_interface::templates::{find_template, parameter_values, template_command};
use ostler_model::{ByteString, Caller, Command, ContextId};

use super::caller::{RequestAccess, RequestCaller};
use super::extract::{JsonBody, PathId};
use super::refusal::record_refusal;
use super::response::RestResult;
use super::state::RestState;

/// `POST /api/v1/projects/{id}/execute`: starts a command or a template for a project; answers with
/// the id of the task. A token needs the scope `project:write` for a command or a context, and for a
/// template the scopes that it requires.
pub(super) async fn execute(
    State(state): State<RestState>,
    RequestCaller(caller): RequestCaller,
    RequestAccess(access): RequestAccess,
    PathId(project): PathId,
    route: MatchedPath,
    JsonBody(mut body): JsonBody<ExecuteBody>,
) -> RestResult<(StatusCode, Json<TaskStartedBody>)> {
    let (asking, refused) = (caller.clone(), refused_request(&route, &project, &body));
    // What the engine refuses it records itself: the context of a project, and the start.
    let refuse = |problem: HttpProblem| {
        record_refusal(&state.engine, &asking, refused.clone(), &problem);
        problem
    };
    let mut caller = permitted_caller(&state, &access, caller, &project, &body).map_err(refuse)?;
    let context = match body.context.take() {
        None | Some(ContextChoice::OfProject(false)) => None,
        Some(ContextChoice::OfProject(true)) => {
            let request = ContextRequest::new(project.as_str());
            let (context, _is_new) = state.engine.open_context(&caller, request).await?;
            Some(context)
        }
        Some(ContextChoice::Id(id)) => {
            Some(context_of_project(&state, &caller, &project, &id).map_err(refuse)?)
        }
    };
    if let Some(context) = &context {
        body.cwd.get_or_insert_with(|| context.directory.clone());
    }
    caller.owner.project = Some(project.clone());
    let requested = start_request(&state, &caller, &access, &project, body).await;
    let mut request = requested.map_err(refuse)?;
    request.client_kind = ClientKind::Rest;
    request.context = context.map(|context| context.id);
    request.is_task = true;
    let info = state.engine.start(&caller, request).await?;
    let task_id = info.id.to_string();
    // What precedes the route is the prefix that everything is served under.
    let prefix = route.as_str().rsplit_once("/projects/");
    let prefix = prefix.map_or("/api/v1", |(prefix, _)| prefix);
    let events_url = format!("{prefix}/tasks/{task_id}/events");
    let body = TaskStartedBody {
        task_id,
        events_url,
    };
    Ok((StatusCode::ACCEPTED, Json(body)))
}

/// What the audit log says of the request where it is refused.
fn refused_request(route: &MatchedPath, project: &str, body: &ExecuteBody) -> RefusedRequest {
    let command = body.command.clone().map(|program| Command::Argv {
        program,
        args: body.args.clone(),
    });
    RefusedRequest {
        client_kind: Some(ClientKind::Rest),
        command,
        cwd: body.cwd.clone().or_else(|| directory_of(project)),
        template: body.template_id.clone(),
        project: Some(project.to_owned()),
        ..RefusedRequest::new(format!("{} {}", Method::POST, route.as_str()))
    }
}

/// The caller with what the request reaches, where it may start this in the project.
fn permitted_caller(
    state: &RestState,
    access: &ProjectAccess,
    mut caller: Caller,
    project: &str,
    body: &ExecuteBody,
) -> RestResult<Caller> {
    let written = match (&body.template_id, &body.context) {
        (None, _) => Some("a start without a template"),
        (Some(_), Some(_)) => Some("field 'context'"),
        (Some(_), None) => None,
    };
    if let Some(what) = written {
        access.check_write(what)?;
        caller = access.writer(caller);
    }
    state.engine.check_project(&caller, project)?;
    Ok(caller)
}

/// The context that a task is to run in; it must be one of the project.
fn context_of_project(
    state: &RestState,
    caller: &Caller,
    project: &str,
    id: &ContextId,
) -> RestResult<ContextInfo> {
    let context = state.engine.context(caller, id.as_str())?;
    if context.project == project {
        return Ok(context);
    }
    Err(HttpProblem::value(format!(
        "field 'context': {id} belongs to project '{}', not to '{project}'",
        context.project
    )))
}

async fn start_request(
    state: &RestState,
    caller: &Caller,
    access: &ProjectAccess,
    project: &str,
    mut body: ExecuteBody,
) -> RestResult<StartRequest> {
    let cwd = body.cwd.take().or_else(|| directory_of(project));
    let cwd = cwd.ok_or_else(|| {
        let message = format!(
            "field 'cwd' is missing: project '{project}' is no absolute path of a directory"
        );
        HttpProblem::value(message)
    })?;
    let (timeout, interactive) = (body.timeout, body.interactive);
    let mut request = match body.template_id.take() {
        Some(id) => from_template(state, caller, access, &id, cwd, body).await?,
        None => StartRequest::new(program(body)?, cwd),
    };
    request.options.timeout = Some(Duration::from_secs(timeout));
    request.options.pty = interactive.then_some(ShellStartBody::SIZE);
    Ok(request)
}

/// The directory that a project is, where its name is one.
fn directory_of(project: &str) -> Option<ByteString> {
    project.starts_with('/').then(|| ByteString::from(project))
}

fn program(body: ExecuteBody) -> RestResult<Command> {
    if !body.parameters.is_empty() {
        let message = "field 'parameters' does not go without 'template_id'";
        return Err(HttpProblem::value(message));
    }
    let program = body.command.ok_or_else(|| {
        HttpProblem::value("field 'command' is missing; allowed: a program, or 'template_id'")
    })?;
    Ok(Command::Argv {
        program,
        args: body.args,
    })
}

/// A start from a template. `command` may name the program of the template, and no other.
async fn from_template(
    state: &RestState,
    caller: &Caller,
    access: &ProjectAccess,
    id: &str,
    cwd: ByteString,
    body: ExecuteBody,
) -> RestResult<StartRequest> {
    let values = parameter_values(body.parameters)?;
    if !access.may_write(caller.owner.project.as_deref()) {
        state.engine.check_directory(caller, cwd.as_path())?;
    }
    let directory = Some(cwd.as_path().to_owned());
    let projects = &caller.projects.visible;
    let catalog = state.templates.load(directory, projects).await?;
    let template = &find_template(&catalog, id)
        .map_err(in_template_id)?
        .template;
    let is_other = |given: &ByteString| given.as_bytes() != template.command.as_bytes();
    if body.command.as_ref().is_some_and(is_other) {
        return Err(HttpProblem::value(format!(
            "field 'command' is not that of template '{id}'; allowed: '{}', or leave it out",
            template.command
        )));
    }
    if !body.args.is_empty() {
        return Err(HttpProblem::value(
            "field 'args' does not go with 'template_id'; allowed: 'parameters'",
        ));
    }
    let made = template_command(&catalog, caller, access, id, &values)?;
    Ok(StartRequest::new(made.command, cwd).with_template(made.record))
}

fn in_template_id(error: ApiError) -> ApiError {
    ApiError {
        message: format!("field 'template_id': {}", error.message),
        ..error
    }
}
