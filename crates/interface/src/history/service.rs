//! [`History`]: queries, off the threads that serve requests.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use ostler_engine::Engine;
use ostler_model::{Caller, ErrorCode, ExecutionId, Principal, Timestamp};
use ostler_store::{
    Fingerprint, HistoryPage, HistoryQuery, HistoryRow, HistoryStore, RunStatistics, StoreError,
};
use tokio::sync::watch;
use tokio::time::timeout;

use crate::error::ApiError;

/// How long a query waits for the history to include what had happened when it came.
const FRESH_WAIT: Duration = Duration::from_secs(1);
/// How long a rebuild waits for the history to be complete again.
const REBUILD_WAIT: Duration = Duration::from_secs(60);

/// How long a list waits for the statistics of its commands.
const STATISTICS_WAIT: Duration = Duration::from_millis(500);
/// The most executions of a list whose statistics are looked up.
const STATISTICS_IDS: usize = 100;

/// The limit on open files below which a daemon keeps no history: its connections would take the
/// last descriptors from executions and requests.
pub const HISTORY_FILES_MIN: u64 = 4_096;

/// The error where no history is kept.
#[must_use]
pub fn no_history() -> ApiError {
    let hint = format!(
        "a daemon keeps one where it may open at least {HISTORY_FILES_MIN} files (`ulimit -Hn`)"
    );
    ApiError::new(ErrorCode::Storage, "no history is kept by this daemon").with_hint(hint)
}

/// The history of an engine; cheap to clone.
#[derive(Debug, Clone)]
pub struct History {
    pub(super) engine: Engine,
    pub(super) store: Arc<HistoryStore>,
    pub(super) progress: Arc<watch::Sender<UpdateProgress>>,
    /// The number of queries so far: each wakes the update loop.
    pub(super) queries: Arc<watch::Sender<u64>>,
}

/// How far the update loop is.
#[derive(Debug, Clone, Default)]
pub(super) struct UpdateProgress {
    /// The number of ledger entries that are folded.
    pub(super) folded: u64,
    /// The number of queries before the newest step that was complete or failed.
    pub(super) queries: u64,
    /// Why the last step failed.
    pub(super) error: Option<String>,
}

/// An answer, and how complete it is.
#[derive(Debug, Clone)]
pub struct HistoryAnswer<T> {
    /// The answer.
    pub value: T,
    /// How complete it is.
    pub freshness: HistoryFreshness,
}

/// How complete the history is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HistoryFreshness {
    /// How many entries of the ledger it does not include yet.
    pub behind: u64,
    /// Why that is so, where the history cannot be written.
    pub error: Option<String>,
}

impl HistoryFreshness {
    /// The error where the history has no execution with this id: one that is not complete may have
    /// it later.
    #[must_use]
    pub fn missing(&self, id: &str) -> ApiError {
        let message = format!("no execution '{id}' is in the history");
        if self.behind == 0 && self.error.is_none() {
            return ApiError::new(ErrorCode::ProcessNotFound, message);
        }
        let reason = self.error.as_ref();
        let reason = reason.map_or_else(String::new, |reason| format!(" ({reason})"));
        let message = format!(
            "{message} so far, which lacks {} entries of the ledger{reason}",
            self.behind
        );
        ApiError::new(ErrorCode::Initialization, message).with_hint("ask again later")
    }
}

impl History {
    /// The history of `engine` in `store`. Somebody has to run [`keep_updated`](Self::keep_updated).
    #[must_use]
    pub fn new(engine: Engine, store: HistoryStore) -> Self {
        Self {
            engine,
            store: Arc::new(store),
            progress: Arc::new(watch::Sender::new(UpdateProgress::default())),
            queries: Arc::new(watch::Sender::new(0)),
        }
    }

    /// One page, newest first.
    ///
    /// # Errors
    /// When the database cannot be read, or the search takes too long.
    pub async fn list(&self, query: HistoryQuery) -> Result<HistoryAnswer<HistoryPage>, ApiError> {
        self.query(move |store| store.list(&query)).await
    }

    /// One execution by its id, and how its command usually ends.
    ///
    /// # Errors
    /// When the caller sees no such execution, or the database cannot be read. Where the history is
    /// not complete, the error says so and is worth another try.
    pub async fn find(
        &self,
        caller: &Caller,
        id: &str,
    ) -> Result<HistoryAnswer<(HistoryRow, Option<RunStatistics>)>, ApiError> {
        let (caller, text) = (caller.clone(), id.to_owned());
        let answer = self
            .query(move |store| {
                let row = match text.parse::<ExecutionId>() {
                    Ok(id) => store.find(&caller, id)?,
                    Err(_) => store.find_short(&caller, &text)?,
                };
                let Some(row) = row else {
                    return Ok(None);
                };
                let usual = usual(store, &row.owner.principal, row.fingerprint)?;
                Ok(Some((row, usual)))
            })
            .await?;
        let HistoryAnswer { value, freshness } = answer;
        let value = value.ok_or_else(|| freshness.missing(id))?;
        Ok(HistoryAnswer { value, freshness })
    }

    /// How the commands of these executions usually end, as far as the history knows now: it does
    /// not wait for what is not folded, and is silent where nothing can be read, or not soon. Of
    /// many, the first 100 are looked up.
    pub async fn statistics_of(
        &self,
        mut ids: Vec<ExecutionId>,
    ) -> HashMap<ExecutionId, RunStatistics> {
        if ids.is_empty() || self.progress.borrow().error.is_some() {
            return HashMap::new();
        }
        ids.truncate(STATISTICS_IDS);
        let store = Arc::clone(&self.store);
        let found = blocking(move || store.statistics_of(&ids, Timestamp::now()));
        match timeout(STATISTICS_WAIT, found).await {
            Ok(Ok(Ok(statistics))) => statistics,
            Ok(Ok(Err(error))) => {
                tracing::debug!(%error, "no statistics of commands");
                HashMap::new()
            }
            Ok(Err(_)) | Err(_) => HashMap::new(),
        }
    }

    /// Forgets all rows and waits until they are complete again.
    ///
    /// # Errors
    /// When the database refuses.
    pub async fn rebuild(&self) -> Result<HistoryFreshness, ApiError> {
        self.reset().await?;
        Ok(self.freshness(REBUILD_WAIT).await)
    }

    async fn reset(&self) -> Result<(), ApiError> {
        let store = Arc::clone(&self.store);
        let reset = blocking(move || store.reset()).await?;
        reset.map_err(api_error)?;
        // The next step says so too, but a read may come before it.
        self.progress.send_modify(|progress| progress.folded = 0);
        Ok(())
    }

    /// Answers from the history; where it is damaged, from one that is made anew.
    async fn query<T: Send + 'static>(
        &self,
        read: impl Fn(&HistoryStore) -> Result<T, StoreError> + Send + Sync + 'static,
    ) -> Result<HistoryAnswer<T>, ApiError> {
        let read = Arc::new(read);
        let first = self.read(Arc::clone(&read)).await?;
        let (result, freshness) = match first {
            (Err(StoreError::Damaged(reason)), _) => {
                tracing::warn!(reason, "the history is made anew from the ledger");
                self.reset().await?;
                self.read(read).await?
            }
            other => other,
        };
        // Why it could not be made is more than that it cannot be read.
        let value = result.map_err(|error| match (&error, &freshness.error) {
            (StoreError::SearchTimeout | StoreError::Statement(_), _) | (_, None) => {
                api_error(error)
            }
            (error, Some(reason)) => ApiError::new(error_code(error), reason.clone()),
        })?;
        Ok(HistoryAnswer { value, freshness })
    }

    /// One read of the history, as complete as it soon can be.
    async fn read<T: Send + 'static>(
        &self,
        read: Arc<impl Fn(&HistoryStore) -> Result<T, StoreError> + Send + Sync + 'static>,
    ) -> Result<(Result<T, StoreError>, HistoryFreshness), ApiError> {
        let freshness = self.freshness(FRESH_WAIT).await;
        let store = Arc::clone(&self.store);
        let result = blocking(move || read(&store)).await?;
        Ok((result, freshness))
    }

    /// Waits until everything that has happened is folded, until that fails, or for `limit`.
    async fn freshness(&self, limit: Duration) -> HistoryFreshness {
        let end = *self.engine.ledger_end().borrow();
        let mut progress = self.progress.subscribe();
        let mut number = 0;
        self.queries.send_modify(|count| {
            *count += 1;
            number = *count;
        });
        let is_settled = |progress: &UpdateProgress| {
            progress.queries >= number && (progress.error.is_some() || progress.folded >= end)
        };
        // Late or not: how far it is follows.
        let _late = timeout(limit, progress.wait_for(is_settled)).await.is_err();
        let progress = self.progress.borrow();
        HistoryFreshness {
            behind: end.saturating_sub(progress.folded),
            error: progress.error.clone(),
        }
    }
}

fn usual(
    store: &HistoryStore,
    principal: &Principal,
    fingerprint: Option<Fingerprint>,
) -> Result<Option<RunStatistics>, StoreError> {
    match fingerprint {
        Some(fingerprint) => store.statistics(principal, fingerprint, Timestamp::now()),
        None => Ok(None),
    }
}

async fn blocking<T: Send + 'static>(
    action: impl FnOnce() -> T + Send + 'static,
) -> Result<T, ApiError> {
    let task = tokio::task::spawn_blocking(action);
    task.await
        .map_err(|_| ApiError::new(ErrorCode::Internal, "the query of the history was aborted"))
}

fn api_error(error: StoreError) -> ApiError {
    if let StoreError::Ledger(error) = error {
        return error.into();
    }
    ApiError::new(error_code(&error), error.to_string())
}

const fn error_code(error: &StoreError) -> ErrorCode {
    match error {
        StoreError::SearchTimeout => ErrorCode::Value,
        StoreError::Newer { .. } | StoreError::Unreachable(_) => ErrorCode::Initialization,
        StoreError::Ledger(_)
        | StoreError::Damaged(_)
        | StoreError::Moved
        | StoreError::Statement(_)
        | StoreError::Unavailable(_) => ErrorCode::Storage,
    }
}
