//! Starting a service and waiting until it is ready, never beyond the client's patience (F4).

use std::future::Future;
use std::time::Duration;

use ostler_engine::{ServiceRequest, WaitEnd, WaitFor, Waited};
use ostler_model::ErrorCode;
use ostler_model::service::READY_TIMEOUT_MS;

use crate::error::Failure;
use crate::mcp::consent;
use crate::mcp::context::Call;
use crate::mcp::news::Attending;
use crate::mcp::reply::Interrupted;
use crate::mcp::waiting::{self, Options};

/// What a wait for readiness came to.
#[derive(Debug)]
pub(in crate::mcp::tools) struct Launched {
    pub(in crate::mcp::tools) waited: Waited,
    /// The time it had to become ready, where that is over.
    pub(in crate::mcp::tools) timed_out: Option<Duration>,
    /// Nothing of it is pushed before the answer that tells it is made.
    _attending: Option<Attending>,
}

/// Starts a service and waits until it is ready.
pub(in crate::mcp::tools) async fn launch(
    call: Call<'_>,
    request: ServiceRequest,
    options: Options,
) -> Result<Launched, Interrupted> {
    if let Some(execution) = call.link.resumes() {
        let waited = Box::pin(waiting::go_on(call, (execution, &WaitFor::Ready), options)).await?;
        return Ok(Launched::of(waited, None, None));
    }
    let begun = patiently(call, Box::pin(consent::launch(call, request))).await?;
    let plan = begun
        .info()
        .spec
        .lifetime
        .plan()
        .map(|it| it.ready.timeout());
    let timeout = plan.unwrap_or(Duration::from_millis(READY_TIMEOUT_MS));
    let (options, last) = within(call, timeout, options);
    let waited = Box::pin(waiting::see(call, begun, &WaitFor::Ready, options)).await?;
    Ok(Launched::of(waited, last.then_some(timeout), None))
}

/// Waits until what runs already is ready, or has ended: what is left of the time it has for that (all of it
/// for a later attempt), or, where that is over, as long as the caller likes and no longer than
/// that again.
pub(super) async fn attend(
    call: Call<'_>,
    (id, until): (&str, &WaitFor),
    options: Options,
) -> Result<Launched, Interrupted> {
    let info = call.info(id)?;
    let attending = call.desk.news().attend_to(call.caller, info.id);
    let plan = info.spec.lifetime.plan().map(|it| it.ready.timeout());
    let timeout = plan.unwrap_or(Duration::from_millis(READY_TIMEOUT_MS));
    let spent = if info.state.attempt > 1 {
        Duration::ZERO
    } else {
        info.duration()
    };
    let left = timeout.saturating_sub(spent);
    let (options, last) = if left.is_zero() {
        let at_most = Some(options.at_most.unwrap_or(timeout));
        (Options { at_most, ..options }, false)
    } else {
        within(call, left, options)
    };
    let waited = Box::pin(waiting::wait(call, id, until, options)).await?;
    Ok(Launched::of(
        waited,
        last.then_some(timeout),
        Some(attending),
    ))
}

/// Starts within the client's patience: what comes before a service can take long. What was
/// begun goes on, and is reused by the next call.
pub(super) async fn patiently<T>(
    call: Call<'_>,
    starting: impl Future<Output = Result<T, Interrupted>>,
) -> Result<T, Interrupted> {
    let Some(patience) = call.link.patience() else {
        return starting.await;
    };
    tokio::time::timeout(patience, starting)
        .await
        .unwrap_or_else(|_| {
            let message = "what it depends on is still starting";
            let failure = Failure::new(ErrorCode::ProcessTimeout, message);
            Err(failure
                .with_hint("call again: what was begun goes on; action 'list' shows it")
                .into())
        })
}

/// Bounds a wait by the time a service has, and whether that is the bound that counts.
fn within(call: Call<'_>, timeout: Duration, options: Options) -> (Options, bool) {
    let bounds = [options.at_most, call.link.patience()];
    let shortest = bounds.into_iter().flatten().min();
    let last = shortest.is_none_or(|shortest| timeout <= shortest);
    let at_most = shortest.map_or(timeout, |it| it.min(timeout));
    let options = Options {
        at_most: Some(at_most),
        ..options
    };
    (options, last)
}

impl Launched {
    fn of(waited: Waited, timeout: Option<Duration>, attending: Option<Attending>) -> Self {
        let timed_out = timeout.filter(|_| waited.why == WaitEnd::AtMost);
        Self {
            waited,
            timed_out,
            _attending: attending,
        }
    }
}
