//! Runtime state of services that the registry of executions does not hold.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use ostler_model::{Caller, ExecutionId, Owner, ServicePlan, Timestamp};
use parking_lot::Mutex;

use super::definition_store::DefinitionStore;
use super::locks::ServiceKey;
use super::pending::PendingServices;
use super::plan_task::StartPlans;
use super::reload::ManifestWatches;
use super::starter::ResolvedService;
use super::{ServiceInfo, build_request, format};
use crate::detection::{DetectedService, DetectionTable, DiskFiles};
use crate::engine_inner::EngineInner;
use crate::error::Error;
use crate::hooks::ExecutionObserver;
use crate::keyed_mutex::KeyedMutex;
use crate::request::StartRequest;
use crate::settings::Settings;

/// The most failed starts that are remembered.
const FAILED_STARTS: usize = 256;

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
    failed_starts: Mutex<HashMap<ServiceKey, FailedStart>>,
}

/// The last start of a service, which failed before there was an execution of it.
#[derive(Debug)]
struct FailedStart {
    owner: Owner,
    at: Timestamp,
    problem: String,
}

impl ServiceRegistry {
    /// Opens the registry with the definitions that an earlier engine stored.
    pub(crate) fn open(settings: &Settings) -> Result<Self, Error> {
        Ok(Self {
            locks: KeyedMutex::default(),
            admission_lock: tokio::sync::Mutex::new(()),
            definitions: DefinitionStore::open(&settings.state_dir)?,
            watches: ManifestWatches::default(),
            table: OnceLock::new(),
            requests: Mutex::default(),
            pending: PendingServices::default(),
            plans: StartPlans::default(),
            failed_starts: Mutex::default(),
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
        let mut failed = self.failed_starts.lock();
        let Some(problem) = problem else {
            failed.remove(&key);
            return;
        };
        if failed.len() >= FAILED_STARTS && !failed.contains_key(&key) {
            let oldest = failed.iter().min_by_key(|(_, start)| start.at);
            let oldest = oldest.map(|(key, _)| key.clone());
            oldest.and_then(|key| failed.remove(&key));
        }
        let start = FailedStart {
            owner: caller.owner.clone(),
            at: Timestamp::now(),
            problem,
        };
        failed.insert(key, start);
    }

    /// When and why the last start of a service failed before there was an execution of it, if that
    /// was later than `after`.
    pub(crate) fn failed_start(
        &self,
        caller: &Caller,
        key: &ServiceKey,
        after: Option<Timestamp>,
    ) -> Option<String> {
        let failed = self.failed_starts.lock();
        let start = failed.get(key);
        let start = start.filter(|it| Some(it.at) > after && caller.can_access(&it.owner))?;
        let at = format::time(start.at);
        Some(format!("its start at {at} failed: {}", start.problem))
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
