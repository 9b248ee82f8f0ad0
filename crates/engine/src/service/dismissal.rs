//! Dismissal: ended services that are left out of lists.

use std::path::Path;

use ostler_model::Caller;

use super::caller_services::name_of;
use super::manager::ServiceManager;
use super::starter::ServiceStarter;
use super::{ServiceError, ServiceInfo};
use crate::dismissal_file;
use crate::error::Error;

impl ServiceManager {
    /// See [`Engine::dismiss_service`](crate::Engine::dismiss_service).
    pub(crate) fn dismiss_service(
        &self,
        caller: &Caller,
        name: &str,
        cwd: Option<&Path>,
    ) -> Result<ServiceInfo, Error> {
        let context = self.context_at(cwd);
        let starter = ServiceStarter::new(self, caller, &context);
        let entry = match starter.services().get(name) {
            Ok(entry) => entry,
            Err(error) => {
                let failed = &self.services.failed_starts;
                let dismissed = failed.dismiss(caller, name, context.name_scope());
                return dismissed.ok_or(error);
            }
        };
        if !entry.is_finished() {
            return Err(ServiceError::Living {
                name: name_of(&entry),
                id: entry.id.short(),
            }
            .into());
        }
        if !entry.is_dismissed() {
            dismissal_file::write(&entry.dir, &caller.owner.principal)?;
            entry.dismiss();
        }
        Ok(starter.service_info(&entry))
    }
}
