//! Pausing and resuming: the request to the backend, its result, and the recorded events.

use ostler_backend::ControlError;
use ostler_model::Timestamp;

use crate::execution::FreezeRequest;
use crate::supervisor::{SupervisorEffect, SupervisorInput};

use super::event_loop::Driver;

impl Driver {
    /// Sends the command; its result arrives as a report.
    pub(super) async fn freeze(&mut self, freeze: FreezeRequest) {
        let frozen = freeze.frozen;
        if self.supervisor.is_live() && self.supervisor.state().paused == frozen {
            // The caller may have gone.
            let _gone = freeze.reply.send(Ok(true)).is_err();
            return;
        }
        let now = Timestamp::now();
        let effects = self
            .supervisor
            .handle(now, SupervisorInput::Freeze { frozen });
        let mut sent = Err(ControlError::Ended);
        for effect in effects {
            if let SupervisorEffect::Send(order) = effect {
                sent = self.send(order).await;
            }
        }
        match sent {
            Ok(()) => self.pending_freezes.push(freeze),
            // The caller may have gone.
            Err(error) => drop(freeze.reply.send(Err(error))),
        }
    }

    /// The tree is frozen or thawed now. Without a request, it was so when this engine found it:
    /// then it is attributed to its owner.
    pub(super) async fn on_frozen(&mut self, frozen: bool) {
        // The report at an adoption answers no request.
        let requests = if std::mem::take(&mut self.adopted) {
            Vec::new()
        } else {
            std::mem::take(&mut self.pending_freezes)
        };
        let requester = requests.iter().find(|it| it.frozen == frozen);
        let by = requester.map_or_else(
            || self.execution.owner().principal.clone(),
            |it| it.by.clone(),
        );
        self.step(SupervisorInput::Frozen { frozen, by }).await;
        for freeze in requests {
            // The caller may have gone.
            let _gone = freeze.reply.send(Ok(freeze.frozen == frozen)).is_err();
        }
    }
}
