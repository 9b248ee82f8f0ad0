//! Waiting until services are ready, with a board for who looks on, until somebody has enough.

use std::future::Future;
use std::pin::pin;
use std::time::{Duration, Instant};

use clap::Args;
use hyper::Method;
use ostler_model::ErrorCode;
use ostler_server::wire::{
    EnsuredBody, InfoBody, ReadyBody, ServiceBody, Until, WaitBody, WaitedBody, Why,
};
use tokio::signal::unix::{self, SignalKind, signal};
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval, timeout};

use super::ask::Desk;
use super::board::{Board, Row};
use crate::client::{Attempts, Body, Client, is_leaving};
use crate::commands::{ids, parse};
use crate::error::CommandError;

/// What a start may still take when somebody has enough, in milliseconds.
const START_GRACE_MS: u64 = 2_000;
/// The same, as it is given to [`watched`].
pub(super) const START_GRACE: Duration = Duration::from_millis(START_GRACE_MS);
/// Between two looks for who looks on, in milliseconds.
const LOOK_MS: u64 = 250;

/// How long is waited.
#[derive(Debug, Clone, Copy, Args)]
pub(super) struct WaitArgs {
    /// Return as soon as it is started
    #[arg(long, conflicts_with = "timeout")]
    pub(super) no_wait: bool,
    /// Wait at most this long, for example 90s; as its definition says unless given
    #[arg(long, value_name = "SPAN", value_parser = parse::span)]
    pub(super) timeout: Option<Duration>,
}

/// Ctrl-C, caught: what is waited for goes on.
#[derive(Debug)]
pub(super) struct Interrupt(unix::Signal);

/// How work that a person may interrupt was over.
#[derive(Debug)]
pub(super) enum Over<T> {
    /// It was done.
    Done(T),
    /// Somebody had enough; it was done within the time it was given then, or not.
    Interrupted(Option<T>),
}

impl Interrupt {
    /// Catches it.
    ///
    /// # Errors
    /// When the system does not let us.
    pub(super) fn catch() -> Result<Self, CommandError> {
        signal(SignalKind::interrupt()).map(Self).map_err(|error| {
            CommandError::new(ErrorCode::Internal, format!("no signal handler: {error}"))
        })
    }
}

/// Does `work`; meanwhile draws what `look` sees, and listens for an interrupt. After that it
/// gets `grace` to be done: what is just being started is not taken back.
///
/// # Errors
/// Those of the work.
pub(super) async fn watched<T, L, Fut>(
    work: impl Future<Output = Result<T, CommandError>>,
    (board, Interrupt(interrupt)): (&mut Board, &mut Interrupt),
    grace: Duration,
    look: L,
) -> Result<Over<T>, CommandError>
where
    L: Fn() -> Fut,
    Fut: Future<Output = Vec<Row>>,
{
    let mut work = pin!(work);
    let mut ticks = interval(Duration::from_millis(LOOK_MS));
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let done = loop {
        tokio::select! {
            biased;
            done = &mut work => break done.map(Over::Done),
            _ = interrupt.recv() => {
                let late = timeout(grace, &mut work).await;
                break late.ok().transpose().map(Over::Interrupted);
            }
            _ = ticks.tick(), if board.is_on() => {
                let rows = look().await;
                board.draw(&rows);
            }
        }
    };
    board.clear();
    done
}

/// Waits until each of them is ready, or shows that it will not be, or its time is over.
///
/// # Errors
/// When the daemon cannot be asked any more.
pub(super) async fn ready(
    client: &Client,
    ensured: Vec<EnsuredBody>,
    limit: Option<Duration>,
    (board, interrupt): (&mut Board, &mut Interrupt),
) -> Result<Over<Vec<EnsuredBody>>, CommandError> {
    let ids: Vec<String> = ensured.iter().filter_map(id).collect();
    let look = || rows(client, &ids);
    let work = all(client, ensured.clone(), limit);
    watched(work, (board, interrupt), Duration::ZERO, look).await
}

async fn all(
    client: &Client,
    ensured: Vec<EnsuredBody>,
    limit: Option<Duration>,
) -> Result<Vec<EnsuredBody>, CommandError> {
    let mut waits = JoinSet::new();
    for (at, service) in ensured.into_iter().enumerate() {
        let client = client.clone();
        waits.spawn(async move { (at, one(&client, service, limit).await) });
    }
    let mut waited = waits.join_all().await;
    waited.sort_by_key(|(at, _)| *at);
    waited.into_iter().map(|(_, service)| service).collect()
}

/// Waits for one, also over the death of a daemon.
async fn one(
    client: &Client,
    mut ensured: EnsuredBody,
    limit: Option<Duration>,
) -> Result<EnsuredBody, CommandError> {
    let Some(id) = id(&ensured) else {
        return Ok(ensured);
    };
    let limit = limit.unwrap_or_else(|| usual(&ensured.service));
    let waited = wait(client, (&id, ensured.awaits()), limit).await?;
    ensured.service = ensured.service.with_execution(waited.info);
    ensured.waited = Some(ReadyBody {
        why: waited.why,
        detail: waited.detail,
    });
    let path = Desk::path(&id, "/why");
    // Its state is told also where the reason for it cannot be had.
    if let Ok(why) = client.call(Method::GET, &path, Body::None).await {
        ensured.explained(why);
    }
    ensured.message = ensured.told(parse::millis(limit));
    Ok(ensured)
}

/// Waits until a service is so, at most so long.
///
/// # Errors
/// As the daemon answers.
pub(super) async fn wait(
    client: &Client,
    (id, until): (&str, Until),
    limit: Duration,
) -> Result<WaitedBody, CommandError> {
    let begin = Instant::now();
    let mut attempts = Attempts::new();
    loop {
        let left = limit.saturating_sub(begin.elapsed());
        let body = WaitBody {
            until,
            pattern: None,
            idle_ms: None,
            at_most_ms: Some(parse::millis(left)),
        };
        let path = ids::path(id, "/wait");
        match client.call(Method::POST, &path, Body::json(&body)?).await {
            Err(error) if is_leaving(&error) => attempts.next(error)?,
            Err(error @ CommandError::Disconnected(_)) => attempts.next(error)?,
            answer => return answer,
        }
    }
}

/// How long a wait for it takes unless told otherwise.
pub(super) fn usual(service: &ServiceBody) -> Duration {
    let state = service
        .execution
        .as_ref()
        .and_then(|info| info.service.as_deref());
    let millis = state.map_or(ostler_model::service::READY_TIMEOUT_MS, |state| {
        state.ready_timeout_ms
    });
    Duration::from_millis(millis)
}

fn id(ensured: &EnsuredBody) -> Option<String> {
    ensured
        .service
        .execution
        .as_ref()
        .map(|info| info.id.clone())
}

/// What is seen of them now; what cannot be asked is not shown.
async fn rows(client: &Client, ids: &[String]) -> Vec<Row> {
    let mut rows = Vec::new();
    for id in ids {
        let path = ids::path(id, "");
        let info: Result<InfoBody, _> = client.call(Method::GET, &path, Body::None).await;
        rows.extend(info.ok().map(|info| Row::of_info(&info)));
    }
    rows
}

/// Whether a wait ended well: ready, or running with nothing to look at.
pub(super) const fn is_well(why: Why) -> bool {
    matches!(why, Why::Ready)
}
