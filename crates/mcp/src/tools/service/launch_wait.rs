//! Starts a service and waits until it is ready, no longer than the call may.

use std::future::Future;
use std::time::Duration;

use ostler_engine::{ServiceRequest, WaitEnd, WaitFor, WaitOutcome};
use ostler_model::ErrorCode;
use ostler_model::service::READY_TIMEOUT_MS;

use crate::approval;
use crate::notifications::SuppressGuard;
use crate::reply::ToolInterrupt;
use crate::tool_call::ToolCall;
use crate::wait::{self, WaitOptions};
use ostler_interface::error::ApiError;

/// The outcome of a wait for readiness.
#[derive(Debug)]
pub(in crate::tools) struct ServiceLaunch {
    pub(in crate::tools) waited: WaitOutcome,
    /// The readiness timeout, where it has passed.
    pub(in crate::tools) timed_out: Option<Duration>,
    /// Suppresses notifications about it until the answer is made.
    _suppress_guard: Option<SuppressGuard>,
}

/// Starts a service and waits until it is ready.
pub(in crate::tools) async fn launch_and_wait(
    call: ToolCall<'_>,
    request: ServiceRequest,
    options: WaitOptions,
) -> Result<ServiceLaunch, ToolInterrupt> {
    if let Some(execution) = call.context.resumed_execution() {
        let waited = Box::pin(wait::resume(call, execution, &WaitFor::Ready, options)).await?;
        return Ok(ServiceLaunch::new(waited, None, None));
    }
    let start_guard = within_max_wait(call, Box::pin(approval::start(call, request))).await?;
    let plan = start_guard
        .info()
        .spec
        .lifetime
        .plan()
        .map(|it| it.ready.timeout());
    let timeout = plan.unwrap_or(Duration::from_millis(READY_TIMEOUT_MS));
    let (options, is_service_deadline) = bound_wait(call, timeout, options);
    let waited = Box::pin(wait::wait_started(
        call,
        start_guard,
        &WaitFor::Ready,
        options,
    ))
    .await?;
    Ok(ServiceLaunch::new(
        waited,
        is_service_deadline.then_some(timeout),
        None,
    ))
}

/// Waits until a running service is ready or has ended: for the rest of its readiness timeout (all
/// of it for a later attempt), or, where that is over, as long as the caller requests and no longer
/// than that timeout again.
pub(super) async fn wait_ready(
    call: ToolCall<'_>,
    id: &str,
    until: &WaitFor,
    options: WaitOptions,
) -> Result<ServiceLaunch, ToolInterrupt> {
    let info = call.info(id)?;
    let suppress_guard = call
        .state
        .notifications()
        .suppress_for(call.caller, info.id);
    let plan = info.spec.lifetime.plan().map(|it| it.ready.timeout());
    let timeout = plan.unwrap_or(Duration::from_millis(READY_TIMEOUT_MS));
    let elapsed = if info.state.attempt > 1 {
        Duration::ZERO
    } else {
        info.duration()
    };
    let left = timeout.saturating_sub(elapsed);
    let (options, is_service_deadline) = if left.is_zero() {
        let at_most = Some(options.timeout.unwrap_or(timeout));
        (
            WaitOptions {
                timeout: at_most,
                ..options
            },
            false,
        )
    } else {
        bound_wait(call, left, options)
    };
    let waited = Box::pin(wait::wait(call, id, until, options)).await?;
    Ok(ServiceLaunch::new(
        waited,
        is_service_deadline.then_some(timeout),
        Some(suppress_guard),
    ))
}

/// Starts within the call's maximum: dependencies can take long. Started services continue, and are
/// reused by the next call.
pub(super) async fn within_max_wait<T>(
    call: ToolCall<'_>,
    starting: impl Future<Output = Result<T, ToolInterrupt>>,
) -> Result<T, ToolInterrupt> {
    let Some(max_wait) = call.context.max_wait() else {
        return starting.await;
    };
    tokio::time::timeout(max_wait, starting)
        .await
        .unwrap_or_else(|_| {
            let message = "what it depends on is still starting";
            let failure = ApiError::new(ErrorCode::ProcessTimeout, message);
            Err(failure
                .with_hint("call again: what was begun goes on; action 'list' shows it")
                .into())
        })
}

/// Bounds a wait by the readiness timeout; also returns whether that is the effective bound.
fn bound_wait(call: ToolCall<'_>, timeout: Duration, options: WaitOptions) -> (WaitOptions, bool) {
    let bounds = [options.timeout, call.context.max_wait()];
    let shortest = bounds.into_iter().flatten().min();
    let is_service_deadline = shortest.is_none_or(|shortest| timeout <= shortest);
    let bounded_timeout = shortest.map_or(timeout, |it| it.min(timeout));
    let options = WaitOptions {
        timeout: Some(bounded_timeout),
        ..options
    };
    (options, is_service_deadline)
}

impl ServiceLaunch {
    fn new(
        waited: WaitOutcome,
        timeout: Option<Duration>,
        suppress_guard: Option<SuppressGuard>,
    ) -> Self {
        let timed_out = timeout.filter(|_| waited.end == WaitEnd::TimedOut);
        Self {
            waited,
            timed_out,
            _suppress_guard: suppress_guard,
        }
    }
}
