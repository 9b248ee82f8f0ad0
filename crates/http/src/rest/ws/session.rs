//! The session of a connection, and the caller it acts for.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use ostler_api::TerminalServerMessage;
use ostler_engine::{Error, LeaseHolder};
use ostler_model::{Caller, TermSize};

use crate::rest::response::RestResult;
use crate::rest::state::RestState;

/// A session as one connection sees it; cheap to clone.
#[derive(Debug, Clone)]
pub(super) struct WsSession {
    pub(super) state: RestState,
    pub(super) caller: Caller,
    /// The full id.
    pub(super) id: String,
}

/// A lease granted to this connection.
#[derive(Debug)]
pub(super) struct GrantedLease {
    /// The holder's name.
    pub(super) name: String,
    /// The engine's name for this connection as the holder; none when another client already holds
    /// the lease.
    pub(super) own: Option<LeaseHolder>,
}

/// Counts lease requests whose response the sender has not received yet. Meanwhile only the
/// receiver knows the holder, and the sender reports no change of holder: otherwise the client
/// would be informed, before the response, that another client holds the lease that it holds
/// itself.
#[derive(Debug, Clone, Default)]
pub(super) struct PendingLeaseRequests(Arc<AtomicUsize>);

impl PendingLeaseRequests {
    /// Counts one more request; called before it is carried out.
    pub(super) fn add(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    /// The sender has the answer.
    pub(super) fn resolve(&self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }

    pub(super) fn has_pending(&self) -> bool {
        self.0.load(Ordering::Relaxed) > 0
    }
}

/// What the receiver has the sender do.
#[derive(Debug)]
pub(super) enum SenderCommand {
    /// Send this message.
    Send(TerminalServerMessage),
    /// Answer a lease request: granted.
    LeaseGranted(GrantedLease),
    /// Answer a lease request: refused.
    LeaseRefused(TerminalServerMessage),
    /// This connection does not hold the lease any more.
    LeaseReleased,
    /// Repaint the screen.
    Repaint,
}

impl WsSession {
    /// The holder of the lease, if any.
    pub(super) fn holder(&self) -> RestResult<Option<LeaseHolder>> {
        Ok(self.state.engine.lease_holder(&self.caller, &self.id)?)
    }

    /// Whether the session has ended.
    pub(super) fn is_finished(&self) -> bool {
        let info = self.state.engine.info(&self.caller, &self.id);
        info.is_ok_and(|info| info.state.is_finished())
    }

    /// The terminal's present size.
    pub(super) fn size(&self) -> RestResult<TermSize> {
        let info = self.state.engine.info(&self.caller, &self.id)?;
        let none = || Error::NoTerminal { id: info.id };
        Ok(info.size().ok_or_else(none)?)
    }
}
