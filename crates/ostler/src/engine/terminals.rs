//! The methods for terminal sessions.

use ostler_engine::{
    Error, Lease, LeaseHolder, LeaseId, TerminalEvents, TerminalInput, TerminalInputResult,
    TerminalPage, TerminalPageQuery,
};
use ostler_model::{Caller, Cursor, TermSize};
use ostler_terminal::{Checkpoint, ScreenSnapshot};

use super::Engine;

impl Engine {
    /// The current screen; of an ended session, the last one.
    ///
    /// # Errors
    /// [`Error::SessionNotFound`], [`Error::NoTerminal`], [`Error::Output`].
    pub async fn screen(&self, caller: &Caller, id: &str) -> Result<ScreenSnapshot, Error> {
        self.0.screen(caller, id).await
    }

    /// As [`Engine::screen`], for a client whose own terminal mirrors it: the bytes that paint it,
    /// and the offset at which following continues ([`Checkpoint::offset`]).
    ///
    /// # Errors
    /// As [`Engine::screen`].
    pub async fn repaint(&self, caller: &Caller, id: &str) -> Result<(Vec<u8>, Checkpoint), Error> {
        self.0.repaint(caller, id).await
    }

    /// Raw output by byte offsets.
    ///
    /// # Errors
    /// As [`Engine::screen`].
    pub async fn read_terminal(
        &self,
        caller: &Caller,
        id: &str,
        query: TerminalPageQuery,
    ) -> Result<TerminalPage, Error> {
        self.0.read_terminal(caller, id, query).await
    }

    /// Sends input (text, keys, pastes, bytes) as one atomic write.
    ///
    /// # Errors
    /// As [`Engine::screen`]; [`Error::Leased`] when another caller holds the lease,
    /// [`Error::ControlFailed`] when it has ended, [`Error::Argument`] beyond 4 MiB.
    pub async fn send_input(
        &self,
        caller: &Caller,
        id: &str,
        request: TerminalInput,
    ) -> Result<TerminalInputResult, Error> {
        self.0.send_input(caller, id, request).await
    }

    /// Resizes the terminal.
    ///
    /// # Errors
    /// As [`Engine::write`].
    pub async fn resize(&self, caller: &Caller, id: &str, size: TermSize) -> Result<(), Error> {
        self.0.resize(caller, id, size).await
    }

    /// Resizes the terminal; needs the writer's lease if there is one.
    ///
    /// # Errors
    /// As [`Engine::send_input`]; [`Error::Argument`] for an invalid size.
    pub async fn resize_terminal(
        &self,
        caller: &Caller,
        id: &str,
        size: TermSize,
        lease: Option<&LeaseId>,
    ) -> Result<(), Error> {
        self.0.resize_terminal(caller, id, size, lease).await
    }

    /// Acquires the writer's lease; with `take_over` also from its holder. `name` identifies the
    /// holder to others, in at most 256 bytes.
    ///
    /// # Errors
    /// As [`Engine::send_input`].
    pub async fn acquire_lease(
        &self,
        caller: &Caller,
        id: &str,
        name: &str,
        take_over: bool,
    ) -> Result<Lease, Error> {
        self.0.acquire_lease(caller, id, name, take_over).await
    }

    /// The holder of the writer's lease, if any.
    ///
    /// # Errors
    /// As [`Engine::screen`].
    pub fn lease_holder(&self, caller: &Caller, id: &str) -> Result<Option<LeaseHolder>, Error> {
        self.0.lease_holder(caller, id)
    }

    /// The session's events from a position on.
    ///
    /// # Errors
    /// As [`Engine::screen`].
    pub fn terminal_events(
        &self,
        caller: &Caller,
        id: &str,
        from: Cursor,
    ) -> Result<TerminalEvents, Error> {
        self.0.terminal_events(caller, id, from)
    }
}
