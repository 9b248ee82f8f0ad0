//! [`ContainerPool`]: does what [`PoolState`] decides.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use ostler_backend::{ContainerAttachment, ContainerError, ContainerLaunch};
use ostler_model::{ExecutionId, Limits};
use parking_lot::Mutex;
use tokio::sync::{Notify, OnceCell, watch};
use tokio::time::{Instant, sleep_until, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::adoption;
use super::container_use::ContainerUse;
use super::facts::ContainerFacts;
use super::init_socket;
use super::make::{self, MakeRequest};
use super::state::{CONTAINERS_MAX, ContainerChoice, ContainerTraits, PoolState};
use crate::engine::{ContainerStatus, EngineClient, EngineConnection, EngineError, LocalImage};
use crate::host_paths::MountedInodes;
use crate::identity::{ContainerLabels, ContainerName, PoolKey, StateIdentity};
use crate::init_program::InitProgram;
use crate::reference;
use crate::state_dirs::StateDirs;

/// How many containers are tried for one start, where those that were warm are not usable.
const CONTAINERS_TRIED: usize = 4;
/// How many containers are removed at once.
const REMOVALS_AT_ONCE: usize = 4;
/// How long the end of the daemon waits for containers that are being made, and again for the
/// removal of those that are not in use.
const CLOSE_LIMIT: Duration = Duration::from_secs(5);

/// A container that runs.
#[derive(Debug, Clone)]
pub(crate) struct RunningContainer {
    /// How its init is reached.
    pub(crate) attachment: ContainerAttachment,
    /// What is told of it.
    pub(crate) facts: Arc<ContainerFacts>,
    /// The inode of its init's socket.
    pub(crate) socket_inode: Option<u64>,
}

/// What became of a container that is made; none while that is not known.
pub(super) type MakeResult = Option<Result<RunningContainer, ContainerError>>;

/// What a pool works with.
#[derive(Debug)]
pub(crate) struct PoolConfig {
    /// The state directory.
    pub(crate) state_dir: PathBuf,
    /// The engine.
    pub(crate) engine: Arc<EngineClient>,
    /// The tasks that end with the daemon.
    pub(crate) tasks: TaskTracker,
    /// Cancelled when they have to.
    pub(crate) stop: CancellationToken,
}

/// What changes together.
#[derive(Debug, Default)]
pub(super) struct Tables {
    pub(super) state: PoolState,
    /// What is known of the containers of the state.
    pub(super) containers: HashMap<ContainerName, watch::Receiver<MakeResult>>,
    /// The containers of running executions.
    uses: HashMap<ExecutionId, ContainerName>,
}

/// The containers of a daemon.
#[derive(Debug)]
pub(crate) struct ContainerPool {
    pub(super) config: PoolConfig,
    pub(super) dirs: StateDirs,
    pub(super) identity: StateIdentity,
    pub(super) init: InitProgram,
    pub(super) tables: Mutex<Tables>,
    /// Set when the containers of earlier daemons have been looked through.
    adopted: OnceCell<()>,
    /// Something may have become due.
    pub(super) changed: Notify,
}

impl ContainerPool {
    /// Prepares the directories and starts the task that removes containers and adopts those of
    /// earlier daemons.
    ///
    /// # Errors
    /// When the state directory cannot be written.
    pub(crate) fn open(config: PoolConfig) -> io::Result<Arc<Self>> {
        let dirs = StateDirs::open(&config.state_dir)?;
        adoption::forget_ended_uses(&config.state_dir, &dirs);
        let pool = Arc::new(Self {
            identity: StateIdentity::of(&config.state_dir)?,
            init: InitProgram::at(dirs.root()),
            dirs,
            config,
            tables: Mutex::default(),
            adopted: OnceCell::new(),
            changed: Notify::new(),
        });
        let reaper = Arc::clone(&pool);
        pool.config.tasks.spawn(async move {
            let stop = reaper.config.stop.clone();
            let _stopped = stop.run_until_cancelled(Box::pin(reaper.serve())).await;
        });
        Ok(pool)
    }

    /// The state directory.
    pub(crate) fn state_dir(&self) -> &Path {
        &self.config.state_dir
    }

    /// The container of a running execution.
    pub(crate) fn facts(&self, id: ExecutionId) -> Option<Arc<ContainerFacts>> {
        let tables = self.tables.lock();
        let container = tables.containers.get(tables.uses.get(&id)?)?;
        let made = container.borrow();
        let running = made.as_ref()?.as_ref().ok()?;
        Some(Arc::clone(&running.facts))
    }

    /// The container for a start: one that runs, or a new one.
    ///
    /// # Errors
    /// When there is none and none can be made.
    pub(crate) async fn acquire(
        self: &Arc<Self>,
        id: ExecutionId,
        launch: &ContainerLaunch,
        limits: &Limits,
    ) -> Result<(ContainerUse, RunningContainer), ContainerError> {
        let engine = self.config.engine.connect().await?;
        self.adopt_once(&engine).await?;
        let image = local_image(&engine, &launch.spec.image).await?;
        let mounted = MountedInodes::of(&launch.spec);
        let key = PoolKey::new(launch, &mounted, limits, &image.id, &self.init.hash);
        let key = key.map_err(|error| ContainerError::Refused(error.to_string()))?;
        let idle_timeout = launch.spec.reuse.then_some(launch.spec.idle_timeout);
        let traits = ContainerTraits { key, idle_timeout };
        for _ in 0..CONTAINERS_TRIED {
            let request = MakeRequest {
                name: ContainerName::unique().map_err(|error| not_started(&error))?,
                launch: launch.clone(),
                limits: *limits,
                mounted: mounted.clone(),
                image: image.clone(),
                labels: ContainerLabels {
                    key: traits.key.clone(),
                    init_hash: self.init.hash.clone(),
                    idle_timeout,
                },
            };
            let (name, is_warm) = self.admit(id, &traits, &engine, request)?;
            // From here on the use is given back, whatever happens.
            let container_use = ContainerUse::new(Arc::clone(self), id, name);
            let running = self.made(container_use.name()).await?;
            if is_warm
                && !self
                    .is_usable(&engine, container_use.name(), &running)
                    .await?
            {
                continue;
            }
            let recorded = self.dirs.record_use(id, container_use.name());
            recorded.map_err(|error| not_started(&error))?;
            let name = container_use.name().clone();
            self.tables.lock().uses.insert(id, name);
            return Ok((container_use, running));
        }
        let reason = "containers end as soon as they were made";
        Err(ContainerError::NotStarted(reason.to_owned()))
    }

    /// Decides, and starts to make a container where that was decided. With whether it runs already.
    fn admit(
        self: &Arc<Self>,
        id: ExecutionId,
        traits: &ContainerTraits,
        engine: &Arc<EngineConnection>,
        request: MakeRequest,
    ) -> Result<(ContainerName, bool), ContainerError> {
        let mut tables = self.tables.lock();
        let fresh = request.name.clone();
        match tables.state.admit(traits.clone(), fresh, Instant::now()) {
            ContainerChoice::Serve(name) => Ok((name, true)),
            ContainerChoice::Wait(name) => Ok((name, false)),
            ContainerChoice::Create(name) => {
                let (sender, receiver) = watch::channel(None);
                tables.containers.insert(name.clone(), receiver);
                let (pool, engine) = (Arc::clone(self), Arc::clone(engine));
                // Not by the caller, which may be gone before the engine has answered.
                self.config.tasks.spawn(pool.make(engine, request, sender));
                // One that was idle may have made room.
                self.changed.notify_one();
                Ok((name, false))
            }
            ContainerChoice::Full => {
                tracing::warn!(execution = %id, containers = tables.state.len(), "too many");
                Err(ContainerError::Refused(format!(
                    "this daemon has {CONTAINERS_MAX} containers in use, and no more are made"
                )))
            }
        }
    }

    async fn make(
        self: Arc<Self>,
        engine: Arc<EngineConnection>,
        request: MakeRequest,
        result: watch::Sender<MakeResult>,
    ) {
        let began = Instant::now();
        let made = Box::pin(make::make(&self, &engine, &request)).await;
        let name = &request.name;
        match &made {
            Ok(running) => {
                let facts = &running.facts;
                tracing::info!(
                    container = %name,
                    image = facts.image_id,
                    engine = facts.engine,
                    disk = %facts.disk,
                    ms = began.elapsed().as_millis(),
                    "a container runs"
                );
                self.tables.lock().state.started(name);
            }
            Err(error) => {
                tracing::warn!(container = %name, %error, "a container could not be made");
                let state = &mut self.tables.lock().state;
                if matches!(error, ContainerError::EngineUnresponsive { .. }) {
                    // It may be made when nobody waits for it any more.
                    state.not_removed(name, Instant::now());
                } else {
                    state.failed(name, Instant::now());
                }
            }
        }
        result.send_replace(Some(made));
        self.changed.notify_one();
    }

    /// The container when it runs.
    async fn made(&self, name: &ContainerName) -> Result<RunningContainer, ContainerError> {
        let known = self.tables.lock().containers.get(name).cloned();
        let gone = || ContainerError::NotStarted("it was removed meanwhile".to_owned());
        let mut known = known.ok_or_else(gone)?;
        let result = known.wait_for(Option::is_some).await;
        let result = result.map_err(|_closed| gone())?.clone();
        result.unwrap_or_else(|| Err(gone()))
    }

    /// Whether a warm container still is what it was; otherwise it serves no further start.
    async fn is_usable(
        &self,
        engine: &EngineConnection,
        name: &ContainerName,
        running: &RunningContainer,
    ) -> Result<bool, ContainerError> {
        let status = match engine.inspect(name.as_str()).await {
            Ok(status) => status,
            Err(EngineError::NotFound(_)) => ContainerStatus::default(),
            Err(error) => return Err(error.into_container_error(engine.socket())),
        };
        let same = status.pid == Some(running.attachment.init_pid);
        let has_socket = self.dirs.socket_inode(name) == running.socket_inode;
        let usable = status.running && !status.unhealthy && same && has_socket;
        if !usable {
            tracing::info!(container = %name, ?status, has_socket, "a warm container is replaced");
            self.retire(name);
        }
        Ok(usable)
    }

    /// Finds out whether a container still runs, after what ran in it ended unexpectedly.
    pub(crate) async fn check(&self, name: &ContainerName) {
        let known = self.tables.lock().containers.get(name).cloned();
        let running = known.and_then(|it| it.borrow().clone());
        let Some(Ok(running)) = running else {
            return;
        };
        if !init_socket::listens_in(self, name, running.attachment.init_pid).await {
            tracing::info!(container = %name, "its init cannot be reached: it is replaced");
            self.retire(name);
            return;
        }
        if let Ok(engine) = self.config.engine.connect().await
            && let Err(error) = self.is_usable(&engine, name, &running).await
        {
            tracing::debug!(container = %name, %error, "its state is not known");
        }
    }

    /// The container serves no further start.
    pub(crate) fn retire(&self, name: &ContainerName) {
        self.tables.lock().state.retire(name, Instant::now());
        self.changed.notify_one();
    }

    /// The use of a container that was recorded for an execution of an earlier daemon.
    pub(crate) fn recovered(self: &Arc<Self>, id: ExecutionId) -> Option<ContainerUse> {
        let name = self.dirs.container_of(id)?;
        self.tables.lock().uses.insert(id, name.clone());
        Some(ContainerUse::new(Arc::clone(self), id, name))
    }

    /// An execution in a container has ended.
    pub(super) fn release(&self, id: ExecutionId, name: &ContainerName) {
        let mut tables = self.tables.lock();
        // Under the lock: whoever adopts containers counts these records.
        if let Err(error) = self.dirs.forget_use(id) {
            tracing::warn!(execution = %id, %error, "the record of a container's use stays");
        }
        tables.uses.remove(&id);
        tables.state.release(name, Instant::now());
        drop(tables);
        self.changed.notify_one();
    }

    /// Looks through the containers of earlier daemons, when an engine answers for the first time.
    async fn adopt_once(&self, engine: &EngineConnection) -> Result<(), ContainerError> {
        let adopt = || adoption::adopt(self, engine);
        let adopted = self.adopted.get_or_try_init(adopt).await;
        let &() = adopted.map_err(|error| error.into_container_error(engine.socket()))?;
        Ok(())
    }

    /// Adopts containers, if an engine answers.
    async fn adopt_now(&self) {
        match self.config.engine.connect().await {
            Ok(engine) => {
                if let Err(error) = self.adopt_once(&engine).await {
                    tracing::warn!(%error, "containers of an earlier daemon are not known yet");
                }
            }
            Err(error) => tracing::debug!(%error, "no containers for now"),
        }
    }

    /// Adopts containers, then removes them when they are due.
    async fn serve(&self) {
        // Containers without a directory are not ours: without any, no engine is asked.
        if !self.dirs.containers().is_empty() {
            self.adopt_now().await;
        }
        loop {
            let due = self.tables.lock().state.next_due();
            let passed = async {
                match due {
                    Some(due) => sleep_until(due).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = self.changed.notified() => {}
                () = passed => {}
            }
            let names = self.tables.lock().state.take_due(Instant::now());
            self.remove_all(names).await;
        }
    }

    async fn remove_all(&self, names: Vec<ContainerName>) {
        let removals = futures_util::stream::iter(names);
        removals
            .for_each_concurrent(REMOVALS_AT_ONCE, |name| self.remove(name))
            .await;
    }

    async fn remove(&self, name: ContainerName) {
        let removed = match self.config.engine.connect().await {
            Ok(engine) => {
                let removed = engine.remove(name.as_str()).await;
                removed.map_err(|error| error.into_container_error(engine.socket()))
            }
            Err(error) => Err(error),
        };
        match removed {
            Ok(()) => {
                tracing::info!(container = %name, "removed a container");
                self.dirs.remove(&name);
                let mut tables = self.tables.lock();
                tables.state.removed(&name);
                tables.containers.remove(&name);
            }
            Err(error) => {
                tracing::warn!(container = %name, %error, "a container stays for now");
                self.tables.lock().state.not_removed(&name, Instant::now());
            }
        }
    }

    /// Removes the containers in which nothing runs. The tasks must have been told to stop.
    pub(crate) async fn close(&self) {
        self.config.tasks.close();
        let ended = timeout(CLOSE_LIMIT, self.config.tasks.wait()).await;
        if ended.is_err() {
            tracing::warn!("a container is still being made; the next daemon removes it");
        }
        let unknown = !self.adopted.initialized() && !self.dirs.containers().is_empty();
        if unknown && timeout(CLOSE_LIMIT, self.adopt_now()).await.is_err() {
            tracing::warn!("containers of an earlier daemon stay for the next one");
        }
        let names = self.tables.lock().state.take_unused();
        if timeout(CLOSE_LIMIT, self.remove_all(names)).await.is_err() {
            tracing::warn!("containers that are not in use stay for the next daemon");
        }
    }
}

#[cfg(test)]
impl ContainerPool {
    /// The container that an execution is recorded to run in.
    pub(crate) fn recorded(&self, id: ExecutionId) -> Option<ContainerName> {
        self.dirs.container_of(id)
    }

    /// The containers that have a directory.
    pub(crate) fn directories(&self) -> Vec<ContainerName> {
        self.dirs.containers()
    }
}

/// The image, if it is on the engine's machine.
pub(crate) async fn local_image(
    engine: &EngineConnection,
    image: &str,
) -> Result<LocalImage, ContainerError> {
    let absent = || ContainerError::NoImage {
        image: image.to_owned(),
    };
    if !reference::is_image(image) {
        return Err(absent());
    }
    let found = engine.inspect_image(image).await;
    found.map_err(|error| error.or_absent(engine.socket(), absent()))
}

fn not_started(error: &io::Error) -> ContainerError {
    ContainerError::NotStarted(error.to_string())
}
