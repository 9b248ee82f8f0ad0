//! Creates, connects and retires shims, with a zygote or as threads of this process.

use std::collections::HashSet;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use ostler_backend::SpawnError;
use ostler_journal::Durability;
use ostler_model::{CapabilitySet, ExecutionId};
use ostler_sandbox::cgroup::CgroupRoot;
use ostler_sys::{open_files, seqpacket};
use parking_lot::Mutex;
use tokio::sync::{Notify, Semaphore, oneshot};
use tokio::time::{Instant, sleep_until, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::connection::{ReceiveOutcome, ShimConnection};
use super::pool::{Checkout, IDLE_MIN, ShimPool, ShimResult};
use super::response_timeout::response_of;
use super::sockets::ListenTables;
use super::tree_members::ProcessTrees;
use super::zygote_client::{ZYGOTE_STOPPED, ZygoteClient};
use crate::proto::ZygoteEvent;
use crate::shim::{ShimInfo, ShimMode, ShimSetup, serve};
use crate::sys::proc;

/// How long a zygote may take to start, in milliseconds: an exec of our own executable.
const ZYGOTE_START_MS: u64 = 10_000;
/// How many shims are reconnected at once, at most.
const RECONNECTS_MAX: usize = 16;
/// How many zygotes are tried for one plan.
const ZYGOTE_ATTEMPTS: usize = 3;
/// How long after a burst unused shims are retired, in milliseconds.
const TRIM_MS: u64 = 5_000;

/// Distinguishes the shims that are threads of this process, of any backend.
static NEXT_THREAD_SERIAL: AtomicU32 = AtomicU32::new(1);

/// Where shims come from.
#[derive(Debug)]
pub(super) enum ShimSource {
    /// A zygote, which is replaced when it dies.
    Zygote {
        executable: PathBuf,
        link: tokio::sync::Mutex<Option<Arc<ZygoteClient>>>,
    },
    /// Threads of this process.
    Threads {
        cgroup_root: CgroupRoot,
        boot_id: String,
    },
}

impl ShimSource {
    pub(super) fn zygote(executable: PathBuf, link: ZygoteClient) -> Self {
        Self::Zygote {
            executable,
            link: tokio::sync::Mutex::new(Some(Arc::new(link))),
        }
    }

    pub(super) fn threads(cgroup_root: CgroupRoot) -> Self {
        Self::Threads {
            cgroup_root,
            boot_id: proc::boot_id(),
        }
    }
}

/// Every shim of one backend.
#[derive(Debug)]
pub(super) struct ShimManager {
    executions: Arc<OwnedFd>,
    source: ShimSource,
    /// What the records of its shims survive.
    durability: Durability,
    pub(super) pool: ShimPool,
    /// The trees of running executions.
    pub(super) process_trees: ProcessTrees,
    /// The listening sockets of the host.
    pub(super) tables: ListenTables,
    /// Shims the zygote has reaped, until their connections have noticed.
    pub(super) reaped: Mutex<HashSet<u32>>,
    pub(super) reaped_notify: Notify,
    /// Limits concurrent reconnections to running shims: each takes several descriptors for a
    /// moment.
    pub(super) reconnect_permits: Semaphore,
    /// The number of these permits.
    pub(super) reconnects_max: usize,
    tasks: TaskTracker,
    pub(super) stop: CancellationToken,
}

/// Starts an executable as the zygote and receives what can be enforced here.
pub(super) async fn start_zygote(
    executable: &Path,
    executions: &OwnedFd,
) -> io::Result<(ZygoteClient, CapabilitySet)> {
    for _ in 0..ZYGOTE_ATTEMPTS {
        let link = ZygoteClient::start(executable, executions.as_fd())?;
        let hello = timeout(Duration::from_millis(ZYGOTE_START_MS), link.receive()).await;
        if let Ok(Some((ZygoteEvent::Hello { capabilities }, _))) = hello {
            return Ok((link, capabilities));
        }
        link.kill();
        link.wait_exit().await;
        // One that ended may have been killed; one that is silent is no zygote.
        if !matches!(hello, Ok(None)) {
            break;
        }
    }
    let message = format!("{} does not answer as a keeper", executable.display());
    Err(io::Error::new(io::ErrorKind::InvalidData, message))
}

impl ShimManager {
    pub(super) fn new(
        executions: OwnedFd,
        source: ShimSource,
        durability: Durability,
    ) -> Arc<Self> {
        let reconnects_max = reconnects_max(open_files::limit());
        let executions = Arc::new(executions);
        Arc::new(Self {
            process_trees: ProcessTrees::new(Arc::clone(&executions)),
            executions,
            source,
            durability,
            pool: ShimPool::default(),
            tables: ListenTables::default(),
            reaped: Mutex::default(),
            reaped_notify: Notify::new(),
            reconnect_permits: Semaphore::new(reconnects_max),
            reconnects_max,
            tasks: TaskTracker::new(),
            stop: CancellationToken::new(),
        })
    }

    /// The directory of executions.
    pub(super) fn executions(&self) -> &OwnedFd {
        &self.executions
    }

    /// The directory of one execution, as a path that this process can open.
    pub(super) fn execution_dir(&self, id: ExecutionId) -> PathBuf {
        let executions = self.executions.as_raw_fd();
        PathBuf::from(format!("/proc/self/fd/{executions}/{id}"))
    }

    /// Cancelled when the backend closes or is dropped.
    pub(super) fn stop_token(&self) -> CancellationToken {
        self.stop.clone()
    }

    /// Requests the shims that are kept ready.
    pub(super) async fn warm_up(self: &Arc<Self>) {
        self.shut_idle_under_pressure();
        let ShimSource::Zygote { link, .. } = &self.source else {
            return;
        };
        if let Some(link) = link.lock().await.as_ref() {
            self.spawn_zygote_reader(link);
            link.request_shims(u32::try_from(IDLE_MIN).unwrap_or(1), self.durability)
                .await;
        }
    }

    /// Releases everything; running executions continue.
    pub(super) async fn close(&self) {
        self.stop.cancel();
        self.shut_idle();
        self.tasks.close();
        self.tasks.wait().await;
    }

    /// Runs blocking work off the runtime's own threads. Returns the default where it was
    /// cancelled.
    pub(super) async fn blocking<T: Default + Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> T {
        self.tasks.spawn_blocking(work).await.unwrap_or_default()
    }

    /// A shim for one plan.
    pub(super) async fn acquire(self: &Arc<Self>) -> Result<Arc<ShimConnection>, SpawnError> {
        if self.stop.is_cancelled() {
            return Err(zygote_error("the place is closed"));
        }
        for _ in 0..ZYGOTE_ATTEMPTS {
            let mut waiting = match self.pool.check_out() {
                Checkout::Ready(shim) => return Ok(shim),
                Checkout::Waiting(waiting) => waiting,
            };
            let zygote = self.request_shim().await?;
            match wait_for_shim(&mut waiting, zygote.as_deref()).await {
                Some(Ok(answer)) => return answer,
                Some(Err(_)) => return Err(zygote_error("the place is closed")),
                None => self.drop_zygote(zygote).await,
            }
        }
        Err(zygote_error("no shim came"))
    }

    /// Removes a shim that did not accept its plan: it has exited.
    pub(super) fn discard(&self, shim: &ShimConnection) {
        if shim.take_attempt().is_some() {
            self.pool.release();
        }
    }

    /// Registers a shim that recovery found running.
    pub(super) fn adopt(self: &Arc<Self>, shim: &Arc<ShimConnection>) {
        self.pool.mark_in_use();
        self.spawn_shim_reader(Arc::clone(shim), None);
        if !open_files::has_reserve() {
            self.shut_idle();
        }
    }

    /// Retires idle shims: their descriptors are needed elsewhere.
    pub(super) fn shut_idle(&self) {
        for shim in self.pool.drain_idle() {
            shim.shutdown();
            // A stopped one would never notice.
            shim.continue_if_stopped();
        }
    }

    fn shut_idle_under_pressure(self: &Arc<Self>) {
        let shims = Arc::clone(self);
        self.tasks.spawn(async move {
            let stop = shims.stop_token();
            while let Some(()) = stop
                .run_until_cancelled(open_files::wait_for_waiter())
                .await
            {
                shims.shut_idle();
            }
        });
    }

    /// Requests one shim; a dead zygote is replaced first.
    async fn request_shim(self: &Arc<Self>) -> Result<Option<Arc<ZygoteClient>>, SpawnError> {
        let failed = |error: io::Error| zygote_error(&error.to_string());
        let (executable, link) = match &self.source {
            ShimSource::Zygote { executable, link } => (executable, link),
            ShimSource::Threads { .. } => {
                self.start_thread().map_err(failed)?;
                return Ok(None);
            }
        };
        let mut link = link.lock().await;
        if let Some(zygote) = link.as_ref()
            && !zygote.dead.is_cancelled()
            && zygote.request_shims(1, self.durability).await
        {
            return Ok(Some(Arc::clone(zygote)));
        }
        if let Some(zygote) = link.take() {
            zygote.kill();
        }
        let (zygote, _) = start_zygote(executable, &self.executions)
            .await
            .map_err(failed)?;
        let zygote = Arc::new(zygote);
        self.spawn_zygote_reader(&zygote);
        zygote.request_shims(1, self.durability).await;
        *link = Some(Arc::clone(&zygote));
        Ok(Some(zygote))
    }

    /// Discards a zygote that does not answer: it may be stopped or stuck.
    async fn drop_zygote(&self, zygote: Option<Arc<ZygoteClient>>) {
        let (ShimSource::Zygote { link, .. }, Some(zygote)) = (&self.source, zygote) else {
            return;
        };
        tracing::warn!(silent = ?zygote.silence(), "the keeper does not answer and is replaced");
        zygote.kill();
        let mut link = link.lock().await;
        if link
            .as_ref()
            .is_some_and(|current| Arc::ptr_eq(current, &zygote))
        {
            *link = None;
        }
    }

    /// Starts a shim on a thread of this process.
    fn start_thread(self: &Arc<Self>) -> io::Result<()> {
        let ShimSource::Threads {
            cgroup_root,
            boot_id,
        } = &self.source
        else {
            return Ok(());
        };
        let (ours, theirs) = seqpacket::pair()?;
        let identity = ShimInfo::own(ShimMode::Thread, boot_id.clone(), self.durability);
        let name = identity.name(NEXT_THREAD_SERIAL.fetch_add(1, Ordering::Relaxed));
        let setup = ShimSetup {
            socket: theirs,
            executions: self.executions.try_clone()?,
            slot: Some(cgroup_root.slot(name)),
            identity,
        };
        let shim = ShimConnection::new(ours, None)?;
        let thread = std::thread::Builder::new().name("ostler-shim".to_owned());
        thread.spawn(move || serve(setup))?;
        self.register(Arc::new(shim), None);
        Ok(())
    }

    /// Handles the messages of a zygote until it exits.
    fn spawn_zygote_reader(self: &Arc<Self>, link: &Arc<ZygoteClient>) {
        let (shims, link) = (Arc::clone(self), Arc::clone(link));
        self.tasks.spawn(async move {
            loop {
                let message = tokio::select! {
                    () = shims.stop.cancelled() => break,
                    message = link.receive() => message,
                };
                match message {
                    Some((message, descriptor)) => {
                        shims.on_zygote_event(&link, message, descriptor);
                    }
                    None => break,
                }
            }
            link.shutdown();
            link.wait_exit().await;
        });
    }

    fn on_zygote_event(
        self: &Arc<Self>,
        link: &Arc<ZygoteClient>,
        message: ZygoteEvent,
        descriptor: Option<OwnedFd>,
    ) {
        match (message, descriptor) {
            (ZygoteEvent::Shim { .. }, Some(_)) if !open_files::has_reserve() => {
                self.pool.fail_waiter(self.no_open_files());
            }
            (ZygoteEvent::Shim { pid }, Some(socket)) => {
                match ShimConnection::new(socket, Some(pid)) {
                    Ok(shim) => self.register(Arc::new(shim), Some(Arc::clone(link))),
                    Err(error) => self.pool.fail_waiter(zygote_error(&error.to_string())),
                }
            }
            // The kernel drops a descriptor for which there is no number left.
            (ZygoteEvent::Shim { .. }, None) => self.pool.fail_waiter(self.no_open_files()),
            (ZygoteEvent::ForkFailed { errno }, _) => self.pool.fail_waiter(fork_failed(errno)),
            (ZygoteEvent::ShimGone { pid, .. }, _) => {
                self.reaped.lock().insert(pid);
                self.reaped_notify.notify_waiters();
            }
            (ZygoteEvent::Hello { .. }, _) => {}
        }
    }

    /// The error when no further execution can be started or recovered.
    pub(super) fn no_open_files(&self) -> SpawnError {
        let limit = open_files::limit();
        SpawnError::OpenFiles {
            limit,
            reserved: open_files::reserved(limit),
        }
    }

    /// Registers a new shim and starts its reader, which runs until the shim exits.
    fn register(self: &Arc<Self>, shim: Arc<ShimConnection>, zygote: Option<Arc<ZygoteClient>>) {
        self.spawn_shim_reader(Arc::clone(&shim), zygote);
        self.offer(shim);
    }

    /// Forwards the messages of a shim until it exits.
    fn spawn_shim_reader(
        self: &Arc<Self>,
        shim: Arc<ShimConnection>,
        zygote: Option<Arc<ZygoteClient>>,
    ) {
        let shims = Arc::clone(self);
        self.tasks.spawn(async move {
            loop {
                let received = tokio::select! {
                    () = shims.stop.cancelled() => return shim.shutdown(),
                    received = shim.receive() => received,
                };
                match received {
                    ReceiveOutcome::Handled | ReceiveOutcome::Hello(_) => {}
                    ReceiveOutcome::Idle(ended_id) => {
                        if let Some(id) = ended_id {
                            shims.process_trees.forget(id);
                        }
                        shims.pool.release();
                        shim.mark_idle();
                        shims.recycle(&shim);
                    }
                    ReceiveOutcome::Closed => break,
                }
            }
            shims.on_shim_lost(&shim, zygote).await;
            drop(shim);
            open_files::notify_closed();
        });
    }

    /// Keeps a shim for the next plan, unless an earlier daemon started it: it has the version of that
    /// one, and its records survive what that one's setting says.
    fn recycle(self: &Arc<Self>, shim: &Arc<ShimConnection>) {
        let is_own = shim.pid.is_some() || matches!(self.source, ShimSource::Threads { .. });
        if is_own {
            self.offer(Arc::clone(shim));
        } else {
            shim.shutdown();
        }
    }

    fn offer(self: &Arc<Self>, shim: Arc<ShimConnection>) {
        if self.pool.offer(shim) {
            let shims = Arc::clone(self);
            self.tasks.spawn(async move { shims.trim_pool().await });
        }
        if open_files::has_waiters() {
            self.shut_idle();
        }
    }

    /// Retires shims that were not needed for a while; ends when only the minimum is left.
    async fn trim_pool(&self) {
        loop {
            let due = Instant::now() + Duration::from_millis(TRIM_MS);
            tokio::select! {
                () = self.stop.cancelled() => return,
                () = sleep_until(due) => {}
            }
            let (cold, more) = self.pool.take_surplus();
            for shim in cold {
                shim.shutdown();
            }
            if !more {
                return;
            }
        }
    }
}

/// How many shims may be reconnected at once under this limit on open files.
fn reconnects_max(limit: u64) -> usize {
    const EACH: u64 = 4;
    let at_once = usize::try_from(limit / 8 / EACH).unwrap_or(RECONNECTS_MAX);
    at_once.clamp(1, RECONNECTS_MAX)
}

fn fork_failed(errno: i32) -> SpawnError {
    let reason = io::Error::from_raw_os_error(errno);
    zygote_error(&format!(
        "the kernel refuses another process or descriptor: {reason}"
    ))
}

fn zygote_error(reason: &str) -> SpawnError {
    SpawnError::Zygote(reason.to_owned())
}

/// Waits for a shim as long as the zygote may yet respond. None when it does not; an error when no
/// shim can be created.
async fn wait_for_shim(
    waiting: &mut oneshot::Receiver<ShimResult>,
    zygote: Option<&ZygoteClient>,
) -> Option<Result<ShimResult, oneshot::error::RecvError>> {
    match zygote {
        Some(zygote) => {
            response_of(
                zygote.pid,
                ZYGOTE_STOPPED,
                || zygote.silence(),
                Box::pin(waiting),
            )
            .await
        }
        // A shim on a thread was offered before it is waited for.
        None => timeout(Duration::from_millis(ZYGOTE_START_MS), waiting)
            .await
            .ok(),
    }
}
