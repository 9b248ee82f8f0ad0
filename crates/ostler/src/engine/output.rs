//! The methods that read and drop recorded output.

use ostler_engine::{Error, OutputFollower};
use ostler_journal::Journal;
use ostler_model::{Caller, Cursor};

use super::Engine;

impl Engine {
    /// The journal, for reading.
    ///
    /// # Errors
    /// [`Error::NotFound`], [`Error::Output`].
    pub fn journal(&self, caller: &Caller, id: &str) -> Result<Journal, Error> {
        self.0.journal(caller, id)
    }

    /// Follows output from a position on.
    ///
    /// # Errors
    /// As [`Engine::journal`].
    pub fn follow(&self, caller: &Caller, id: &str, from: Cursor) -> Result<OutputFollower, Error> {
        self.0.follow(caller, id, from)
    }

    /// Drops all output so far, also while it runs; returns how many bytes.
    ///
    /// # Errors
    /// [`Error::NotFound`], [`Error::ClearOutput`].
    pub async fn clear_output(&self, caller: &Caller, id: &str) -> Result<u64, Error> {
        self.0.clear_output(caller, id).await
    }
}
