//! Pausing: the order, its answer, and what is on record of it.

use ostler_model::{Principal, Timestamp};
use ostler_process::ControlError;
use tokio::sync::oneshot;

use crate::supervisor::{Effect, Input};

use super::run::Driver;

/// Somebody wants a tree to stand still or go on.
#[derive(Debug)]
pub(crate) struct Freeze {
    /// Which of both.
    pub(crate) frozen: bool,
    /// Who.
    pub(crate) by: Principal,
    /// Whether it is so, once it is on record; dropped when the tree ends before.
    pub(crate) answer: oneshot::Sender<Result<bool, ControlError>>,
}

impl Driver {
    /// Hands the order over; its answer is a report.
    pub(super) async fn freeze(&mut self, freeze: Freeze) {
        let frozen = freeze.frozen;
        if self.supervisor.is_live() && self.supervisor.state().paused == frozen {
            // Whoever asked may have gone.
            let _gone = freeze.answer.send(Ok(true)).is_err();
            return;
        }
        let now = Timestamp::now();
        let effects = self.supervisor.handle(now, Input::Freeze { frozen });
        let mut sent = Err(ControlError::Ended);
        for effect in effects {
            if let Effect::Send(order) = effect {
                sent = self.send(order).await;
            }
        }
        match sent {
            Ok(()) => self.freezes.push(freeze),
            // Whoever asked may have gone.
            Err(error) => drop(freeze.answer.send(Err(error))),
        }
    }

    /// The tree stands still now, or goes on. Without anybody who asked, it was so when this
    /// engine found it: then it is its owner's doing.
    pub(super) async fn frozen(&mut self, frozen: bool) {
        // What is said at an adoption is no answer to anybody.
        let freezes = if std::mem::take(&mut self.greeted) {
            Vec::new()
        } else {
            std::mem::take(&mut self.freezes)
        };
        let asked = freezes.iter().find(|it| it.frozen == frozen);
        let by = asked.map_or_else(|| self.entry.owner().principal.clone(), |it| it.by.clone());
        self.feed(Input::Frozen { frozen, by }).await;
        for freeze in freezes {
            // Whoever asked may have gone.
            let _gone = freeze.answer.send(Ok(freeze.frozen == frozen)).is_err();
        }
    }
}
