//! The facade's methods for terminal sessions.

use std::sync::Arc;

use ostler_backend::{ControlCommand, ControlError};
use ostler_journal::ReadError;
use ostler_model::{Caller, Cursor, TermSize, Timestamp};
use ostler_terminal::{Checkpoint, Screen, ScreenSnapshot, ShellState, encode};

use super::Engine;
use crate::admission::arguments;
use crate::error::Error;
use crate::execution::{ExecutionHandle, forward_command, write_input};
use crate::lease::{LEASE_NAME_BYTES, Lease, LeaseHolder, LeaseId, acquire_lease};
use crate::search::SentInput;
use crate::terminal::page::{self, ViewWindow};
use crate::terminal::{
    TERMINAL_VIEW_MAX_BYTES, TYPING_BYTES, TerminalEvents, TerminalInput, TerminalInputResult,
    TerminalPage, TerminalPageQuery, mode_independent_bytes, terminal_size,
};

/// Pages up to this many bytes are read in place; more on a thread of its own.
const INLINE_BYTES: u64 = 256 * 1024;

impl Engine {
    /// The current screen; of an ended session, the last one.
    ///
    /// # Errors
    /// [`Error::SessionNotFound`], [`Error::NoTerminal`], [`Error::Output`].
    pub async fn screen(&self, caller: &Caller, id: &str) -> Result<ScreenSnapshot, Error> {
        let entry = self.terminal(caller, id)?;
        self.screens.with_screen(&entry, Screen::snapshot).await
    }

    /// As [`Engine::screen`], for a client whose own terminal mirrors it: the bytes that paint it,
    /// and the offset at which following continues ([`Checkpoint::offset`]).
    ///
    /// # Errors
    /// As [`Engine::screen`].
    pub async fn repaint(&self, caller: &Caller, id: &str) -> Result<(Vec<u8>, Checkpoint), Error> {
        let entry = self.terminal(caller, id)?;
        let repaint = |screen: &Screen| (screen.repaint(), screen.checkpoint());
        self.screens.with_screen(&entry, repaint).await
    }

    /// The state of its shell, derived from the shell integration's markers.
    ///
    /// # Errors
    /// As [`Engine::screen`].
    pub async fn shell_state(&self, caller: &Caller, id: &str) -> Result<ShellState, Error> {
        let entry = self.terminal(caller, id)?;
        let state = |screen: &Screen| screen.shell().clone();
        self.screens.with_screen(&entry, state).await
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
        let entry = self.terminal(caller, id)?;
        let settings = self.inner.settings.terminal_view_bytes;
        // In this order: a finished execution has its whole output on disk.
        let finished = entry.is_finished();
        let window = ViewWindow {
            view_bytes: settings.min(TERMINAL_VIEW_MAX_BYTES),
            dropped_to: entry.timeline.dropped_to(),
            finished,
        };
        let journal = match entry.journal() {
            Ok(journal) => journal,
            // Not spawned yet, or never: there is no output.
            Err(Error::Output(ReadError::Missing { .. })) => return Ok(TerminalPage::empty()),
            Err(error) => return Err(error),
        };
        if query.limit.is_some_and(|limit| limit <= INLINE_BYTES) {
            return Ok(page::read(&journal, query, window)?);
        }
        let read = tokio::task::spawn_blocking(move || page::read(&journal, query, window));
        Ok(read.await.map_err(|_| Error::Closing)??)
    }

    /// Sends input (text, keys, pastes, bytes) as one atomic write.
    ///
    /// # Errors
    /// As [`Engine::screen`]; [`Error::Leased`] when another caller holds the lease,
    /// [`Error::ControlFailed`] when it has ended, [`Error::Argument`] beyond [`TYPING_BYTES`].
    pub async fn send_input(
        &self,
        caller: &Caller,
        id: &str,
        request: TerminalInput,
    ) -> Result<TerminalInputResult, Error> {
        let entry = self.terminal(caller, id)?;
        ensure_running(&entry)?;
        self.inner.open_readers.keep_open(&entry);
        let lease = request.lease.as_ref();
        self.leases.check(entry.id, lease)?;
        let bytes = match mode_independent_bytes(&request.pieces) {
            Some(bytes) => bytes,
            None => {
                let modes = self.screens.with_screen(&entry, Screen::modes).await?;
                encode(&request.pieces, modes)
            }
        };
        arguments::check_length("what is typed", bytes.len(), TYPING_BYTES)?;
        if bytes.is_empty() {
            let input = SentInput::new(entry.fresh_info().output_end, Vec::new());
            let (bytes, accepted) = (0, 0);
            return Ok(TerminalInputResult {
                bytes,
                accepted,
                input,
            });
        }
        let length = bytes.len() as u64;
        let lines = SentInput::lines_of(&bytes);
        let written = write_input(&entry, caller, bytes, false).await?;
        Ok(TerminalInputResult {
            bytes: length,
            accepted: written.accepted,
            input: SentInput::new(written.sent_offset, lines),
        })
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
        arguments::check_terminal_size(size)?;
        let entry = self.terminal(caller, id)?;
        self.leases.check(entry.id, lease)?;
        forward_command(&entry, ControlCommand::Resize(size)).await
    }

    /// Acquires the writer's lease; with `take_over` also from its holder. `name` identifies the
    /// holder to others, in at most [`LEASE_NAME_BYTES`].
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
        arguments::check_length("the name", name.len(), LEASE_NAME_BYTES)?;
        let entry = self.terminal(caller, id)?;
        ensure_running(&entry)?;
        let holder = LeaseHolder {
            principal: caller.owner.principal.clone(),
            name: name.to_owned(),
            since: Timestamp::now(),
        };
        acquire_lease(&self.leases, &entry, holder, take_over)
    }

    /// The holder of the writer's lease, if any.
    ///
    /// # Errors
    /// As [`Engine::screen`].
    pub fn lease_holder(&self, caller: &Caller, id: &str) -> Result<Option<LeaseHolder>, Error> {
        let entry = self.terminal(caller, id)?;
        Ok(self.leases.holder(entry.id))
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
        Ok(TerminalEvents::new(self.terminal(caller, id)?, from))
    }

    /// The session with this id, if the caller may see it.
    pub(super) fn terminal(
        &self,
        caller: &Caller,
        id: &str,
    ) -> Result<Arc<ExecutionHandle>, Error> {
        let found = self.inner.registry.find(caller, id);
        let entry = found.map_err(Error::for_session)?;
        match terminal_size(&entry) {
            Some(_) => Ok(entry),
            None => Err(Error::NoTerminal { id: entry.id }),
        }
    }
}

fn ensure_running(entry: &ExecutionHandle) -> Result<(), Error> {
    if entry.is_finished() {
        return Err(ControlError::Ended.into());
    }
    Ok(())
}
