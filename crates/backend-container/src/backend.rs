//! [`ContainerBackend`]: a local backend whose plans may name a container.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ostler_backend::{
    Backend, BoxFuture, ContainerError, LaunchPlan, OverlayRequestError, RecoveryOutcome,
    SnapshotError, SpawnError, SpawnHandle, UsageReading,
};
use ostler_model::{
    BackendName, CapabilitySet, ContainerSpec, DiskEnforcement, ExecutionId, MissingCapability,
    OverlayRequest, OverlayResponse, PortHolder, SandboxSpec, SnapshotRequest, TreeSnapshot,
};
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;

use crate::capabilities::container_capabilities;
use crate::engine::{EngineClient, EngineConnection, EngineDiscovery, EngineKind};
use crate::events::EventForwarder;
use crate::host_paths;
use crate::image::ImageStore;
use crate::pool::{ContainerFacts, ContainerPool, ContainerUse, PoolConfig, local_image};
use crate::reference;

/// The network that every engine has.
const NO_NETWORK: &str = "none";
/// The default network, which Podman has by another name.
const BRIDGE_NETWORK: &str = "bridge";

/// A local backend that resolves the containers of plans. Everything that runs is the local
/// backend's, in a container or not.
pub struct ContainerBackend {
    local: Arc<dyn Backend>,
    engine: Arc<EngineClient>,
    pool: Arc<ContainerPool>,
    tasks: TaskTracker,
    stop: CancellationToken,
    _stopped: DropGuard,
}

/// The backend could not be opened.
#[derive(Debug, thiserror::Error)]
#[error("the state directory {} cannot be used for containers: {source}", path.display())]
pub struct ContainerOpenError {
    /// The directory.
    pub path: PathBuf,
    /// The system's error.
    pub source: io::Error,
}

impl fmt::Debug for ContainerBackend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ContainerBackend")
            .field("local", &self.local)
            .finish_non_exhaustive()
    }
}

impl ContainerBackend {
    /// Wraps the local backend of this state directory. Looks for an engine and for containers of
    /// earlier daemons in the background; without an engine, everything but containers works. Must
    /// be called within a tokio runtime.
    ///
    /// # Errors
    /// When the state directory cannot be written.
    pub fn open(
        state_dir: &Path,
        discovery: EngineDiscovery,
        local: Arc<dyn Backend>,
    ) -> Result<Self, ContainerOpenError> {
        let engine = Arc::new(EngineClient::new(discovery));
        let (tasks, stop) = (TaskTracker::new(), CancellationToken::new());
        let pool = ContainerPool::open(PoolConfig {
            state_dir: state_dir.to_owned(),
            engine: Arc::clone(&engine),
            tasks: tasks.clone(),
            stop: stop.clone(),
        });
        let pool = pool.map_err(|source| ContainerOpenError {
            path: state_dir.to_owned(),
            source,
        })?;
        Ok(Self {
            local,
            engine,
            pool,
            tasks,
            _stopped: stop.clone().drop_guard(),
            stop,
        })
    }

    /// The container of a running execution; none where it runs in none, or has ended.
    #[must_use]
    pub fn facts(&self, id: ExecutionId) -> Option<Arc<ContainerFacts>> {
        self.pool.facts(id)
    }

    /// The images of its engine.
    #[must_use]
    pub fn images(&self) -> ImageStore {
        ImageStore::over(Arc::clone(&self.engine))
    }

    async fn start(&self, mut plan: LaunchPlan) -> Result<SpawnHandle, SpawnError> {
        let Some(launch) = plan.container.take() else {
            return self.local.spawn(plan).await;
        };
        let acquired = self.pool.acquire(plan.id, &launch, &plan.limits).await;
        let (container_use, running) = acquired?;
        let id = plan.id;
        tracing::debug!(execution = %id, container = %container_use.name(), "starts");
        plan.attachment = Some(running.attachment);
        plan.container = Some(launch);
        let handle = self.local.spawn(plan).await?;
        Ok(self.counted(handle, container_use))
    }

    /// The handle of an attempt whose end gives back the use of its container.
    fn counted(&self, handle: SpawnHandle, container_use: ContainerUse) -> SpawnHandle {
        let forwarder = EventForwarder {
            pool: Arc::clone(&self.pool),
            stop: self.stop.clone(),
        };
        SpawnHandle {
            control: handle.control,
            events: forwarder.spawn(&self.tasks, container_use, handle.events),
        }
    }

    async fn recover_counted(&self, id: ExecutionId) -> RecoveryOutcome {
        let outcome = self.local.recover(id).await;
        let Some(container_use) = self.pool.recovered(id) else {
            return outcome;
        };
        match outcome {
            RecoveryOutcome::Running {
                attempt,
                pid,
                started_at,
                handle,
            } => RecoveryOutcome::Running {
                attempt,
                pid,
                started_at,
                handle: self.counted(handle, container_use),
            },
            // It may be running.
            RecoveryOutcome::Unreachable(_) => {
                container_use.leave();
                outcome
            }
            RecoveryOutcome::Exited(_) | RecoveryOutcome::Lost { .. } => outcome,
        }
    }

    async fn check(&self, spec: &ContainerSpec) -> Result<(), ContainerError> {
        let engine = self.engine.connect().await?;
        local_image(&engine, &spec.image).await?;
        check_network(&engine, &spec.network).await?;
        host_paths::check(spec, engine.socket())
    }

    async fn end(&self) {
        self.stop.cancel();
        self.pool.close().await;
        self.local.close().await;
    }
}

/// Fails where there is no such network, or it is not the container's own.
async fn check_network(engine: &EngineConnection, network: &str) -> Result<(), ContainerError> {
    reference::check_own_network(network)?;
    let absent = || ContainerError::NoNetwork {
        network: network.to_owned(),
    };
    if network == NO_NETWORK {
        return Ok(());
    }
    if network == BRIDGE_NETWORK && engine.facts().kind == EngineKind::Podman {
        return Ok(());
    }
    if !reference::is_network(network) {
        return Err(absent());
    }
    let found = engine.inspect_network(network).await;
    found.map_err(|error| error.or_absent(engine.socket(), absent()))
}

impl Backend for ContainerBackend {
    fn name(&self) -> BackendName {
        self.local.name()
    }

    fn capabilities(&self) -> CapabilitySet {
        self.local.capabilities()
    }

    /// None until an engine was reached.
    fn container_capabilities(&self) -> Option<CapabilitySet> {
        let facts = self.engine.last_facts()?;
        let local = self.local.capabilities();
        Some(container_capabilities(&local, &facts))
    }

    fn container_disk(&self) -> Option<DiskEnforcement> {
        let facts = self.engine.last_facts()?;
        Some(if facts.limits_layers() {
            DiskEnforcement::StorageDriver
        } else {
            DiskEnforcement::Accounting
        })
    }

    fn check_container<'a>(
        &'a self,
        spec: &'a ContainerSpec,
    ) -> BoxFuture<'a, Result<(), ContainerError>> {
        Box::pin(self.check(spec))
    }

    fn spawn(&self, plan: LaunchPlan) -> BoxFuture<'_, Result<SpawnHandle, SpawnError>> {
        Box::pin(self.start(plan))
    }

    fn recover(&self, id: ExecutionId) -> BoxFuture<'_, RecoveryOutcome> {
        Box::pin(self.recover_counted(id))
    }

    fn snapshot(
        &self,
        id: ExecutionId,
        request: SnapshotRequest,
    ) -> BoxFuture<'_, Result<TreeSnapshot, SnapshotError>> {
        self.local.snapshot(id, request)
    }

    fn usage<'a>(&'a self, ids: &'a [ExecutionId]) -> BoxFuture<'a, Vec<Option<UsageReading>>> {
        self.local.usage(ids)
    }

    fn directory_bytes<'a>(&'a self, directory: &'a Path) -> BoxFuture<'a, Option<u64>> {
        self.local.directory_bytes(directory)
    }

    fn probe_filesystems<'a>(
        &'a self,
        spec: &'a SandboxSpec,
    ) -> BoxFuture<'a, Vec<MissingCapability>> {
        self.local.probe_filesystems(spec)
    }

    fn connect(&self, id: ExecutionId, address: SocketAddr) -> BoxFuture<'_, io::Result<OwnedFd>> {
        self.local.connect(id, address)
    }

    fn port_holders<'a>(&'a self, ports: &'a [u16]) -> BoxFuture<'a, Vec<PortHolder>> {
        self.local.port_holders(ports)
    }

    fn overlay(
        &self,
        id: ExecutionId,
        request: OverlayRequest,
        has_ended: bool,
    ) -> BoxFuture<'_, Result<OverlayResponse, OverlayRequestError>> {
        self.local.overlay(id, request, has_ended)
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.end())
    }
}

#[cfg(test)]
#[path = "backend_tests.rs"]
mod tests;
