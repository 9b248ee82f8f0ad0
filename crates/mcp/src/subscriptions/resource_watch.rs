//! The task of one subscription.

use std::time::Duration;

use ostler_engine::{Engine, Error, ExecutionWatch, WaitEnd, WaitFor};
use ostler_model::Caller;
use tokio::time::Instant;

use super::update_sink::{ClientGone, UpdateSink};
use crate::notifications::ChangeWatcher;
use crate::resources::{ResourceTarget, UriError};
use crate::state::McpState;
use ostler_interface::error::ApiError;

/// The shortest time between two updates of one resource to one client, in milliseconds.
const UPDATE_INTERVAL_MS: u64 = 1_000;

/// One resource watched for one caller.
#[derive(Debug)]
pub(super) struct WatchedResource {
    uri: String,
    caller: Caller,
    source: ChangeSource,
    /// For an execution as a whole: its prompts are changes too.
    prompts: Option<PromptWatch>,
}

/// The source of changes.
#[derive(Debug)]
enum ChangeSource {
    /// The list of executions, or the notifications.
    Hub(ChangeWatcher),
    /// One execution, including its output.
    Execution(ExecutionWatch),
    /// The events of one execution.
    Events(ExecutionWatch),
}

impl WatchedResource {
    /// Starts to watch: changes from now on will be reported.
    ///
    /// # Errors
    /// As reading the resource.
    pub(super) fn new(mcp_state: &McpState, caller: &Caller, uri: &str) -> Result<Self, UriError> {
        let watch = |id: &str| {
            let watch = mcp_state.engine().watch(caller, id);
            watch.map_err(|error| UriError::from_failure(uri, ApiError::from(error)))
        };
        let mut prompts = None;
        let source = match ResourceTarget::parse(uri)? {
            ResourceTarget::List => {
                ChangeSource::Hub(mcp_state.notifications().list_changes(caller))
            }
            ResourceTarget::News => {
                ChangeSource::Hub(mcp_state.notifications().push_changes(caller))
            }
            ResourceTarget::Detail(id) => {
                prompts = Some(PromptWatch {
                    engine: mcp_state.engine().clone(),
                    caller: caller.clone(),
                    watch: watch(&id)?,
                    id: id.clone(),
                });
                ChangeSource::Execution(watch(&id)?)
            }
            ResourceTarget::Log(id, _) => ChangeSource::Execution(watch(&id)?),
            ResourceTarget::Screen(id) => {
                ChangeSource::Execution(watch_screen(mcp_state, caller, uri, &id)?)
            }
            ResourceTarget::Events(id) => ChangeSource::Events(watch(&id)?),
        };
        Ok(Self {
            uri: uri.to_owned(),
            caller: caller.clone(),
            source,
            prompts,
        })
    }

    /// Reports every change, at most once a second, the last one always; until the client is gone,
    /// the caller loses access, or nothing can change any more.
    pub(super) async fn run(mut self, sink: UpdateSink) {
        match self.prompts.take() {
            Some(prompts) => tokio::select! {
                () = self.notify_changes(sink) => {}
                () = prompts.run() => {}
            },
            None => self.notify_changes(sink).await,
        }
    }

    async fn notify_changes(&mut self, sink: UpdateSink) {
        let mut throttle = Throttle::default();
        while self.source.wait_changed().await {
            throttle.wait().await;
            let Some(can_change) = self.source.acknowledge(&self.caller) else {
                return;
            };
            if sink.notify_updated(&self.uri).await == Err(ClientGone) || !can_change {
                return;
            }
        }
    }
}

/// The watch of an execution that has a screen.
fn watch_screen(
    mcp_state: &McpState,
    caller: &Caller,
    uri: &str,
    id: &str,
) -> Result<ExecutionWatch, UriError> {
    let to_uri_error = |error| UriError::from_failure(uri, ApiError::from(error));
    let mut watch = mcp_state.engine().watch(caller, id).map_err(to_uri_error)?;
    let info = watch.refresh();
    match info.size() {
        Some(_) => Ok(watch),
        None => Err(to_uri_error(Error::NoTerminal { id: info.id })),
    }
}

impl ChangeSource {
    async fn wait_changed(&mut self) -> bool {
        match self {
            Self::Hub(signal) => signal.changed().await,
            Self::Execution(watch) => {
                watch.changed().await;
                true
            }
            Self::Events(watch) => {
                watch.state_changed().await;
                true
            }
        }
    }

    /// Marks the current state as reported; returns whether it can change again, none when the
    /// caller has no access any more.
    fn acknowledge(&mut self, caller: &Caller) -> Option<bool> {
        match self {
            Self::Hub(signal) => {
                signal.mark_seen();
                Some(true)
            }
            Self::Execution(watch) | Self::Events(watch) => {
                let info = watch.refresh();
                caller
                    .can_access(&info.owner)
                    .then(|| !info.state.is_finished())
            }
        }
    }
}

/// Watches for prompts of one execution: the engine detects them only while something waits for
/// them, and then records an event.
#[derive(Debug)]
struct PromptWatch {
    engine: Engine,
    caller: Caller,
    id: String,
    watch: ExecutionWatch,
}

impl PromptWatch {
    /// Runs as long as it is polled.
    async fn run(mut self) {
        loop {
            let waiting = self
                .engine
                .wait(&self.caller, &self.id, &WaitFor::Prompt, None);
            let reason = waiting.await.map(|waited| waited.end);
            if !matches!(reason, Ok(WaitEnd::Prompt(_))) {
                // No more prompts can come; the end is reported elsewhere.
                return std::future::pending().await;
            }
            // The prompt stays the same until something happens.
            self.watch.refresh();
            self.watch.changed().await;
        }
    }
}

/// Reports changes of the resource list, at most once a second.
pub(super) async fn notify_list_changes(mut changes: ChangeWatcher, sink: UpdateSink) {
    let mut throttle = Throttle::default();
    while changes.changed().await {
        throttle.wait().await;
        changes.mark_seen();
        if sink.notify_list_changed().await == Err(ClientGone) {
            return;
        }
    }
}

/// Limits the rate of notifications.
#[derive(Debug, Default)]
struct Throttle {
    last_sent: Option<Instant>,
}

impl Throttle {
    /// Waits until the next one may be sent, and counts it as sent.
    async fn wait(&mut self) {
        if let Some(sent) = self.last_sent {
            let interval = Duration::from_millis(UPDATE_INTERVAL_MS);
            tokio::time::sleep_until(sent + interval).await;
        }
        self.last_sent = Some(Instant::now());
    }
}
