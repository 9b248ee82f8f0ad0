//! The end and removal of everything that a caller sees.

use futures_util::future::join_all;
use ostler_engine::{CleanOutcome, ListFilter, StopRequest};
use ostler_model::Caller;
use thiserror::Error;

use super::Engine;

/// The most rounds of [`Engine::destroy`]; each ends executions that were started during the
/// previous one.
const DESTROY_ROUNDS: u32 = 16;
/// The recorded stop reason of what [`Engine::destroy`] stopped.
const DESTROYED: &str = "destroyed";

/// Why [`Engine::destroy`] could not end and remove everything.
#[derive(Debug, Error)]
pub enum DestroyError {
    /// An execution could not be stopped.
    #[error(transparent)]
    Engine(#[from] ostler_engine::Error),
    /// An execution has ended, and its files could not be removed.
    #[error("{id} cannot be removed: {reason}")]
    NotRemoved {
        /// The execution's id.
        id: String,
        /// The operating system's error text.
        reason: String,
    },
    /// New executions are started as fast as the present ones are ended.
    #[error("executions are being started as fast as they are ended")]
    StillStarting,
}

impl Engine {
    /// Ends and removes all executions that the caller sees: they are stopped as by
    /// [`stop`](Engine::stop), all at once, durable executions too, and then
    /// cleaned. Executions started meanwhile are ended and removed as well. The engine itself stays
    /// open; [`shutdown`](Engine::shutdown) closes it.
    ///
    /// # Errors
    /// The first execution that could not be stopped or removed; it is still listed, and the others
    /// are removed.
    pub async fn destroy(&self, caller: &Caller) -> Result<(), DestroyError> {
        let mut failure = None;
        for _round in 0..DESTROY_ROUNDS {
            let ids: Vec<String> = self
                .list(caller, &ListFilter::default())
                .iter()
                .map(|info| info.id.to_string())
                .collect();
            if ids.is_empty() {
                return Ok(());
            }
            let results = join_all(ids.iter().map(|id| self.end(caller, id))).await;
            failure = results.into_iter().find_map(Result::err);
            if failure.is_some() {
                break;
            }
        }
        Err(failure.unwrap_or(DestroyError::StillStarting))
    }

    async fn end(&self, caller: &Caller, id: &str) -> Result<(), DestroyError> {
        let request = StopRequest {
            reason: Some(DESTROYED.to_owned()),
            ..StopRequest::default()
        };
        match self.stop(caller, id, request).await {
            // The stop timed out, or another caller has cleaned the execution.
            Ok(_) | Err(ostler_engine::Error::NotFound) => {}
            Err(error) => return Err(error.into()),
        }
        let outcomes = self.clean(caller, &[id.to_owned()]).await?;
        match outcomes.into_iter().next().map(|(_, outcome)| outcome) {
            Some(CleanOutcome::Failed(reason)) => Err(DestroyError::NotRemoved {
                id: id.to_owned(),
                reason,
            }),
            Some(
                CleanOutcome::Cleaned
                | CleanOutcome::Discarded
                | CleanOutcome::NotFound
                | CleanOutcome::Running,
            )
            | None => Ok(()),
        }
    }
}
