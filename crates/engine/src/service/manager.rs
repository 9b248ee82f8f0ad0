//! [`ServiceManager`]: the services of one engine, with what they are built on.

use std::sync::Arc;

use super::registry::ServiceRegistry;
use crate::engine_inner::EngineInner;
use crate::start::Launcher;

/// Starts, finds and stops services by name. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct ServiceManager {
    pub(super) core: Arc<EngineInner>,
    pub(super) launcher: Launcher,
    pub(super) services: Arc<ServiceRegistry>,
}

impl ServiceManager {
    pub(crate) const fn new(
        core: Arc<EngineInner>,
        launcher: Launcher,
        services: Arc<ServiceRegistry>,
    ) -> Self {
        Self {
            core,
            launcher,
            services,
        }
    }
}
