//! The actions `start`, `ensure`, `up` and `restart`: each waits until its services are ready.

use std::time::Duration;

use futures_util::future::join_all;
use ostler_engine::{
    EnsureResult, ExecutionInfo, ServiceInfo, ServiceRequest, ServiceReuse, ServiceStart,
    StartLimits, WaitFor,
};
use ostler_render::service;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::launch_wait::{ServiceLaunch, launch_and_wait, wait_ready, within_max_wait};
use super::request;
use super::start_result::{ServiceOutcome, ServiceReply, pending_reply, start_failure_reply};
use crate::approval;
use crate::reply::{ToolInterrupt, ToolReply};
use crate::tool_call::ToolCall;
use crate::tools::execution::ServiceToolBody;
use crate::tools::registry::ToolResult;
use crate::wait::{OnPrompt, WaitOptions};
use ostler_api::StartFailureBody;
use ostler_interface::convert::start_failure_body;
use ostler_interface::error::ApiError;
use ostler_interface::params::Arguments;

/// What a start leaves of the call's maximum, for the answer.
const ANSWER_TIME: Duration = Duration::from_millis(500);

/// Starts one; a name alone starts its definition.
pub(super) async fn start_service(call: ToolCall<'_>, mut arguments: Arguments) -> ToolResult {
    let timeout = parse_wait_ms(&arguments);
    let Some(request) = request::parse_request(call, &mut arguments)? else {
        return start_defined(call, arguments, timeout).await;
    };
    if !request.depends_on.is_empty() {
        return start_requested(call, request, ServiceReuse::Refuse, timeout).await;
    }
    match launch_and_wait(call, request, wait_options(timeout)).await {
        Ok(launched) => Ok(to_reply(call, launched, None).await.into_tool_reply()),
        Err(interrupted) => start_failure_reply(interrupted),
    }
}

/// Reuses one that runs and is healthy, else starts it.
pub(super) async fn ensure_service(call: ToolCall<'_>, mut arguments: Arguments) -> ToolResult {
    let timeout = parse_wait_ms(&arguments);
    let Some(request) = request::parse_request(call, &mut arguments)? else {
        return start_defined(call, arguments, timeout).await;
    };
    start_requested(call, request, ServiceReuse::Allow, timeout).await
}

/// Starts a command with its dependencies, or reuses the service that it is.
async fn start_requested(
    call: ToolCall<'_>,
    request: ServiceRequest,
    reuse: ServiceReuse,
    at_most: Option<Duration>,
) -> ToolResult {
    match start_and_wait(call, request, reuse, at_most).await {
        Ok(answered) => Ok(answered.into_tool_reply()),
        Err(interrupted) => start_failure_reply(interrupted),
    }
}

async fn start_and_wait(
    call: ToolCall<'_>,
    request: ServiceRequest,
    reuse: ServiceReuse,
    at_most: Option<Duration>,
) -> Result<ServiceReply, ToolInterrupt> {
    let time = CallTime::new(call, at_most);
    let starting = approval::start_within(call, request, reuse, || time.limits());
    match within_max_wait(call, Box::pin(starting)).await? {
        ServiceStart::Running(ensured) => {
            let launched = wait_until_up(call, &ensured, time.remaining()).await?;
            let ensured = (reuse == ServiceReuse::Allow).then_some(&*ensured);
            Ok(to_reply(call, launched, ensured).await)
        }
        ServiceStart::Pending(service) => Ok(pending_reply(&service)),
    }
}

/// Starts the definitions of a directory with their dependencies, in order.
pub(super) async fn up_services(call: ToolCall<'_>, mut arguments: Arguments) -> ToolResult {
    let timeout = parse_wait_ms(&arguments);
    let names: Vec<String> = arguments.text("name").into_iter().collect();
    up_and_wait(call, &mut arguments, &names, timeout).await
}

/// The definition with this name.
async fn start_defined(
    call: ToolCall<'_>,
    mut arguments: Arguments,
    timeout: Option<Duration>,
) -> ToolResult {
    let names: Vec<String> = arguments.text("name").into_iter().collect();
    up_and_wait(call, &mut arguments, &names, timeout).await
}

async fn up_and_wait(
    call: ToolCall<'_>,
    arguments: &mut Arguments,
    names: &[String],
    at_most: Option<Duration>,
) -> ToolResult {
    let time = CallTime::new(call, at_most);
    let base = request::base_request(call, arguments);
    let starting = approval::service_up(call, names, base, || time.limits());
    let started = match within_max_wait(call, Box::pin(starting)).await {
        Ok(upped) => upped,
        Err(interrupted) => return start_failure_reply(interrupted),
    };
    let remaining = time.remaining();
    let waits = started
        .services
        .iter()
        .map(|one| wait_ensured(call, one, remaining));
    let mut answers = Vec::with_capacity(started.services.len() + started.pending.len());
    for answered in join_all(waits).await {
        answers.push(answered?);
    }
    answers.extend(started.pending.iter().map(pending_reply));
    let failures: Vec<StartFailureBody> = started
        .failures
        .into_iter()
        .map(start_failure_body)
        .collect();
    Ok(match (answers.len(), failures.is_empty()) {
        (1, true) => answers.remove(0).into_tool_reply(),
        _ => join_replies(answers, &failures),
    })
}

/// How long a call that starts services may take.
#[derive(Debug, Clone, Copy)]
struct CallTime {
    began: Instant,
    /// As the client requested.
    requested: Option<Duration>,
    /// The maximum of the call.
    max: Option<Duration>,
}

impl CallTime {
    fn new(call: ToolCall<'_>, requested: Option<Duration>) -> Self {
        Self {
            began: Instant::now(),
            requested,
            max: call.context.max_wait(),
        }
    }

    /// The rest of it for the start, which must leave time for the answer.
    fn limits(self) -> StartLimits {
        let elapsed = self.began.elapsed();
        let left = |limit: Duration| limit.saturating_sub(elapsed);
        StartLimits {
            dependencies: self.requested.map(left),
            total: self.max.map(|max| left(max.saturating_sub(ANSWER_TIME))),
        }
    }

    /// The rest of it for a wait until ready.
    fn remaining(self) -> Option<Duration> {
        let shortest = self.requested.into_iter().chain(self.max).min();
        shortest.map(|limit| limit.saturating_sub(self.began.elapsed()))
    }
}

/// Joins the answers about several services, and those that could not be started.
fn join_replies(answers: Vec<ServiceReply>, failures: &[StartFailureBody]) -> ToolReply {
    let failed = failures.iter().map(|failure| {
        let cause = service::render_not_started(&failure.message);
        let hint = failure.hint.as_ref();
        let hint = hint.map_or_else(String::new, |hint| format!("\nhint: {hint}"));
        format!("{}: {cause}{hint}", failure.name)
    });
    let texts = answers.iter().map(|it| it.text.clone());
    let texts: Vec<String> = texts.chain(failed).collect();
    let fields: Vec<Value> = answers.into_iter().map(|it| it.fields).collect();
    let mut structured = json!({"services": fields});
    if !failures.is_empty() {
        structured["failures"] = json!(failures);
    }
    ToolReply {
        blocks: vec![texts.join("\n\n")],
        structured: Some(structured),
        ..ToolReply::default()
    }
}

/// Starts the next attempt of one.
pub(super) async fn restart_service(call: ToolCall<'_>, mut arguments: Arguments) -> ToolResult {
    let timeout = parse_wait_ms(&arguments);
    let name = arguments.required_text("name");
    let directory = super::query::parse_directory(call, &mut arguments);
    let restarting = call
        .engine
        .restart_service(call.caller, &name, Some(directory.as_path()));
    let service = restarting.await?;
    let Some(info) = &service.execution else {
        return Ok(ToolReply::status(&ServiceToolBody::from(&service)));
    };
    let launch_outcome = wait_running(call, info, &WaitFor::Ready, timeout).await?;
    Ok(to_reply(call, launch_outcome, None).await.into_tool_reply())
}

/// Waits for one of several, and describes it.
async fn wait_ensured(
    call: ToolCall<'_>,
    ensured: &EnsureResult,
    timeout: Option<Duration>,
) -> Result<ServiceReply, ToolInterrupt> {
    let launch_outcome = wait_until_up(call, ensured, timeout).await?;
    Ok(to_reply(call, launch_outcome, Some(ensured)).await)
}

/// Waits until it is ready or, where dependents need it completed, until it has ended.
async fn wait_until_up(
    call: ToolCall<'_>,
    ensured: &EnsureResult,
    timeout: Option<Duration>,
) -> Result<ServiceLaunch, ToolInterrupt> {
    let ServiceInfo { execution, .. } = &ensured.service;
    let Some(info) = execution else {
        let message = format!("{}: {}", ensured.service.name, ensured.note);
        return Err(ApiError::new(ostler_model::ErrorCode::Service, message).into());
    };
    let until = if ensured.completes {
        WaitFor::Exit
    } else {
        WaitFor::Ready
    };
    wait_running(call, info, &until, timeout).await
}

async fn wait_running(
    call: ToolCall<'_>,
    info: &ExecutionInfo,
    until: &WaitFor,
    timeout: Option<Duration>,
) -> Result<ServiceLaunch, ToolInterrupt> {
    wait_ready(call, &info.id.short(), until, wait_options(timeout)).await
}

async fn to_reply(
    call: ToolCall<'_>,
    launch_outcome: ServiceLaunch,
    ensured: Option<&EnsureResult>,
) -> ServiceReply {
    let outcome = ServiceOutcome {
        launch: launch_outcome,
        note: ensured
            .map(|it| it.note.clone())
            .filter(|it| !it.is_empty()),
        reused: ensured.map(|it| it.reused),
        completes: ensured.is_some_and(|it| it.completes),
    };
    outcome.into_reply(call).await
}

fn parse_wait_ms(arguments: &Arguments) -> Option<Duration> {
    arguments.count("wait_ms").map(Duration::from_millis)
}

fn wait_options(timeout: Option<Duration>) -> WaitOptions {
    WaitOptions {
        timeout,
        may_be_task: false,
        on_prompt: OnPrompt::Ignore,
    }
}
