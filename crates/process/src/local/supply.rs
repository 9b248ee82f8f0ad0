//! Where shims come from and go to: the keeper, or threads of this process.

use std::collections::{HashMap, HashSet};
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ostler_model::{Abilities, ExecutionId};
use ostler_sandbox::cgroup::Subtree;
use tokio::sync::{Notify, Semaphore, oneshot};
use tokio::time::{Instant, sleep_until, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::connection::{Connection, Received};
use super::keeper_link::KeeperLink;
use super::members::Known;
use super::pool::{Answer, Pool, Taken, WARM};
use super::recovery;
use super::sockets::Tables;
use crate::open_files;
use crate::place::{Report, SpawnError};
use crate::proto::FromKeeper;
use crate::shim::{Identity, Mode, Setup, serve};
use crate::sys::{packet, proc};

/// How long a keeper may be silent while it owes a shim, in milliseconds; then it is replaced.
const KEEPER_ANSWER_MS: u64 = 100;
/// How long a keeper may take to begin, in milliseconds: an exec of our own executable.
const KEEPER_START_MS: u64 = 5_000;
/// How long a keeper may take to sweep the tree of a killed shim, in milliseconds.
const SWEEP_WAIT_MS: u64 = 5_000;
/// Shims called at once, at most.
const CALLS_MAX: usize = 16;
/// Keepers that are tried for one plan.
const KEEPERS_TRIED: usize = 3;
/// How long after a burst unused shims are let go, in milliseconds.
const TRIM_MS: u64 = 5_000;

/// Tells the shims apart that are threads of this process, of whichever place.
static THREADS_BEGUN: AtomicU32 = AtomicU32::new(1);

/// Who makes shims.
#[derive(Debug)]
pub(super) enum Source {
    /// A keeper, which is replaced when it dies.
    Keeper {
        executable: PathBuf,
        link: tokio::sync::Mutex<Option<Arc<KeeperLink>>>,
    },
    /// This process, on threads.
    Threads { subtree: Subtree, boot_id: String },
}

impl Source {
    pub(super) fn keeper(executable: PathBuf, link: KeeperLink) -> Self {
        Self::Keeper {
            executable,
            link: tokio::sync::Mutex::new(Some(Arc::new(link))),
        }
    }

    pub(super) fn threads(subtree: Subtree) -> Self {
        Self::Threads {
            subtree,
            boot_id: proc::boot_id(),
        }
    }
}

/// Every shim of one place.
#[derive(Debug)]
pub(super) struct Supply {
    executions: OwnedFd,
    source: Source,
    pool: Pool,
    /// What executions were found to be that are looked at, until they end.
    known: Mutex<HashMap<ExecutionId, Arc<Known>>>,
    /// What listens on the host.
    pub(super) tables: Tables,
    /// Shims the keeper has buried, until their connections have noticed.
    buried: Mutex<HashSet<u32>>,
    burial: Notify,
    /// Who asks shims that were left running: each takes several descriptors for a moment.
    pub(super) calls: Semaphore,
    /// How many of them there may be.
    pub(super) calls_at_once: usize,
    tasks: TaskTracker,
    stop: CancellationToken,
}

/// Starts an executable as the keeper and hears what can be enforced here.
pub(super) async fn begin_keeper(
    executable: &Path,
    executions: &OwnedFd,
) -> io::Result<(KeeperLink, Abilities)> {
    for _ in 0..KEEPERS_TRIED {
        let link = KeeperLink::start(executable, executions.as_fd())?;
        let hello = timeout(Duration::from_millis(KEEPER_START_MS), link.receive()).await;
        if let Ok(Some((FromKeeper::Hello { abilities }, _))) = hello {
            return Ok((link, abilities));
        }
        link.kill();
        link.bury().await;
        // One that ended may have been killed; one that is silent is no keeper.
        if !matches!(hello, Ok(None)) {
            break;
        }
    }
    let what = format!("{} does not answer as a keeper", executable.display());
    Err(io::Error::new(io::ErrorKind::InvalidData, what))
}

impl Supply {
    pub(super) fn new(executions: OwnedFd, source: Source) -> Arc<Self> {
        let calls_at_once = calls_at_once(open_files::limit());
        Arc::new(Self {
            executions,
            source,
            pool: Pool::default(),
            known: Mutex::default(),
            tables: Tables::default(),
            buried: Mutex::default(),
            burial: Notify::new(),
            calls: Semaphore::new(calls_at_once),
            calls_at_once,
            tasks: TaskTracker::new(),
            stop: CancellationToken::new(),
        })
    }

    /// The directory of executions.
    pub(super) const fn executions(&self) -> &OwnedFd {
        &self.executions
    }

    /// The directory of one, as a path that this process can follow.
    pub(super) fn execution(&self, id: ExecutionId) -> PathBuf {
        let executions = self.executions.as_raw_fd();
        PathBuf::from(format!("/proc/self/fd/{executions}/{id}"))
    }

    /// What is known of executions that are looked at.
    pub(super) fn known(&self) -> MutexGuard<'_, HashMap<ExecutionId, Arc<Known>>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Cancelled when the place closes or is dropped.
    pub(super) fn stopping(&self) -> CancellationToken {
        self.stop.clone()
    }

    /// Asks for the shims that are kept ready.
    pub(super) async fn warm_up(self: &Arc<Self>) {
        self.give_up_idle_when_wanted();
        let Source::Keeper { link, .. } = &self.source else {
            return;
        };
        if let Some(link) = link.lock().await.as_ref() {
            self.listen_to_keeper(link);
            link.ask(u32::try_from(WARM).unwrap_or(1)).await;
        }
    }

    /// Lets go of everything; what runs goes on without us.
    pub(super) async fn close(&self) {
        self.stop.cancel();
        self.give_up_idle();
        self.tasks.close();
        self.tasks.wait().await;
    }

    /// Work that blocks, off the runtime's own threads. The default where it was cut short.
    pub(super) async fn blocking<T: Default + Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> T {
        self.tasks.spawn_blocking(work).await.unwrap_or_default()
    }

    /// A shim for one plan.
    pub(super) async fn acquire(self: &Arc<Self>) -> Result<Arc<Connection>, SpawnError> {
        if self.stop.is_cancelled() {
            return Err(refused("the place is closed"));
        }
        for _ in 0..KEEPERS_TRIED {
            let mut coming = match self.pool.take() {
                Taken::Ready(shim) => return Ok(shim),
                Taken::Waiting(coming) => coming,
            };
            let keeper = self.ask().await?;
            match await_shim(&mut coming, keeper.as_deref()).await {
                Some(Ok(answer)) => return answer,
                Some(Err(_)) => return Err(refused("the place is closed")),
                None => self.dismiss(keeper).await,
            }
        }
        Err(refused("no shim came"))
    }

    /// Takes back a shim that did not take its plan: it is gone.
    pub(super) fn give_up(&self, shim: &Connection) {
        if shim.end().is_some() {
            self.pool.give_back();
        }
    }

    /// A shim that was found at work reports here from now on.
    pub(super) fn adopt(self: &Arc<Self>, shim: &Arc<Connection>) {
        self.pool.lend();
        self.listen_to_shim(Arc::clone(shim), None);
        if !open_files::leaves_reserve() {
            self.give_up_idle();
        }
    }

    /// A descriptor is worth more elsewhere than with a shim that waits for a plan.
    pub(super) fn give_up_idle(&self) {
        for shim in self.pool.empty() {
            shim.shut();
        }
    }

    fn give_up_idle_when_wanted(self: &Arc<Self>) {
        let supply = Arc::clone(self);
        self.tasks.spawn(async move {
            let stop = supply.stopping();
            while let Some(()) = stop.run_until_cancelled(open_files::wanted()).await {
                supply.give_up_idle();
            }
        });
    }

    /// Asks for one shim; a dead keeper is replaced first.
    async fn ask(self: &Arc<Self>) -> Result<Option<Arc<KeeperLink>>, SpawnError> {
        let failed = |error: io::Error| refused(&error.to_string());
        let (executable, link) = match &self.source {
            Source::Keeper { executable, link } => (executable, link),
            Source::Threads { .. } => {
                self.begin_thread().map_err(failed)?;
                return Ok(None);
            }
        };
        let mut link = link.lock().await;
        if let Some(keeper) = link.as_ref()
            && !keeper.dead.is_cancelled()
            && keeper.ask(1).await
        {
            return Ok(Some(Arc::clone(keeper)));
        }
        if let Some(keeper) = link.take() {
            keeper.kill();
        }
        let (keeper, _) = begin_keeper(executable, &self.executions)
            .await
            .map_err(failed)?;
        let keeper = Arc::new(keeper);
        self.listen_to_keeper(&keeper);
        keeper.ask(1).await;
        *link = Some(Arc::clone(&keeper));
        Ok(Some(keeper))
    }

    /// A keeper that does not answer may be stopped or stuck: away with it.
    async fn dismiss(&self, keeper: Option<Arc<KeeperLink>>) {
        let (Source::Keeper { link, .. }, Some(keeper)) = (&self.source, keeper) else {
            return;
        };
        tracing::warn!(silent = ?keeper.silence(), "the keeper does not answer and is replaced");
        keeper.kill();
        let mut link = link.lock().await;
        if link
            .as_ref()
            .is_some_and(|current| Arc::ptr_eq(current, &keeper))
        {
            *link = None;
        }
    }

    /// Without a keeper: a shim on a thread of this process.
    fn begin_thread(self: &Arc<Self>) -> io::Result<()> {
        let Source::Threads { subtree, boot_id } = &self.source else {
            return Ok(());
        };
        let (ours, theirs) = packet::pair()?;
        let identity = Identity::own(Mode::Thread, boot_id.clone());
        let name = identity.name(THREADS_BEGUN.fetch_add(1, Ordering::Relaxed));
        let setup = Setup {
            socket: theirs,
            executions: self.executions.try_clone()?,
            slot: Some(subtree.slot(name)),
            identity,
        };
        let shim = Connection::new(ours, None)?;
        let thread = std::thread::Builder::new().name("ostler-shim".to_owned());
        thread.spawn(move || serve(setup))?;
        self.welcome(Arc::new(shim), None);
        Ok(())
    }

    fn buried(&self) -> MutexGuard<'_, HashSet<u32>> {
        self.buried.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Passes on what a keeper says, until it is gone.
    fn listen_to_keeper(self: &Arc<Self>, link: &Arc<KeeperLink>) {
        let (supply, link) = (Arc::clone(self), Arc::clone(link));
        self.tasks.spawn(async move {
            loop {
                let message = tokio::select! {
                    () = supply.stop.cancelled() => break,
                    message = link.receive() => message,
                };
                match message {
                    Some((message, descriptor)) => supply.heed(&link, message, descriptor),
                    None => break,
                }
            }
            link.shut();
            link.bury().await;
        });
    }

    fn heed(
        self: &Arc<Self>,
        link: &Arc<KeeperLink>,
        message: FromKeeper,
        descriptor: Option<OwnedFd>,
    ) {
        match (message, descriptor) {
            (FromKeeper::Shim { .. }, Some(_)) if !open_files::leaves_reserve() => {
                self.pool.disappoint(self.no_open_files());
            }
            (FromKeeper::Shim { pid }, Some(socket)) => match Connection::new(socket, Some(pid)) {
                Ok(shim) => self.welcome(Arc::new(shim), Some(Arc::clone(link))),
                Err(error) => self.pool.disappoint(refused(&error.to_string())),
            },
            // The kernel drops a descriptor for which there is no number left.
            (FromKeeper::Shim { .. }, None) => self.pool.disappoint(self.no_open_files()),
            (FromKeeper::ForkFailed { errno }, _) => self.pool.disappoint(fork_failed(errno)),
            (FromKeeper::ShimGone { pid, .. }, _) => {
                self.buried().insert(pid);
                self.burial.notify_waiters();
            }
            (FromKeeper::Hello { .. }, _) => {}
        }
    }

    /// Why no further execution can be begun or asked for.
    pub(super) fn no_open_files(&self) -> SpawnError {
        let limit = open_files::limit();
        SpawnError::OpenFiles {
            limit,
            reserved: open_files::reserved(limit),
            executions: self.pool.in_use(),
        }
    }

    /// A new shim: its reader runs as long as it lives.
    fn welcome(self: &Arc<Self>, shim: Arc<Connection>, keeper: Option<Arc<KeeperLink>>) {
        self.listen_to_shim(Arc::clone(&shim), keeper);
        self.offer(shim);
    }

    /// Passes on what a shim says, until it is gone.
    fn listen_to_shim(self: &Arc<Self>, shim: Arc<Connection>, keeper: Option<Arc<KeeperLink>>) {
        let supply = Arc::clone(self);
        self.tasks.spawn(async move {
            loop {
                let received = tokio::select! {
                    () = supply.stop.cancelled() => return shim.shut(),
                    received = shim.receive() => received,
                };
                match received {
                    Received::Passed | Received::Hello(_) => {}
                    Received::Idle(ended) => {
                        ended.map(|id| supply.known().remove(&id));
                        supply.pool.give_back();
                        supply.offer(Arc::clone(&shim));
                    }
                    Received::Closed => break,
                }
            }
            supply.lose(&shim, keeper).await;
            drop(shim);
            open_files::closed();
        });
    }

    fn offer(self: &Arc<Self>, shim: Arc<Connection>) {
        if self.pool.offer(shim) {
            let supply = Arc::clone(self);
            self.tasks.spawn(async move { supply.trim().await });
        }
        if open_files::is_wanted() {
            self.give_up_idle();
        }
    }

    /// Lets shims go that were not needed for a while; ends when only the warm ones are left.
    async fn trim(&self) {
        loop {
            let due = Instant::now() + Duration::from_millis(TRIM_MS);
            tokio::select! {
                () = self.stop.cancelled() => return,
                () = sleep_until(due) => {}
            }
            let (cold, more) = self.pool.trim();
            for shim in cold {
                shim.shut();
            }
            if !more {
                return;
            }
        }
    }

    /// A shim is gone: its tree is swept, and whoever waits for its reports is told.
    async fn lose(self: &Arc<Self>, shim: &Arc<Connection>, keeper: Option<Arc<KeeperLink>>) {
        self.pool.forget(shim);
        let swept = match (shim.pid, keeper) {
            (Some(pid), Some(keeper)) => self.await_burial(pid, &keeper).await,
            (Some(_) | None, _) => false,
        };
        let Some(current) = shim.end() else {
            return;
        };
        self.pool.give_back();
        self.known().remove(&current.id);
        let found = recovery::after_loss(self, &current, !swept).await;
        if found.is_none() {
            tracing::warn!(id = %current.id, shim = shim.pid, "a shim was killed, its tree is ended");
        }
        let report = found.map_or(Report::Gone, Report::Exited);
        if let Some(reports) = current.reports {
            let _unheard = reports.send(report).await;
        }
    }

    /// Waits until the keeper has swept what a shim left; false when it cannot any more.
    async fn await_burial(&self, pid: u32, keeper: &KeeperLink) -> bool {
        let deadline = Instant::now() + Duration::from_millis(SWEEP_WAIT_MS);
        loop {
            let burial = self.burial.notified();
            tokio::pin!(burial);
            burial.as_mut().enable();
            if self.buried().remove(&pid) {
                return true;
            }
            tokio::select! {
                () = burial => {}
                () = keeper.dead.cancelled() => return self.buried().remove(&pid),
                () = self.stop.cancelled() => return false,
                () = sleep_until(deadline) => return false,
            }
        }
    }
}

/// How many shims are called at once where so many files may be open.
fn calls_at_once(limit: u64) -> usize {
    const EACH: u64 = 4;
    let at_once = usize::try_from(limit / 8 / EACH).unwrap_or(CALLS_MAX);
    at_once.clamp(1, CALLS_MAX)
}

fn fork_failed(errno: i32) -> SpawnError {
    let reason = io::Error::from_raw_os_error(errno);
    refused(&format!(
        "the kernel refuses another process or descriptor: {reason}"
    ))
}

fn refused(why: &str) -> SpawnError {
    SpawnError::Keeper(why.to_owned())
}

/// Waits for a shim as long as the keeper is not silent for too long. None when it is; an
/// error when nobody can come.
async fn await_shim(
    coming: &mut oneshot::Receiver<Answer>,
    keeper: Option<&KeeperLink>,
) -> Option<Result<Answer, oneshot::error::RecvError>> {
    let limit = Duration::from_millis(KEEPER_ANSWER_MS);
    loop {
        if let Ok(come) = timeout(limit, &mut *coming).await {
            return Some(come);
        }
        if keeper.is_none_or(|keeper| keeper.silence() >= limit) {
            return None;
        }
    }
}
