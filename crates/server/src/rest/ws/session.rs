//! Which session a connection is about, on whose behalf.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use ostler_engine::{Error, LeaseHolder};
use ostler_model::{Caller, TermSize};

use crate::rest::response::RestResult;
use crate::rest::state::RestState;
use ostler_api::TerminalServerMessage;

/// A session as one connection sees it; cheap to clone.
#[derive(Debug, Clone)]
pub(super) struct WsSession {
    pub(super) state: RestState,
    pub(super) caller: Caller,
    /// The whole id.
    pub(super) id: String,
}

/// The lease that a connection was granted.
#[derive(Debug)]
pub(super) struct GrantedLease {
    /// The holder's name.
    pub(super) name: String,
    /// Who the engine calls the holder while it is this connection; none: it is already
    /// somebody else.
    pub(super) own: Option<LeaseHolder>,
}

/// Wishes to type whose answer is not on its way to the client yet. Until it is, only the
/// hands know whose the lease is, and the eyes tell nothing of it: the client would be told
/// about itself as of a stranger, before the answer.
#[derive(Debug, Clone, Default)]
pub(super) struct PendingLeaseRequests(Arc<AtomicUsize>);

impl PendingLeaseRequests {
    /// One more; said before it is carried out.
    pub(super) fn add(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    /// The eyes have the answer.
    pub(super) fn resolve(&self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }

    pub(super) fn has_pending(&self) -> bool {
        self.0.load(Ordering::Relaxed) > 0
    }
}

/// What the hands have for the eyes to say.
#[derive(Debug)]
pub(super) enum SenderCommand {
    /// As it is.
    Send(TerminalServerMessage),
    /// A wish to type is granted: the answer to it.
    LeaseGranted(GrantedLease),
    /// A wish to type is refused: the answer to it.
    LeaseRefused(TerminalServerMessage),
    /// This connection does not hold the lease any more.
    LeaseReleased,
    /// The client wants the screen painted anew.
    Repaint,
}

impl WsSession {
    /// Who types, if anybody.
    pub(super) fn holder(&self) -> RestResult<Option<LeaseHolder>> {
        Ok(self.state.engine.lease_holder(&self.caller, &self.id)?)
    }

    /// Whether the session has ended.
    pub(super) fn is_finished(&self) -> bool {
        let info = self.state.engine.info(&self.caller, &self.id);
        info.is_ok_and(|info| info.state.is_finished())
    }

    /// The terminal's size now.
    pub(super) fn size(&self) -> RestResult<TermSize> {
        let info = self.state.engine.info(&self.caller, &self.id)?;
        let none = || Error::NoTerminal { id: info.id };
        Ok(info.size().ok_or_else(none)?)
    }
}
