//! The live copy (mirror) of a journal in another format.

use ostler_export::{ExportError, ExportSubject, Format, Mirror};
use ostler_journal::read_events;

use super::event_loop::Driver;

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

    fn advance_mirror(&mut self, format: Format) -> Result<(), ExportError> {
        let mirror = match &mut self.mirror {
            Some(mirror) => mirror,
            None => {
                let journal = ostler_journal::Journal::open(&self.execution.dir)?;
                let opened = Mirror::open(&self.execution.dir, journal, format)?;
                self.mirror.insert(opened)
            }
        };
        let events = read_events(&self.execution.dir)?;
        mirror.advance(&ExportSubject {
            id: self.execution.id,
            spec: Some(&self.execution.spec),
            events: &events,
        })?;
        Ok(())
    }
}
