//! Commands that `exec` runs as services: requested, or recognised.

use ostler_engine::{ServiceRequest, StartRequest, WaitFor};
use ostler_journal::Pattern;

use super::watch::{reply_with_watch, start_watch};
use crate::reply::ToolReply;
use crate::tool_call::ToolCall;
use crate::tools::execution::execution_reply;
use crate::tools::params::output_range::OutputSelection;
use crate::tools::registry::ToolResult;
use crate::tools::service::{
    ServiceLaunch, ServiceReason, detect_service, launch_and_wait, start_failure_reply,
    was_one_shot,
};
use crate::wait::{self, WaitOptions};
use ostler_interface::error::ApiError;
use ostler_interface::params::Arguments;

/// The option that runs a recognised service as a plain command.
const OPT_OUT: &str = "options {\"mode\":\"oneshot\"}";

/// The arguments of a call that concern services.
#[derive(Debug)]
pub(super) struct ServiceMode {
    mode: Option<String>,
    /// Whether the call names a condition to wait for.
    pub(super) has_until: bool,
    /// Whether the call names a wait time.
    has_wait: bool,
}

impl ServiceMode {
    /// Parses them before anything is taken from the arguments.
    pub(super) fn parse(arguments: &mut Arguments) -> Self {
        let until_parameters = ["until", "pattern", "idle_ms"];
        Self {
            mode: arguments.text("mode"),
            has_until: until_parameters
                .into_iter()
                .any(|name| arguments.is_given(name)),
            has_wait: arguments.is_given("wait_ms"),
        }
    }

    /// Whether the call says that it is one.
    pub(super) fn is_service(&self) -> bool {
        self.mode.as_deref() == Some("service")
    }

    /// Why the command runs as a service; none where it does not.
    pub(super) fn service_reason(
        &self,
        call: ToolCall<'_>,
        request: &StartRequest,
        reason: &WaitFor,
    ) -> Result<Option<ServiceReason>, ApiError> {
        let for_ready = matches!(reason, WaitFor::Ready);
        match self.mode.as_deref() {
            Some("oneshot") if for_ready => Err(ApiError::value(
                "until 'ready' does not go with mode 'oneshot'; allowed: mode 'service'",
            )),
            Some("oneshot") => Ok(None),
            Some(_) => requested_reason(request).map(Some),
            None if for_ready => requested_reason(request).map(Some),
            None if self.has_until => Ok(None),
            None => Ok(detect_service(call, request, OPT_OUT)),
        }
    }
}

/// A requested service has no time limit.
fn requested_reason(request: &StartRequest) -> Result<ServiceReason, ApiError> {
    if request.options.timeout.is_none() {
        return Ok(ServiceReason::Requested);
    }
    let failure = ApiError::value("parameter 'timeout' does not go with a service, which stays");
    Err(failure.with_hint("wait_ms bounds the wait; stop ends it"))
}

/// A service to start, and the wait for it that the call requests.
pub(super) struct RequestedLaunch {
    pub(super) request: ServiceRequest,
    pub(super) mode: ServiceMode,
    pub(super) until: WaitFor,
    pub(super) options: WaitOptions,
}

/// Starts a service and answers when it is ready, or the given condition is met.
pub(super) async fn run_as_service(
    call: ToolCall<'_>,
    launch: RequestedLaunch,
    service_reason: &ServiceReason,
    notify: Option<Pattern>,
    selection: &OutputSelection,
) -> ToolResult {
    let RequestedLaunch {
        request,
        mode,
        until,
        options,
    } = launch;
    if mode.has_until && !matches!(until, WaitFor::Ready) {
        let waited = Box::pin(wait::run_until(call, request, &until, options)).await?;
        return Ok(reply_with_watch(call, &waited, notify, selection).await);
    }
    // The wait lasts as long as the service has to become ready, not the default of commands.
    let options = WaitOptions {
        timeout: options.timeout.filter(|_| mode.has_wait),
        may_be_task: false,
        ..options
    };
    let launch_outcome = match launch_and_wait(call, request, options).await {
        Ok(launched) => launched,
        Err(interrupted) => return start_failure_reply(interrupted),
    };
    if was_one_shot(call, &launch_outcome.waited) {
        return Ok(reply_with_watch(call, &launch_outcome.waited, notify, selection).await);
    }
    Ok(service_reply(call, launch_outcome, service_reason, notify).await)
}

async fn service_reply(
    call: ToolCall<'_>,
    launch_outcome: ServiceLaunch,
    service_reason: &ServiceReason,
    notify: Option<Pattern>,
) -> ToolReply {
    let watch_problem =
        notify.and_then(|pattern| start_watch(call, &launch_outcome.waited, pattern));
    let fields = execution_reply::outcome_fields(&launch_outcome.waited);
    let mut reply = service_reason.reply(call, launch_outcome, fields).await;
    if let (Some(problem), Some(text)) = (watch_problem, reply.blocks.first_mut()) {
        text.push_str(&format!("\n[note: {problem}]"));
    }
    reply
}
