//! Ended services that nobody wants to hear of any more.

use std::path::Path;

use ostler_model::{Caller, Principal};
use serde::{Deserialize, Serialize};

use super::caller_services::name_of;
use super::starter::ServiceStarter;
use super::{ServiceError, ServiceInfo};
use crate::engine::Engine;
use crate::error::Error;
use crate::json_file;

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
    /// [`Error::ImportedService`] for an unknown name and for one that lives, [`Error::Storage`].
    pub fn dismiss_service(
        &self,
        caller: &Caller,
        name: &str,
        cwd: Option<&Path>,
    ) -> Result<ServiceInfo, Error> {
        let context = self.context_at(cwd);
        let starter = ServiceStarter::new(&self.inner, caller, &context);
        let entry = starter.services().get(name)?;
        if !entry.is_finished() {
            return Err(ServiceError::Living {
                name: name_of(&entry),
                id: entry.id.short(),
            }
            .into());
        }
        if !entry.is_dismissed() {
            let file = DismissalFile {
                version: VERSION,
                by: caller.owner.principal.clone(),
            };
            json_file::replace(&entry.dir, FILE, &file)?;
            entry.dismiss();
        }
        Ok(starter.service_info(&entry))
    }
}

/// Whether an execution was dismissed under an earlier engine.
pub(crate) fn was_dismissed(dir: &Path) -> bool {
    dir.join(FILE).exists()
}
