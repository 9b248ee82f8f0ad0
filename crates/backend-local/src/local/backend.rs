//! [`LocalBackend`]: implements [`Backend`](crate::Backend) on this machine.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ostler_backend::prepared_dir::PREPARED_PREFIX;
use ostler_backend::{
    Backend, BoxFuture, LaunchIo, LaunchPlan, OverlayRequestError, PLAN_MAX_BYTES, RecoveryOutcome,
    SnapshotError, SpawnError, SpawnHandle, UsageReading,
};
use ostler_journal::Durability;
use ostler_model::{
    BackendName, Capability, CapabilitySet, ExecutionId, MissingCapability, OverlayRequest,
    OverlayResponse, PortHolder, SandboxSpec, SnapshotRequest, TreeSnapshot,
};
use ostler_sandbox::cgroup::SlotOwner;
use ostler_sandbox::fs_probe::FsProbe;
use tokio::sync::mpsc;
use tokio_util::sync::DropGuard;

use super::connect;
use super::connection::{ActiveAttempt, AttemptControl, EVENTS_MAX};
use super::disk_usage::Writers;
use super::overlay;
use super::recovery;
use super::shim_manager::{ShimManager, ShimSource, start_zygote};
use super::snapshot;
use super::sockets;
use super::usage;
use super::{disk_quota, disk_usage};
use crate::proto::{INLINE_PLAN_BYTES, ShimRequest, encode};
use crate::sys::memory;

/// The name prefix of a directory that is being removed.
const GONE_PREFIX: &str = ".gone-";
/// How many shims are tried for one plan; one may have been killed while it was idle.
const SHIMS_TRIED: usize = 8;

/// What forks the shims.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ZygoteConfig {
    /// This executable, started with the single argument `__keeper`; executions outlive the daemon.
    Executable(PathBuf),
    /// Threads of this process. Executions end with it, as the capabilities report.
    InProcess,
}

/// The backend of this machine.
pub struct LocalBackend {
    shims: Arc<ShimManager>,
    capabilities: CapabilitySet,
    /// Probes of file systems, cached.
    fs_probe: Arc<FsProbe>,
    _stop: DropGuard,
}

/// Why the backend could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum BackendOpenError {
    /// The state directory cannot be created or opened.
    #[error("the state directory {path} cannot be used: {source}")]
    StateDirectory {
        /// The directory.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The zygote cannot be started.
    #[error("the keeper {path} cannot be started: {source}")]
    Zygote {
        /// The executable.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
}

impl fmt::Debug for LocalBackend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LocalPlace")
            .field("abilities", &self.capabilities)
            .finish_non_exhaustive()
    }
}

impl LocalBackend {
    /// Opens the backend with `state_dir/executions` as the directory of executions, which is
    /// created with mode 0700 where it is missing. Must be called within a tokio runtime.
    ///
    /// # Errors
    /// When the directory cannot be used or the zygote not be started.
    pub async fn open(state_dir: &Path, zygote: ZygoteConfig) -> Result<Self, BackendOpenError> {
        Self::open_with_durability(state_dir, zygote, Durability::PageCache).await
    }

    /// As [`open`](Self::open). With [`Durability::Fsync`], nothing runs before its spec is on the
    /// disk, and no end is reported before the output and the exit record are.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub async fn open_with_durability(
        state_dir: &Path,
        zygote: ZygoteConfig,
        durability: Durability,
    ) -> Result<Self, BackendOpenError> {
        let unusable = |source| BackendOpenError::StateDirectory {
            path: state_dir.to_owned(),
            source,
        };
        let path = state_dir.join("executions");
        let executions = open_executions(&path).map_err(unusable)?;
        let (source, capabilities) = match zygote {
            ZygoteConfig::InProcess => {
                let (subtree, abilities) = ostler_sandbox::probe(false);
                let owner = SlotOwner::of(executions.as_fd());
                let owner = owner.map_err(|errno| unusable(errno.into()))?;
                (
                    ShimSource::threads(subtree.owned_by(owner)),
                    without_zygote(abilities),
                )
            }
            ZygoteConfig::Executable(path) => {
                let started = start_zygote(&path, &executions).await;
                let failed = |source| BackendOpenError::Zygote {
                    path: path.clone(),
                    source,
                };
                let (link, capabilities) = started.map_err(failed)?;
                (ShimSource::zygote(path, link), with_zygote(capabilities))
            }
        };
        let shims = ShimManager::new(executions, source, durability);
        shims.warm_up().await;
        Ok(Self {
            _stop: shims.stop_token().drop_guard(),
            shims,
            capabilities,
            fs_probe: Arc::new(FsProbe::new(path)),
        })
    }

    async fn start(&self, plan: LaunchPlan) -> Result<SpawnHandle, SpawnError> {
        let (id, attempt) = (plan.id, plan.attempt);
        if let Some(quota) = disk_quota::DiskQuota::from_plan(&plan) {
            self.record_disk_baseline(id, quota).await?;
        }
        let has_input = matches!(plan.io, LaunchIo::Piped | LaunchIo::Pty(_));
        let has_terminal = matches!(plan.io, LaunchIo::Pty(_));
        let (message, file) = start_message(plan)?;
        for _ in 0..SHIMS_TRIED {
            let connection = self.shims.acquire().await?;
            connection.continue_after_idleness();
            let (sender, reports) = mpsc::channel(EVENTS_MAX);
            connection.start_attempt(ActiveAttempt {
                id,
                attempt,
                events: Some(sender),
            });
            let file = file.as_ref().map(AsFd::as_fd);
            if connection.send(&message, file).await.is_ok() {
                let control = Arc::new(AttemptControl {
                    shim_pid: connection.pid,
                    connection,
                    id,
                    attempt,
                    has_input,
                    has_terminal,
                });
                return Ok(SpawnHandle {
                    control,
                    events: reports,
                });
            }
            self.shims.discard(&connection);
        }
        let reason = "shims end before they take a plan";
        Err(SpawnError::Zygote(reason.to_owned()))
    }
}

impl LocalBackend {
    /// Records the size of a workspace whose growth is limited; without that the limit cannot be
    /// enforced.
    async fn record_disk_baseline(
        &self,
        id: ExecutionId,
        quota: disk_quota::DiskQuota,
    ) -> Result<(), SpawnError> {
        let execution = self.shims.execution_dir(id);
        let failure = self
            .shims
            .blocking(move || {
                disk_quota::record_baseline(&execution, &quota)
                    .err()
                    .map(|it| it.to_string())
            })
            .await;
        match failure {
            None => Ok(()),
            Some(reason) => Err(SpawnError::Storage(format!(
                "the growth of the workspace cannot be limited: {reason}"
            ))),
        }
    }
}

fn open_executions(path: &Path) -> io::Result<OwnedFd> {
    ostler_sys::private_dir::ensure(path)?;
    let executions = std::fs::File::open(path)?.into();
    remove_prepared(path);
    Ok(executions)
}

/// Removes directories that shims of an earlier daemon prepared and did not use. A shim that still
/// runs creates another one. They are renamed first, so that a half-removed one is never renamed to
/// an execution.
fn remove_prepared(executions: &Path) {
    for entry in std::fs::read_dir(executions)
        .into_iter()
        .flatten()
        .flatten()
    {
        let name = entry.file_name();
        let Some(rest) = name
            .to_str()
            .and_then(|name| name.strip_prefix(PREPARED_PREFIX))
        else {
            continue;
        };
        let removed_path = executions.join(format!("{GONE_PREFIX}{rest}"));
        let removed = std::fs::rename(entry.path(), &removed_path)
            .and_then(|()| std::fs::remove_dir_all(&removed_path));
        if let Err(error) = removed {
            tracing::debug!(path = %removed_path.display(), %error, "stays until the next start");
        }
    }
}

/// Adds the capabilities that need a zygote: processes, commands and egress proxies that outlive
/// the daemon.
fn with_zygote(mut capabilities: CapabilitySet) -> CapabilitySet {
    capabilities.present.push(Capability::Durable);
    let is_network = |it: &&MissingCapability| it.ability == Capability::NetworkNamespace;
    let missing = capabilities
        .missing
        .iter()
        .find(is_network)
        .map(|it| MissingCapability {
            ability: Capability::Gate,
            reason: it.reason.clone(),
        });
    capabilities.present.retain(|it| *it != Capability::Gate);
    capabilities
        .missing
        .retain(|it| it.ability != Capability::Gate);
    match missing {
        Some(lack) => capabilities.missing.push(lack),
        None => capabilities.present.push(Capability::Gate),
    }
    capabilities
}

fn without_zygote(mut capabilities: CapabilitySet) -> CapabilitySet {
    capabilities.present.retain(|it| *it != Capability::Gate);
    capabilities
        .missing
        .retain(|it| it.ability != Capability::Gate);
    for (capability, reason) in [
        (
            Capability::Durable,
            "the engine runs without a keeper: commands end with its process",
        ),
        (
            Capability::Gate,
            "the engine runs without a keeper, and only its executable can become a gate",
        ),
    ] {
        capabilities.missing.push(MissingCapability {
            ability: capability,
            reason: reason.to_owned(),
        });
    }
    capabilities
}

type StartMessage = (Vec<u8>, Option<OwnedFd>);

/// Encodes a plan as one packet, or as a memory file where it is larger.
fn start_message(plan: LaunchPlan) -> Result<StartMessage, SpawnError> {
    let failed = |error: &dyn fmt::Display| SpawnError::Zygote(error.to_string());
    let message = ShimRequest::start(plan);
    let bytes = encode(&message).map_err(|error| failed(&error))?;
    if bytes.len() <= INLINE_PLAN_BYTES {
        return Ok((bytes, None));
    }
    if bytes.len() as u64 > PLAN_MAX_BYTES {
        return Err(SpawnError::PlanTooLarge {
            bytes: bytes.len() as u64,
            limit: PLAN_MAX_BYTES,
        });
    }
    let file = memory::memfd_with("ostler-plan", &bytes).map_err(|error| failed(&error))?;
    let notice = encode(&ShimRequest::StartInMemory).map_err(|error| failed(&error))?;
    Ok((notice, Some(file)))
}

impl Backend for LocalBackend {
    fn name(&self) -> BackendName {
        BackendName::local()
    }

    fn capabilities(&self) -> CapabilitySet {
        self.capabilities.clone()
    }

    fn spawn(&self, plan: LaunchPlan) -> BoxFuture<'_, Result<SpawnHandle, SpawnError>> {
        Box::pin(self.start(plan))
    }

    /// Must not be called for executions that this backend started itself.
    fn recover(&self, id: ExecutionId) -> BoxFuture<'_, RecoveryOutcome> {
        Box::pin(recovery::recover(Arc::clone(&self.shims), id))
    }

    fn snapshot(
        &self,
        id: ExecutionId,
        request: SnapshotRequest,
    ) -> BoxFuture<'_, Result<TreeSnapshot, SnapshotError>> {
        Box::pin(snapshot::capture(Arc::clone(&self.shims), id, request))
    }

    fn usage<'a>(&'a self, ids: &'a [ExecutionId]) -> BoxFuture<'a, Vec<Option<UsageReading>>> {
        Box::pin(usage::read(Arc::clone(&self.shims), ids.to_vec()))
    }

    fn directory_bytes<'a>(&'a self, directory: &'a Path) -> BoxFuture<'a, Option<u64>> {
        let (shims, directory) = (Arc::clone(&self.shims), directory.to_owned());
        Box::pin(async move {
            let count = move || {
                let usage = disk_usage::disk_usage(&directory, Writers::Own).ok()?;
                Some(usage.bytes)
            };
            shims.blocking(count).await
        })
    }

    fn connect(&self, id: ExecutionId, address: SocketAddr) -> BoxFuture<'_, io::Result<OwnedFd>> {
        Box::pin(connect::connect(Arc::clone(&self.shims), id, address))
    }

    fn port_holders<'a>(&'a self, ports: &'a [u16]) -> BoxFuture<'a, Vec<PortHolder>> {
        let (shims, ports) = (Arc::clone(&self.shims), ports.to_vec());
        Box::pin(async move {
            let shared = Arc::clone(&shims);
            let find = move || {
                let execution_of_shim = |pid| shared.process_trees.execution_of_shim(pid);
                sockets::port_holders(&shared.tables, &ports, execution_of_shim)
            };
            shims.blocking(find).await
        })
    }

    fn probe_filesystems<'a>(
        &'a self,
        spec: &'a SandboxSpec,
    ) -> BoxFuture<'a, Vec<MissingCapability>> {
        let (fs_probe, spec) = (Arc::clone(&self.fs_probe), spec.clone());
        Box::pin(async move {
            let missing = self.shims.blocking(move || Some(fs_probe.missing(&spec)));
            // A cancelled probe has shown nothing.
            missing.await.unwrap_or_else(|| {
                vec![MissingCapability {
                    ability: Capability::OwnRoot,
                    reason: "what the file systems can do could not be found out".to_owned(),
                }]
            })
        })
    }

    fn overlay(
        &self,
        id: ExecutionId,
        request: OverlayRequest,
        has_ended: bool,
    ) -> BoxFuture<'_, Result<OverlayResponse, OverlayRequestError>> {
        Box::pin(overlay::handle(
            Arc::clone(&self.shims),
            id,
            request,
            has_ended,
        ))
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.shims.close())
    }
}
