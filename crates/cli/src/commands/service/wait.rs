//! Waits until services are ready, with progress lines, until ctrl-c.

use std::future::Future;
use std::pin::pin;
use std::time::{Duration, Instant};

use clap::Args;
use hyper::Method;
use ostler_api::{
    EnsureResponse, ExecutionBody, ReadinessWaitBody, ServiceBody, WaitBody, WaitEndKind,
    WaitResponse, WaitUntil,
};
use ostler_model::ErrorCode;
use ostler_model::duration::as_millis;
use tokio::signal::unix::{self, SignalKind, signal};
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval, timeout};

use super::client::ServiceClient;
use super::progress::{ProgressLines, ProgressRow};
use crate::client::{DaemonClient, RequestBody, RetryLimit, is_daemon_exiting};
use crate::commands::{ids, value_parsers};
use crate::error::CommandError;

/// The grace period of a pending start after ctrl-c, in milliseconds.
const START_GRACE_MS: u64 = 2_000;
/// The same as a duration, for [`run_with_progress`].
pub(super) const START_GRACE: Duration = Duration::from_millis(START_GRACE_MS);
/// The interval between two updates of the progress lines, in milliseconds.
const POLL_MS: u64 = 250;

/// How long is waited.
#[derive(Debug, Clone, Copy, Args)]
pub(super) struct ReadyWaitArgs {
    /// Return as soon as it is started
    #[arg(long, conflicts_with = "timeout")]
    pub(super) no_wait: bool,
    /// Wait at most this long, for example 90s; as its definition says unless given
    #[arg(long, value_name = "SPAN", value_parser = value_parsers::duration)]
    pub(super) timeout: Option<Duration>,
}

/// The handler of ctrl-c, after which the services keep running.
#[derive(Debug)]
pub(super) struct Interrupt(unix::Signal);

/// The outcome of interruptible work.
#[derive(Debug)]
pub(super) enum WorkOutcome<T> {
    /// The work was completed.
    Finished(T),
    /// Ctrl-C was pressed; the work was completed within the grace period, or not.
    Interrupted(Option<T>),
}

impl Interrupt {
    /// Installs the handler.
    ///
    /// # Errors
    /// When the system refuses.
    pub(super) fn install() -> Result<Self, CommandError> {
        signal(SignalKind::interrupt()).map(Self).map_err(|error| {
            CommandError::new(ErrorCode::Internal, format!("no signal handler: {error}"))
        })
    }
}

/// Does `work`; meanwhile draws the rows of `fetch_rows`, and waits for an interrupt. After that
/// the work gets `grace` to complete: a pending start is not cancelled.
///
/// # Errors
/// The errors of the work.
pub(super) async fn run_with_progress<T, L, Fut>(
    work: impl Future<Output = Result<T, CommandError>>,
    progress: &mut ProgressLines,
    Interrupt(interrupt): &mut Interrupt,
    grace: Duration,
    fetch_rows: L,
) -> Result<WorkOutcome<T>, CommandError>
where
    L: Fn() -> Fut,
    Fut: Future<Output = Vec<ProgressRow>>,
{
    let mut work = pin!(work);
    let mut ticks = interval(Duration::from_millis(POLL_MS));
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let outcome = loop {
        tokio::select! {
            biased;
            done = &mut work => break done.map(WorkOutcome::Finished),
            _ = interrupt.recv() => {
                let finished = timeout(grace, &mut work).await;
                break finished.ok().transpose().map(WorkOutcome::Interrupted);
            }
            _ = ticks.tick(), if progress.is_enabled() => {
                let rows = fetch_rows().await;
                progress.draw(&rows);
            }
        }
    };
    progress.clear();
    outcome
}

/// Waits until each service is ready, has failed to become ready, or its timeout expired.
///
/// # Errors
/// When the daemon cannot be reached any more.
pub(super) async fn wait_until_ready(
    client: &DaemonClient,
    ensured: Vec<EnsureResponse>,
    limit: Option<Duration>,
    progress: &mut ProgressLines,
    interrupt: &mut Interrupt,
) -> Result<WorkOutcome<Vec<EnsureResponse>>, CommandError> {
    let ids: Vec<String> = ensured.iter().filter_map(execution_id).collect();
    let fetch_rows = || fetch_rows(client, &ids);
    let work = wait_all(client, ensured.clone(), limit);
    run_with_progress(work, progress, interrupt, Duration::ZERO, fetch_rows).await
}

async fn wait_all(
    client: &DaemonClient,
    ensured: Vec<EnsureResponse>,
    limit: Option<Duration>,
) -> Result<Vec<EnsureResponse>, CommandError> {
    let mut tasks = JoinSet::new();
    for (index, service) in ensured.into_iter().enumerate() {
        let client = client.clone();
        tasks.spawn(async move { (index, wait_one(&client, service, limit).await) });
    }
    let mut results = tasks.join_all().await;
    results.sort_by_key(|(at, _)| *at);
    results.into_iter().map(|(_, service)| service).collect()
}

/// Waits for one service, across daemon restarts.
async fn wait_one(
    client: &DaemonClient,
    mut ensured: EnsureResponse,
    limit: Option<Duration>,
) -> Result<EnsureResponse, CommandError> {
    let Some(id) = execution_id(&ensured) else {
        return Ok(ensured);
    };
    let limit = limit.unwrap_or_else(|| default_timeout(&ensured.service));
    let result = wait(client, &id, ensured.wait_condition(), limit).await?;
    ensured.service = ensured.service.with_execution(result.info);
    ensured.waited = Some(ReadinessWaitBody {
        why: result.why,
        detail: result.detail,
    });
    // It may be the one that replaced the awaited one.
    let id = execution_id(&ensured).unwrap_or(id);
    let path = ServiceClient::path(&id, "/why");
    // Its state is reported also if the diagnosis cannot be fetched.
    if let Ok(diagnosis) = client.call(Method::GET, &path, RequestBody::None).await {
        ensured.explain(diagnosis);
    }
    ensured.message = ostler_interface::convert::ensure_message(&ensured, as_millis(limit));
    Ok(ensured)
}

/// Waits for a condition of a service, with a timeout.
///
/// # Errors
/// As the daemon responds.
pub(super) async fn wait(
    client: &DaemonClient,
    id: &str,
    until: WaitUntil,
    limit: Duration,
) -> Result<WaitResponse, CommandError> {
    let start = Instant::now();
    let mut attempts = RetryLimit::new();
    loop {
        let left = limit.saturating_sub(start.elapsed());
        let body = WaitBody {
            until,
            pattern: None,
            idle_ms: None,
            at_most_ms: Some(as_millis(left)),
        };
        let path = ids::path(id, "/wait");
        match client
            .call(Method::POST, &path, RequestBody::json(&body)?)
            .await
        {
            Err(error) if is_daemon_exiting(&error) => attempts.allow_retry(error)?,
            Err(error @ CommandError::Disconnected(_)) => attempts.allow_retry(error)?,
            result => return result,
        }
    }
}

/// The default timeout of a wait for it.
pub(super) fn default_timeout(service: &ServiceBody) -> Duration {
    let state = service
        .execution
        .as_ref()
        .and_then(|info| info.service.as_deref());
    let millis = state.map_or(ostler_model::service::READY_TIMEOUT_MS, |state| {
        state.ready_timeout_ms
    });
    Duration::from_millis(millis)
}

fn execution_id(ensured: &EnsureResponse) -> Option<String> {
    ensured
        .service
        .execution
        .as_ref()
        .map(|info| info.id.clone())
}

/// The present rows; services that cannot be fetched are left out.
async fn fetch_rows(client: &DaemonClient, ids: &[String]) -> Vec<ProgressRow> {
    let mut rows = Vec::new();
    for id in ids {
        let path = ids::path(id, "");
        let info: Result<ExecutionBody, _> =
            client.call(Method::GET, &path, RequestBody::None).await;
        rows.extend(info.ok().map(|info| ProgressRow::from_info(&info)));
    }
    rows
}

/// Whether a wait was successful: ready, or running with nothing to probe.
pub(super) const fn is_ready(reason: WaitEndKind) -> bool {
    matches!(reason, WaitEndKind::Ready)
}
