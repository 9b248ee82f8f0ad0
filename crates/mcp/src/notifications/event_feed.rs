//! Reads engine events and adds notifications to the hub.

use std::collections::HashMap;
use std::sync::Arc;

use ostler_engine::{Engine, ExecutionInfo, LifecycleEvent, ListFilter};
use ostler_model::event::StopReason;
use ostler_model::termination::WaitStatus;
use ostler_model::{Caller, Event, ExecutionId, Owner, Scope, Timestamp};
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;

use super::hub::NotificationHub;
use super::notification::{AgentNotification, last_printed_line};

/// Runs until the engine is gone. After lost events it reads the list of executions instead.
pub(super) async fn run(
    hub: Arc<NotificationHub>,
    engine: Engine,
    mut events: Receiver<LifecycleEvent>,
) {
    let mut feed = EventFeed {
        hub,
        engine,
        exits: HashMap::new(),
        last_event_at: Timestamp::now(),
    };
    loop {
        match events.recv().await {
            Ok(event) => feed.handle(&event).await,
            Err(RecvError::Lagged(missed)) => {
                tracing::warn!(missed, "the feed of news fell behind");
                feed.recover_missed().await;
            }
            Err(RecvError::Closed) => return,
        }
    }
}

struct EventFeed {
    hub: Arc<NotificationHub>,
    engine: Engine,
    /// The end of the newest attempt, until it is known whether another one follows.
    exits: HashMap<ExecutionId, WaitStatus>,
    /// When the newest event received happened.
    last_event_at: Timestamp,
}

impl EventFeed {
    async fn handle(&mut self, event: &LifecycleEvent) {
        self.last_event_at = event.record.at;
        match &event.record.event {
            Event::Created { .. } => self.hub.notify_list_changed(&event.owner),
            Event::Exited { status, .. } => {
                self.exits.insert(event.id, *status);
            }
            Event::Backoff { attempt, .. } => {
                let status = self.exits.remove(&event.id);
                self.service_crashed(event, status, *attempt).await;
            }
            Event::Ready { .. } | Event::Health { .. } => self.service_changed(event),
            Event::Finished { .. } => {
                self.exits.remove(&event.id);
                self.hub.notify_list_changed(&event.owner);
                if self.hub.accepts_end(&event.owner, event.id)
                    && let Some(info) = execution_info(&self.engine, &event.owner, event.id)
                {
                    add_end(&self.hub, &self.engine, &info).await;
                }
            }
            Event::Refused { .. }
            | Event::Interaction { .. }
            | Event::Context { .. }
            | Event::Requested { .. }
            | Event::Alert { .. }
            | Event::Started { .. }
            | Event::SpawnFailed { .. }
            | Event::Ports { .. }
            | Event::Stage { .. }
            | Event::Detached { .. }
            | Event::Restarting { .. }
            | Event::PromptDetected { .. }
            | Event::PromptAnswered { .. }
            | Event::PromptGone {}
            | Event::Input { .. }
            | Event::Resized { .. }
            | Event::Paused { .. }
            | Event::Resumed { .. }
            | Event::LeaseTaken { .. }
            | Event::Sampled { .. }
            | Event::LimitHit { .. }
            | Event::Autorun { .. }
            | Event::Workspace { .. }
            | Event::Degraded { .. }
            | Event::Stopping { .. }
            | Event::Adopted { .. }
            | Event::Trimmed { .. } => {}
        }
    }

    /// Reports the state of a service whose session knows its id.
    fn service_changed(&self, event: &LifecycleEvent) {
        if self.hub.has_session(&event.owner)
            && let Some(info) = execution_info(&self.engine, &event.owner, event.id)
            && info.id_disclosed
            && let Some(item) = AgentNotification::service(&info)
        {
            self.hub.push(&event.owner, &item);
        }
    }

    async fn service_crashed(
        &self,
        event: &LifecycleEvent,
        status: Option<WaitStatus>,
        attempt: u32,
    ) {
        if self.hub.has_session(&event.owner)
            && let Some(info) = execution_info(&self.engine, &event.owner, event.id)
            && info.id_disclosed
        {
            let last_line = last_line_of(&self.engine, &info).await;
            let item = AgentNotification::crashed(&info, status, last_line, attempt);
            self.hub.push(&event.owner, &item);
        }
    }

    /// Events were lost: the ends since the last one received are taken from the list.
    async fn recover_missed(&mut self) {
        self.exits.clear();
        let since = std::mem::replace(&mut self.last_event_at, Timestamp::now());
        for owner in self.hub.notify_all_changed() {
            let ended_since = |info: &ExecutionInfo| info.state.ended_at >= Some(since);
            add_missed_ends(
                &self.hub,
                &self.engine,
                &session_caller(&owner),
                ended_since,
            )
            .await;
        }
    }
}

/// Adds the ends of this caller's session that pass `filter`.
pub(super) async fn add_missed_ends(
    hub: &NotificationHub,
    engine: &Engine,
    caller: &Caller,
    filter: impl Fn(&ExecutionInfo) -> bool,
) {
    let caller = session_caller(&caller.owner);
    let mut missed = engine.list(&caller, &ListFilter::default());
    missed.retain(|info| info.state.is_finished() && filter(info));
    missed.sort_by_key(|info| info.state.ended_at);
    for info in missed {
        if info.owner.session == caller.owner.session && hub.accepts_end(&info.owner, info.id) {
            add_end(hub, engine, &info).await;
        }
    }
}

/// Adds the end of one execution. Unpublished ids are not reported, nor is what the end of a
/// session stopped.
pub(super) async fn add_end(hub: &NotificationHub, engine: &Engine, info: &ExecutionInfo) {
    let expected = matches!(info.state.stopping, Some(StopReason::SessionEnded));
    if !info.id_disclosed || expected {
        return;
    }
    let failed = info
        .state
        .ending
        .as_ref()
        .is_some_and(|it| !it.is_success());
    let last_line = if failed {
        last_line_of(engine, info).await
    } else {
        None
    };
    if let Some(item) = AgentNotification::ended(info, last_line) {
        hub.push(&info.owner, &item);
    }
}

/// The last line it printed.
async fn last_line_of(engine: &Engine, info: &ExecutionInfo) -> Option<String> {
    let journal = engine.journal(&session_caller(&info.owner), &info.id.to_string());
    last_printed_line(&journal.ok()?, info).await
}

fn execution_info(engine: &Engine, owner: &Owner, id: ExecutionId) -> Option<ExecutionInfo> {
    engine.info(&session_caller(owner), &id.to_string()).ok()
}

/// A caller that sees one session.
fn session_caller(owner: &Owner) -> Caller {
    Caller {
        owner: owner.clone(),
        scope: Scope::Session,
        projects: ostler_model::ProjectView::default(),
    }
}
