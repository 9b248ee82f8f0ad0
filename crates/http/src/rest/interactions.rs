//! Questions to people: approvals of commands, prompts of commands, and questions of clients.

use std::path::PathBuf;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use ostler_api::{AnswerBody, CancelBody, InteractionBody, InteractionsBody, QuestionBody};
use ostler_engine::ExecutionInfo;
use ostler_engine::interaction::{LONGEST_TIMEOUT_MS, Question, QuestionKind};
use ostler_interface::convert::{answered_body, interaction_body};
use ostler_interface::http::HttpProblem;
use ostler_interface::pagination::question_position;
use ostler_interface::params::{Parameter, ParameterKind};
use ostler_model::Caller;
use tokio::time::timeout;

use super::caller::RequestCaller;
use super::extract::{InteractionPathId, JsonBody};
use super::query::{LIST_CURSOR, LIST_LIMIT, QueryString, list_page};
use super::response::RestResult;
use super::state::RestState;
use super::ws::{UpgradeRequest, serve_interactions};

/// The shortest timeout of a client's question, in milliseconds.
const SHORTEST_TIMEOUT_MS: u64 = 1_000;
/// The longest time that one request waits for an answer, in milliseconds.
const WAIT_LIMIT_MS: u64 = 60_000;

const LIST: &[Parameter] = &[
    Parameter::optional(
        "all",
        ParameterKind::Flag,
        "Those that ended of late too, not only the open ones",
    )
    .with_default_flag(false),
    LIST_LIMIT,
    LIST_CURSOR,
];

const SHOW: &[Parameter] = &[Parameter::optional(
    "wait_ms",
    ParameterKind::Integer(0, WAIT_LIMIT_MS.cast_signed()),
    "How long to wait for the answer",
)
.with_default(0)];

/// `GET /api/v1/interactions`: questions to people, newest first.
pub(super) async fn list(
    State(state): State<RestState>,
    RequestCaller(caller): RequestCaller,
    query_string: QueryString,
) -> RestResult<Json<InteractionsBody>> {
    let mut arguments = query_string.check(LIST)?;
    let open_only = !arguments.flag("all");
    let open = state.engine.poll_interactions(&caller, open_only);
    let page = list_page(&open, question_position, &mut arguments)?;
    Ok(Json(InteractionsBody {
        interactions: page
            .entries
            .into_iter()
            .map(|it| interaction_body(&state.engine, it))
            .collect(),
        total: Some(open.len()),
        next: page.next,
    }))
}

/// `POST /api/v1/interactions`: opens a question, and waits for its answer on request.
pub(super) async fn open(
    State(state): State<RestState>,
    RequestCaller(caller): RequestCaller,
    JsonBody(body): JsonBody<QuestionBody>,
) -> RestResult<(StatusCode, Json<InteractionBody>)> {
    check_range(
        "timeout_ms",
        body.timeout_ms,
        SHORTEST_TIMEOUT_MS,
        LONGEST_TIMEOUT_MS,
    )?;
    check_range("wait_ms", body.wait_ms, 0, WAIT_LIMIT_MS)?;
    let wait = Duration::from_millis(body.wait_ms);
    let execution = match &body.execution {
        Some(id) => Some(state.engine.info(&caller, id)?),
        None => None,
    };
    let question = question(body, execution.as_ref())?;
    state.engine.check_question(&caller, &question).await?;
    let opened = state.engine.open_interaction(&caller, question)?;
    let body = body_after(&state, &caller, &opened.id.to_string(), wait).await?;
    Ok((StatusCode::CREATED, Json(body)))
}

fn check_range(field: &str, given: u64, least: u64, most: u64) -> RestResult<()> {
    if (least..=most).contains(&given) {
        return Ok(());
    }
    let message = format!("field '{field}' is {given}; allowed: {least} to {most}");
    Err(HttpProblem::value(message))
}

/// The question that a body describes, for this execution or for none.
fn question(body: QuestionBody, execution: Option<&ExecutionInfo>) -> RestResult<Question> {
    if body.secret && execution.is_none() {
        let message = "field 'secret': a secret is typed into an execution, and shown to nobody; \
                       name one in 'execution'";
        return Err(HttpProblem::value(message));
    }
    let selects_path = body.kind == QuestionKind::FileSelection && body.options.is_empty();
    let directory = body.directory.map(|it| it.as_path().to_owned());
    let workspace = match (directory, execution) {
        (None, Some(info)) if selects_path => Some(workspace_of(info)),
        (Some(directory), None) if selects_path => Some(directory),
        (None, None) if selects_path => {
            let message = "a file_selection needs 'options', or a 'directory' or an 'execution' \
                           in whose workspace the file is";
            return Err(HttpProblem::value(message));
        }
        (None, _) => None,
        (Some(_), _) => {
            let message = "field 'directory' is for a file_selection without options and execution";
            return Err(HttpProblem::value(message));
        }
    };
    Ok(Question {
        options: body.options,
        default: body.default,
        timeout: Duration::from_millis(body.timeout_ms),
        execution: execution.map(|info| info.id),
        workspace,
        secret: body.secret,
        ..Question::new(body.kind, body.message)
    })
}

fn workspace_of(info: &ExecutionInfo) -> PathBuf {
    let confinement = info.spec.policy.confinement.as_ref();
    let workspace = confinement.and_then(|it| it.workspace.as_ref());
    workspace.unwrap_or(&info.spec.cwd).as_path().to_owned()
}

/// `GET /api/v1/interactions/{id}`: one question, once it has ended or the wait is over.
pub(super) async fn show(
    State(state): State<RestState>,
    RequestCaller(caller): RequestCaller,
    InteractionPathId(id): InteractionPathId,
    query_string: QueryString,
) -> RestResult<Json<InteractionBody>> {
    let arguments = query_string.check(SHOW)?;
    let wait = Duration::from_millis(arguments.count("wait_ms").unwrap_or_default());
    Ok(Json(body_after(&state, &caller, &id, wait).await?))
}

/// The question, once it has ended or this time has passed.
async fn body_after(
    state: &RestState,
    caller: &Caller,
    id: &str,
    wait: Duration,
) -> RestResult<InteractionBody> {
    let outcome = timeout(wait, state.engine.wait_for_answer(caller, id));
    let outcome = state.unless_shutting_down(outcome).await?;
    let interaction = state.engine.interaction(caller, id)?;
    Ok(match outcome {
        Ok(outcome) => answered_body(&state.engine, &interaction, outcome?),
        Err(_) => interaction_body(&state.engine, &interaction),
    })
}

/// `POST /api/v1/interactions/{id}/answer`: answers a question.
pub(super) async fn answer(
    State(state): State<RestState>,
    RequestCaller(caller): RequestCaller,
    InteractionPathId(id): InteractionPathId,
    JsonBody(body): JsonBody<AnswerBody>,
) -> RestResult<Json<InteractionBody>> {
    let answered = state
        .engine
        .answer_interaction(&caller, &id, body.value)
        .await?;
    Ok(Json(interaction_body(&state.engine, &answered)))
}

/// `POST /api/v1/interactions/{id}/cancel`: withdraws a question.
pub(super) async fn cancel(
    State(state): State<RestState>,
    RequestCaller(caller): RequestCaller,
    InteractionPathId(id): InteractionPathId,
    JsonBody(body): JsonBody<CancelBody>,
) -> RestResult<Json<InteractionBody>> {
    let cancelled = state
        .engine
        .cancel_interaction(&caller, &id, body.reason)
        .await?;
    Ok(Json(interaction_body(&state.engine, &cancelled)))
}

/// `GET /api/v1/interactions/events`: a WebSocket with the open questions and what happens to them.
/// Frames are `InteractionServerMessage` and `InteractionClientMessage`.
pub(super) async fn events(
    State(state): State<RestState>,
    RequestCaller(caller): RequestCaller,
    query_string: QueryString,
    upgrade: UpgradeRequest,
) -> RestResult<Response> {
    query_string.check(&[])?;
    serve_interactions(upgrade, state, caller)
}
