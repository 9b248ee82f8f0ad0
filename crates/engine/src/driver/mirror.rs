//! The live copy (mirror) of a running command's journal in another format.

use ostler_export::{ExportError, Format};
use ostler_journal::WriteError;

use super::event_loop::Driver;
use crate::mirror;

impl Driver {
    /// Brings the copy level with the journal, where one is kept.
    pub(super) fn update_mirror(&mut self) {
        let Some(format) = self.core.settings.mirror else {
            return;
        };
        if let Err(error) = self.advance_mirror(format) {
            tracing::warn!(id = %self.execution.id, %error, "the mirror is behind");
        }
    }

    /// Removes output that was cleared from the copies, and continues the one that is kept.
    pub(super) fn clear_mirror(&mut self) -> Result<(), WriteError> {
        self.mirror = None;
        let existed = mirror::remove_copies(&self.execution)?;
        if existed {
            self.update_mirror();
        }
        Ok(())
    }

    fn advance_mirror(&mut self, format: Format) -> Result<(), ExportError> {
        let copy = match &mut self.mirror {
            Some(copy) => copy,
            None => self.mirror.insert(mirror::open(&self.execution, format)?),
        };
        mirror::advance(copy, &self.execution)
    }
}
