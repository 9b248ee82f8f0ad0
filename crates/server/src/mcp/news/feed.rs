//! Hears the engine and puts what matters on the board.

use std::collections::HashMap;
use std::sync::Arc;

use ostler_engine::{Engine, Info, ListFilter, Notice};
use ostler_model::ending::WaitStatus;
use ostler_model::event::StopOrder;
use ostler_model::{Caller, Event, ExecutionId, Owner, Scope, Timestamp};
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;

use super::board::Board;
use super::item::{Item, last_words};

/// Until the engine is gone. Whoever falls behind looks at the list instead.
pub(super) async fn run(board: Arc<Board>, engine: Engine, mut notices: Receiver<Notice>) {
    let mut feed = Feed {
        board,
        engine,
        exits: HashMap::new(),
        seen: Timestamp::now(),
    };
    loop {
        match notices.recv().await {
            Ok(notice) => feed.take(&notice).await,
            Err(RecvError::Lagged(missed)) => {
                tracing::warn!(missed, "the feed of news fell behind");
                feed.catch_up().await;
            }
            Err(RecvError::Closed) => return,
        }
    }
}

struct Feed {
    board: Arc<Board>,
    engine: Engine,
    /// How the newest attempt ended, until it is known whether another one follows.
    exits: HashMap<ExecutionId, WaitStatus>,
    /// When the newest event heard of happened.
    seen: Timestamp,
}

impl Feed {
    async fn take(&mut self, notice: &Notice) {
        self.seen = notice.record.at;
        match &notice.record.event {
            Event::Created { .. } => self.board.list_changed(&notice.owner),
            Event::Exited { status, .. } => {
                self.exits.insert(notice.id, *status);
            }
            Event::Backoff { attempt, .. } => {
                let status = self.exits.remove(&notice.id);
                self.crashed(notice, status, *attempt).await;
            }
            Event::Ready { .. } | Event::Health { .. } => self.stands(notice),
            Event::Finished { .. } => {
                self.exits.remove(&notice.id);
                self.board.list_changed(&notice.owner);
                if self.board.wants(&notice.owner, notice.id)
                    && let Some(info) = info(&self.engine, &notice.owner, notice.id)
                {
                    ended(&self.board, &self.engine, &info).await;
                }
            }
            Event::Refused { .. }
            | Event::Started { .. }
            | Event::SpawnFailed { .. }
            | Event::Ports { .. }
            | Event::Stage { .. }
            | Event::Detached { .. }
            | Event::Restarting { .. }
            | Event::PromptDetected { .. }
            | Event::PromptAnswered { .. }
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

    /// How a service stands that somebody was told of.
    fn stands(&self, notice: &Notice) {
        if self.board.knows(&notice.owner)
            && let Some(info) = info(&self.engine, &notice.owner, notice.id)
            && info.given_out
            && let Some(item) = Item::service(&info)
        {
            self.board.add(&notice.owner, item);
        }
    }

    async fn crashed(&self, notice: &Notice, status: Option<WaitStatus>, attempt: u32) {
        if self.board.knows(&notice.owner)
            && let Some(info) = info(&self.engine, &notice.owner, notice.id)
            && info.given_out
        {
            let words = words(&self.engine, &info).await;
            let item = Item::crashed(&info, (status, words), attempt);
            self.board.add(&notice.owner, item);
        }
    }

    /// Events were missed: what ended since the last one heard of is told from the list.
    async fn catch_up(&mut self) {
        self.exits.clear();
        let since = std::mem::replace(&mut self.seen, Timestamp::now());
        for owner in self.board.everything_changed() {
            let ended_since = |info: &Info| info.state.ended_at >= Some(since);
            catch_up(&self.board, &self.engine, &sight(&owner), ended_since).await;
        }
    }
}

/// Tells what ended of this caller's session, of what `chosen` lets through.
pub(super) async fn catch_up(
    board: &Board,
    engine: &Engine,
    caller: &Caller,
    chosen: impl Fn(&Info) -> bool,
) {
    let caller = sight(&caller.owner);
    let mut unseen = engine.list(&caller, &ListFilter::default());
    unseen.retain(|info| info.state.is_finished() && chosen(info));
    unseen.sort_by_key(|info| info.state.ended_at);
    for info in unseen {
        if info.owner.session == caller.owner.session && board.wants(&info.owner, info.id) {
            ended(board, engine, &info).await;
        }
    }
}

/// The end of one execution. Ids that nobody knows are no news, nor is what a session's end
/// stopped.
pub(super) async fn ended(board: &Board, engine: &Engine, info: &Info) {
    let expected = matches!(info.state.stopping, Some(StopOrder::SessionEnded));
    if !info.given_out || expected {
        return;
    }
    let failed = info
        .state
        .ending
        .as_ref()
        .is_some_and(|it| !it.is_success());
    let words = if failed {
        words(engine, info).await
    } else {
        None
    };
    if let Some(item) = Item::ended(info, words) {
        board.add(&info.owner, item);
    }
}

/// The last thing it said.
async fn words(engine: &Engine, info: &Info) -> Option<String> {
    let journal = engine.journal(&sight(&info.owner), &info.id.to_string());
    last_words(&journal.ok()?, info).await
}

fn info(engine: &Engine, owner: &Owner, id: ExecutionId) -> Option<Info> {
    engine.info(&sight(owner), &id.to_string()).ok()
}

/// What a session sees.
fn sight(owner: &Owner) -> Caller {
    Caller {
        owner: owner.clone(),
        scope: Scope::Session,
    }
}
