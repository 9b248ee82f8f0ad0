//! The live copy of a journal in another format (A2).

use ostler_journal::export::ExportError;
use ostler_journal::{Mirror, Subject, read_events};

use super::run::Driver;

impl Driver {
    /// Brings the copy level with the journal, where one is kept.
    pub(super) fn mirror(&mut self) {
        let Some(format) = self.core.settings.mirror else {
            return;
        };
        if let Err(error) = self.advance(format) {
            tracing::warn!(id = %self.entry.id, %error, "the mirror is behind");
        }
    }

    fn advance(&mut self, format: ostler_journal::Format) -> Result<(), ExportError> {
        let mirror = match &mut self.mirror {
            Some(mirror) => mirror,
            None => {
                let journal = ostler_journal::Journal::open(&self.entry.dir)?;
                let opened = Mirror::open(&self.entry.dir, journal, format)?;
                self.mirror.insert(opened)
            }
        };
        let events = read_events(&self.entry.dir)?;
        mirror.advance(&Subject {
            id: self.entry.id,
            spec: Some(&self.entry.spec),
            events: &events,
        })?;
        Ok(())
    }
}
