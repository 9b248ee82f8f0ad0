//! Ended services that nobody wants to hear of any more.

use std::path::Path;

use ostler_model::{Caller, Principal};
use serde::{Deserialize, Serialize};

use super::clerk::Clerk;
use super::view::name_of;
use super::{ServiceError, ServiceInfo};
use crate::engine::Engine;
use crate::entry::Entry;
use crate::error::Error;

/// The file in an execution's directory that says that it was dismissed.
const FILE: &str = "dismissed.json";
const VERSION: u8 = 1;

#[derive(Debug, Serialize, Deserialize)]
struct DismissalFile {
    version: u8,
    by: Principal,
}

impl Engine {
    /// Leaves an ended service out of lists from now on, also under later engines; by name and
    /// id it is found as before. Dismissing it again changes nothing.
    ///
    /// # Errors
    /// [`Error::Service`] for an unknown name and for one that lives, [`Error::Storage`].
    pub fn dismiss_service(
        &self,
        caller: &Caller,
        name: &str,
        cwd: Option<&Path>,
    ) -> Result<ServiceInfo, Error> {
        let context = self.context_at(cwd);
        let clerk = Clerk::new(&self.core, caller, &context);
        let entry = clerk.view().get(name)?;
        if !entry.is_finished() {
            return Err(ServiceError::Living {
                name: name_of(&entry),
                id: entry.id.short(),
            }
            .into());
        }
        if !entry.is_dismissed() {
            write(&entry, &caller.owner.principal)?;
            entry.dismiss();
        }
        Ok(clerk.told(&entry))
    }
}

fn write(entry: &Entry, by: &Principal) -> Result<(), Error> {
    let path = entry.dir.join(FILE);
    let aside = entry.dir.join(".dismissed.json.new");
    let failed = |source: std::io::Error| Error::Storage {
        what: "cannot write",
        path: path.clone(),
        source,
    };
    let file = DismissalFile {
        version: VERSION,
        by: by.clone(),
    };
    let bytes = serde_json::to_vec(&file).map_err(|error| failed(error.into()))?;
    std::fs::write(&aside, bytes).map_err(failed)?;
    std::fs::rename(&aside, &path).map_err(failed)
}

/// Whether an execution was dismissed under an earlier engine.
pub(crate) fn was_dismissed(dir: &Path) -> bool {
    dir.join(FILE).exists()
}
