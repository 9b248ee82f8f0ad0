//! [`InteractionWatch`]: follows the interactions that one caller sees.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use ostler_model::Caller;
use tokio::sync::watch;
use tokio::time::Instant;

use super::changes::InteractionChanges;
use super::service::InteractionService;
use super::state::Interaction;
use crate::interaction_id::InteractionId;

/// How often a watcher has the commands that may ask sampled: within a lease of the resource
/// monitor, which is five seconds.
const RENEWAL: Duration = Duration::from_secs(4);

/// What a watcher of interactions learns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InteractionNews {
    /// It was opened, or is one of the watcher's from now on.
    Opened(Interaction),
    /// It was answered or cancelled, or timed out.
    Ended(Interaction),
    /// The watcher does not see it any more: it passed to another owner, or ended so long ago that
    /// how it ended is not kept.
    Gone(InteractionId),
}

/// Follows the interactions that a caller sees. A watcher that looks rarely learns of each
/// interaction all the same, as long as the ended ones are kept.
pub struct InteractionWatch {
    service: Arc<InteractionService>,
    caller: Caller,
    changes: watch::Receiver<u64>,
    known: KnownInteractions,
    /// Has the commands that may ask checked more often, for [`RENEWAL`] at least.
    sample_often: Box<dyn Fn() + Send + Sync>,
    renew_at: Instant,
}

impl fmt::Debug for InteractionWatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InteractionWatch").finish_non_exhaustive()
    }
}

impl InteractionWatch {
    pub(crate) fn new(
        service: Arc<InteractionService>,
        caller: Caller,
        sample_often: Box<dyn Fn() + Send + Sync>,
    ) -> Self {
        Self {
            changes: service.changes(),
            service,
            caller,
            known: KnownInteractions::default(),
            sample_often,
            renew_at: Instant::now(),
        }
    }

    /// What is new: at first all open interactions, oldest first.
    pub fn refresh(&mut self) -> Vec<InteractionNews> {
        self.changes.mark_unchanged();
        let known = &self.known;
        let changes = self
            .service
            .changes_since(&self.caller, known.position, &known.open);
        self.known.update(changes)
    }

    /// Waits until there may be something new. Cancel safe.
    pub async fn changed(&mut self) {
        loop {
            tokio::select! {
                biased;
                // The sender is owned by the service, so this cannot fail.
                _changed = self.changes.changed() => return,
                () = tokio::time::sleep_until(self.renew_at) => {
                    (self.sample_often)();
                    self.renew_at = Instant::now() + RENEWAL;
                }
            }
        }
    }
}

/// The open interactions that a watcher knows, and up to which change.
#[derive(Debug, Default)]
pub(super) struct KnownInteractions {
    pub(super) position: u64,
    pub(super) open: BTreeSet<InteractionId>,
}

impl KnownInteractions {
    /// What the changes since its position tell the watcher.
    pub(super) fn update(&mut self, changes: InteractionChanges) -> Vec<InteractionNews> {
        let is_first = self.position == 0;
        let mut news = Vec::new();
        for interaction in changes.changed {
            if interaction.is_open() {
                if self.open.insert(interaction.id) {
                    news.push(InteractionNews::Opened(interaction));
                }
            } else if self.open.remove(&interaction.id) {
                news.push(InteractionNews::Ended(interaction));
            } else if !is_first {
                // Opened and ended since the last look.
                let opened = Interaction {
                    state: ostler_model::InteractionState::Open,
                    ..interaction.clone()
                };
                news.push(InteractionNews::Opened(opened));
                news.push(InteractionNews::Ended(interaction));
            }
        }
        for id in changes.gone {
            if self.open.remove(&id) {
                news.push(InteractionNews::Gone(id));
            }
        }
        self.position = changes.position;
        news
    }
}
