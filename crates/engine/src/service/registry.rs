//! Runtime state of services that the registry of executions does not hold.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use ostler_model::{Caller, ExecutionId, ServicePlan, Timestamp};
use parking_lot::Mutex;

use super::definition_store::DefinitionStore;
use super::failed_starts::{FailedStart, FailedStarts};
use super::locks::ServiceKey;
use super::pending::PendingServices;
use super::pending_start_file::PendingStartFile;
use super::plan_task::StartPlans;
use super::reload::ManifestWatches;
use super::starter::ResolvedService;
use super::{ServiceInfo, build_request};
use crate::detection::{DetectedService, DetectionTable, DiskFiles};
use crate::engine_inner::EngineInner;
use crate::error::Error;
use crate::hooks::ExecutionObserver;
use crate::keyed_mutex::KeyedMutex;
use crate::request::StartRequest;
use crate::settings::Settings;

#[derive(Debug)]
pub(crate) struct ServiceRegistry {
    /// One lock per service name.
    pub(crate) locks: KeyedMutex<ServiceKey>,
    /// Held from the choice of a name and a port until the registry of executions holds them.
    pub(crate) admission_lock: tokio::sync::Mutex<()>,
    /// Definitions made through the API.
    pub(crate) definitions: DefinitionStore,
    /// The watched `ostler.toml` files.
    pub(crate) watches: ManifestWatches,
    /// Services that are to start and do not run yet.
    pub(crate) pending: PendingServices,
    /// Start plans that run as tasks.
    pub(crate) plans: StartPlans,
    table: OnceLock<DetectionTable>,
    /// The request that each was started with, its client's environment included.
    requests: Mutex<HashMap<ExecutionId, Arc<ResolvedService>>>,
    pub(crate) failed_starts: FailedStarts,
}

impl ServiceRegistry {
    /// Opens the registry with the definitions that an earlier engine stored.
    pub(crate) fn open(settings: &Settings) -> Result<Self, Error> {
        let file = PendingStartFile::new(&settings.state_dir);
        let failed_starts = FailedStarts::default();
        for (key, start) in file.read_interrupted()? {
            failed_starts.insert(key, start);
        }
        Ok(Self {
            locks: KeyedMutex::default(),
            admission_lock: tokio::sync::Mutex::new(()),
            definitions: DefinitionStore::open(&settings.state_dir)?,
            watches: ManifestWatches::default(),
            table: OnceLock::new(),
            requests: Mutex::default(),
            pending: PendingServices::default(),
            plans: StartPlans::new(file),
            failed_starts,
        })
    }

    /// The service that the table recognises in a command.
    pub(crate) fn detect(
        &self,
        settings: &Settings,
        request: &StartRequest,
    ) -> Option<DetectedService> {
        let table = self.table.get_or_init(|| {
            let configured = settings.services.table.clone();
            configured.unwrap_or_else(DetectionTable::shipped)
        });
        table.detect(build_request::detection_subject(request), &DiskFiles)
    }

    /// Stores the request of an execution, for a restart.
    pub(crate) fn store_request(
        &self,
        core: &EngineInner,
        id: ExecutionId,
        mut service: ResolvedService,
    ) {
        // A restart is another execution.
        service.request.start.id = None;
        self.requests.lock().insert(id, Arc::new(service));
        if !core.registry.contains(id) {
            // It was removed already: nobody tells of that again.
            self.removed(id);
        }
    }

    /// The request that an execution was started with; none where an earlier engine started it.
    pub(crate) fn stored_request(&self, id: ExecutionId) -> Option<Arc<ResolvedService>> {
        self.requests.lock().get(&id).cloned()
    }

    /// Records the outcome of the last start of a service: the error, or none.
    pub(crate) fn record_start(&self, caller: &Caller, key: ServiceKey, problem: Option<String>) {
        match problem {
            None => self.failed_starts.remove(&key),
            Some(problem) => self.record_failed_start(caller, key, problem, None),
        }
    }

    /// Records a start that failed; `unlisted` is the service where no definition lists it.
    pub(crate) fn record_failed_start(
        &self,
        caller: &Caller,
        key: ServiceKey,
        problem: String,
        unlisted: Option<Box<ServiceInfo>>,
    ) {
        let start = FailedStart {
            owner: caller.owner.clone(),
            at: Timestamp::now(),
            problem,
            unlisted,
        };
        self.failed_starts.insert(key, start);
    }
}

impl ExecutionObserver for ServiceRegistry {
    fn removed(&self, id: ExecutionId) {
        self.requests.lock().remove(&id);
    }
}

/// The info of a service that has no execution yet.
pub(crate) fn unstarted_info(name: &str, command: String, plan: ServicePlan) -> ServiceInfo {
    ServiceInfo {
        name: name.to_owned(),
        execution: None,
        defined_in: plan.defined_in.as_ref().map(ToString::to_string),
        definition: None,
        workspace: None,
        command,
        plan,
        pending: None,
        dismissed: false,
        notes: Vec::new(),
    }
}
