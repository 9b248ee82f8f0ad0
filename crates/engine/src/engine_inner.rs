//! [`EngineInner`]: the state that the parts of one engine share: backend, registry, ledger, tasks.
//! It knows none of the parts above it; what it needs of them are hooks.

use std::collections::BTreeMap;
use std::fs::{File, TryLockError};
use std::io::{Read, Seek, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use ostler_backend::Backend;
use ostler_journal::{HeadKey, HeadWriter, Ledger, LedgerEntry, LedgerReader, WriteError};
use ostler_model::{
    BackendName, CapabilitySet, ErrorCode, Event, ExecutionId, Owner, Principal, RequestedAction,
    Spec, Timestamp,
};
use parking_lot::Mutex;
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::sync::{Semaphore, broadcast, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::admission::container;
use crate::error::Error;
use crate::execution::ExecutionHandle;
use crate::hooks::{ExecutionObserver, TerminalScreens};
use crate::info::LifecycleEvent;
use crate::keyed_mutex::KeyedMutex;
use crate::monitor::UsageMonitor;
use crate::open_readers::OpenReaders;
use crate::probes::Prober;
use crate::registry::Registry;
use crate::retention_scheduler::RetentionScheduler;
use crate::settings::Settings;
use crate::unfinished::{UnfinishedExecution, UnfinishedTracker};
use crate::unwritten::{UnwrittenEntries, UnwrittenExecutions};

/// Capacity of the lifecycle channel, in events, for subscribers that lag.
pub(crate) const LIFECYCLE_EVENTS_MAX: usize = 1_024;
/// The most directories of executions that are removed at a time.
const REMOVALS_MAX: usize = 4;
/// The directory of executions within the state directory.
const EXECUTIONS: &str = "executions";
/// The directory of the ledger within the state directory.
pub const LEDGER: &str = "ledger";
/// The file of the ledger's heads within the state directory.
pub const LEDGER_HEADS: &str = "ledger-heads";
/// The file in the state directory that an open engine locks.
pub const LOCK_FILE: &str = "daemon.lock";

/// The shared part of an engine.
#[derive(Debug)]
pub(crate) struct EngineInner {
    pub(crate) settings: Settings,
    pub(crate) backend: Arc<dyn Backend>,
    pub(crate) backend_name: BackendName,
    pub(crate) capabilities: CapabilitySet,
    pub(crate) registry: Registry,
    pub(crate) lifecycle_events: broadcast::Sender<LifecycleEvent>,
    pub(crate) tracker: TaskTracker,
    pub(crate) closing: CancellationToken,
    pub(crate) retention: RetentionScheduler,
    /// Executions with events that a full disk refused.
    pub(crate) unwritten: UnwrittenExecutions,
    /// Probes services over the network.
    pub(crate) prober: Prober,
    /// Serializes the starts that share an id chosen by a client.
    pub(crate) start_locks: KeyedMutex<ExecutionId>,
    /// The journals whose files stay open.
    pub(crate) open_readers: OpenReaders,
    /// Lets one journal be compressed at a time.
    pub(crate) compression_permit: Semaphore,
    /// Limits the directories that are removed at a time: the end of a session removes all of its
    /// executions, and each removal occupies a thread.
    pub(crate) removal_permits: Semaphore,
    /// Whether some answer has already reported the capabilities that are missing on this host.
    pub(crate) host_warned: AtomicBool,
    /// The number of ledger entries so far.
    pub(crate) ledger_end: watch::Sender<u64>,
    /// Samples what executions use.
    pub(crate) usage_monitor: Arc<UsageMonitor>,
    /// The screens of terminals.
    pub(crate) screens: Arc<dyn TerminalScreens>,
    /// The parts that learn of changes of executions.
    observers: Vec<Arc<dyn ExecutionObserver>>,
    exclusive: Mutex<Option<ExclusiveState>>,
}

/// The parts above, as the shared state knows them.
#[derive(Debug)]
pub(crate) struct EngineHooks {
    pub(crate) usage_monitor: Arc<UsageMonitor>,
    pub(crate) screens: Arc<dyn TerminalScreens>,
    pub(crate) observers: Vec<Arc<dyn ExecutionObserver>>,
    /// Cancelled when the engine shuts down.
    pub(crate) closing: CancellationToken,
}

/// What only one engine may hold; released at shutdown.
#[derive(Debug)]
pub(crate) struct ExclusiveState {
    ledger: Ledger,
    unwritten: UnwrittenEntries,
    unfinished: UnfinishedTracker,
    _lock: File,
}

impl ExclusiveState {
    /// Creates and locks the state directory and opens the ledger.
    pub(crate) fn open(settings: &Settings) -> Result<Self, Error> {
        let state = &settings.state_dir;
        make_directory(state)?;
        make_directory(&state.join(EXECUTIONS))?;
        let lock = lock_state_dir(state)?;
        make_directory(&state.join(LEDGER))?;
        let ledger_dir = state.join(LEDGER);
        let mut ledger =
            Ledger::open(&ledger_dir).map_err(|error| Error::ledger(&ledger_dir, &error))?;
        ledger.set_durability(settings.durability);
        if let Err(error) = ledger.keep_for(settings.ledger_retention, Timestamp::now()) {
            tracing::warn!(%error, "old ledger entries cannot be removed");
        }
        if let Some(key) = &settings.audit_key_file
            && let Err(error) = record_heads(&mut ledger, key, &state.join(LEDGER_HEADS))
        {
            tracing::warn!(%error, "no heads of the ledger: what is cut off its end is not missed");
        }
        Ok(Self {
            unfinished: UnfinishedTracker::open(state, &ledger),
            ledger,
            unwritten: UnwrittenEntries::default(),
            _lock: lock,
        })
    }
}

impl ExclusiveState {
    /// Writes the queued entries, and after them what the next engine is to know of the ledger.
    fn write_queued(&mut self) -> Result<(), WriteError> {
        self.unwritten.flush(&mut self.ledger)?;
        self.unfinished.write(self.ledger.end());
        Ok(())
    }
}

/// Records heads of the ledger in the file `heads`, signed with the key in the file `key`.
fn record_heads(ledger: &mut Ledger, key: &Path, heads: &Path) -> Result<(), WriteError> {
    let key = HeadKey::read_or_create(key)?;
    ledger.record_heads(HeadWriter::open(heads, key)?, Timestamp::now())
}

/// Runs work that blocks its thread for long; the other tasks of a worker go on elsewhere meanwhile.
pub(crate) fn run_blocking<T>(work: impl FnOnce() -> T) -> T {
    let runtime = Handle::try_current();
    if runtime.is_ok_and(|it| it.runtime_flavor() == RuntimeFlavor::MultiThread) {
        tokio::task::block_in_place(work)
    } else {
        work()
    }
}

impl EngineInner {
    /// The shared state of an engine that holds the state directory.
    pub(crate) fn new(
        settings: Settings,
        backend: Arc<dyn Backend>,
        exclusive: ExclusiveState,
        hooks: EngineHooks,
    ) -> Arc<Self> {
        let state = &settings.state_dir;
        Arc::new(Self {
            registry: Registry::new(settings.quotas, state.join(EXECUTIONS)),
            retention: RetentionScheduler::new(state),
            unwritten: UnwrittenExecutions::default(),
            start_locks: KeyedMutex::default(),
            open_readers: OpenReaders::default(),
            settings,
            prober: Prober::new(Arc::clone(&backend)),
            backend_name: backend.name(),
            capabilities: backend.capabilities(),
            backend,
            lifecycle_events: broadcast::Sender::new(LIFECYCLE_EVENTS_MAX),
            tracker: TaskTracker::new(),
            closing: hooks.closing,
            compression_permit: Semaphore::new(1),
            removal_permits: Semaphore::new(REMOVALS_MAX),
            host_warned: AtomicBool::new(false),
            ledger_end: watch::Sender::new(exclusive.ledger.end()),
            usage_monitor: hooks.usage_monitor,
            screens: hooks.screens,
            observers: hooks.observers,
            exclusive: Mutex::new(Some(exclusive)),
        })
    }

    /// From SIGTERM to SIGKILL for an execution, unless a stop says otherwise.
    pub(crate) fn grace_of(&self, spec: &Spec) -> Duration {
        container::stop_grace(&self.settings, spec)
    }

    /// Tells every part above of a change.
    pub(crate) fn notify(&self, change: impl Fn(&dyn ExecutionObserver)) {
        for observer in &self.observers {
            change(observer.as_ref());
        }
    }

    /// Writes what a full disk refused of ended executions, as far as space permits now.
    pub(crate) fn flush_unwritten(&self) {
        let mut pending = std::mem::take(&mut *self.unwritten.lock());
        while let Some(id) = pending.pop_first() {
            let Some(entry) = self.registry.get(id) else {
                continue;
            };
            let mut events = entry.unwritten.lock();
            let durability = self.settings.durability;
            if !events.is_empty() && events.flush(&entry.dir, durability).is_err() {
                pending.insert(id);
                self.unwritten.lock().append(&mut pending);
                return;
            }
        }
    }

    /// The directory of all executions.
    pub(crate) fn executions_dir(&self) -> PathBuf {
        self.settings.state_dir.join(EXECUTIONS)
    }

    /// The directory of one execution.
    pub(crate) fn execution_dir(&self, id: ExecutionId) -> PathBuf {
        self.executions_dir().join(id.to_string())
    }

    /// Appends to the ledger; fails where the entry cannot be written, because nothing may run
    /// unrecorded.
    pub(crate) fn try_write_ledger(&self, entry: &LedgerEntry) -> Result<(), Error> {
        self.append(entry, false)
    }

    /// Appends the entry of an event that has already happened: what cannot be written now is
    /// written before the next entry.
    pub(crate) fn write_ledger(&self, entry: &LedgerEntry) {
        if let Err(error) = self.append(entry, true) {
            tracing::error!(%error, "an entry is not in the ledger yet");
        }
    }

    /// Runs what may wait for the disk. With [`Durability::Fsync`] other work of this thread goes on
    /// elsewhere meanwhile; otherwise writes go to the page cache, and moving would cost more.
    pub(crate) fn with_disk_wait<T>(&self, work: impl FnOnce() -> T) -> T {
        if self.settings.durability.is_fsync() {
            run_blocking(work)
        } else {
            work()
        }
    }

    /// Appends to the ledger; what is refused `is_queued` or not.
    fn append(&self, entry: &LedgerEntry, is_queued: bool) -> Result<(), Error> {
        self.with_disk_wait(|| self.append_now(entry, is_queued))
    }

    fn append_now(&self, entry: &LedgerEntry, is_queued: bool) -> Result<(), Error> {
        let mut exclusive = self.exclusive.lock();
        let Some(exclusive) = exclusive.as_mut() else {
            return Err(Error::Closing);
        };
        let appended = exclusive.unwritten.append(&mut exclusive.ledger, entry);
        if appended.is_err() && is_queued {
            exclusive.unwritten.push(entry);
        }
        if appended.is_ok() || is_queued {
            exclusive.unfinished.record(entry);
        }
        if appended.is_ok() {
            exclusive.unfinished.on_written(exclusive.ledger.end());
        }
        // Queued entries may have been written although this one was not.
        self.ledger_end.send_replace(exclusive.ledger.end());
        appended.map_err(|error| Error::ledger(&self.settings.state_dir.join(LEDGER), &error))
    }

    /// Records a refused request in the ledger.
    pub(crate) fn record_refusal(
        &self,
        owner: &Owner,
        detail: LedgerDetail,
        code: ErrorCode,
        message: String,
    ) {
        self.write_ledger(&LedgerEntry {
            at: Timestamp::now(),
            execution: None,
            by: owner.clone(),
            event: Event::Refused { code, message },
            detail,
        });
    }

    /// Records in the ledger what a caller did to an execution.
    pub(crate) fn record_requested(
        &self,
        entry: &ExecutionHandle,
        action: RequestedAction,
        by: Principal,
    ) {
        self.write_ledger(&LedgerEntry {
            at: Timestamp::now(),
            execution: Some(entry.id),
            by: Owner::clone(&entry.owner()),
            event: Event::Requested { action, by },
            detail: LedgerDetail::new(),
        });
    }

    /// The executions that the ledger has no end of.
    pub(crate) fn unfinished_executions(&self) -> BTreeMap<ExecutionId, UnfinishedExecution> {
        let exclusive = self.exclusive.lock();
        let unfinished = exclusive.as_ref().map(|it| it.unfinished.executions());
        unfinished.unwrap_or_default()
    }

    /// Writes down which executions have no end, so that the next engine reads little of the ledger.
    pub(crate) fn checkpoint_unfinished(&self) {
        if let Some(exclusive) = self.exclusive.lock().as_mut() {
            if let Err(error) = exclusive.write_queued() {
                tracing::warn!(%error, "entries are not in the ledger yet");
            }
            self.ledger_end.send_replace(exclusive.ledger.end());
        }
    }

    /// A reader of the ledger; none after shutdown.
    pub(crate) fn ledger_reader(&self) -> Option<LedgerReader> {
        let exclusive = self.exclusive.lock();
        exclusive
            .as_ref()
            .map(|exclusive| exclusive.ledger.reader())
    }

    /// Releases the ledger and the lock; another engine may open the directory afterwards.
    pub(crate) fn release(&self) {
        self.flush_unwritten();
        let mut exclusive = self.exclusive.lock();
        if let Some(exclusive) = exclusive.as_mut()
            && let Err(error) = exclusive.write_queued()
        {
            tracing::error!(%error, "entries are missing in the ledger");
        }
        if let Some(Err(error)) = exclusive
            .as_mut()
            .map(|exclusive| exclusive.ledger.record_head(Timestamp::now()))
        {
            tracing::warn!(%error, "the head of the ledger cannot be recorded");
        }
        *exclusive = None;
    }
}

/// Additional fields of a ledger entry, for people.
pub(crate) type LedgerDetail = BTreeMap<String, serde_json::Value>;

fn make_directory(path: &Path) -> Result<(), Error> {
    ostler_sys::private_dir::ensure(path).map_err(|source| Error::Storage {
        what: "cannot make",
        path: path.to_owned(),
        source,
    })
}

/// Mode of files that only the owner may access.
const PRIVATE_FILE: u32 = 0o600;

fn lock_state_dir(state: &Path) -> Result<File, Error> {
    let path = state.join(LOCK_FILE);
    let storage_error = |what| {
        let path = path.clone();
        move |source| Error::Storage { what, path, source }
    };
    let mut file = File::options()
        .create(true)
        .truncate(false)
        .read(true)
        .write(true)
        .mode(PRIVATE_FILE)
        .open(&path)
        .map_err(storage_error("cannot open"))?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            let mut pid = String::new();
            let known = file.read_to_string(&mut pid).is_ok() && !pid.trim().is_empty();
            return Err(Error::Locked {
                path: state.to_owned(),
                holder: if known {
                    format!("process {}", pid.trim())
                } else {
                    "another process".to_owned()
                },
            });
        }
        Err(TryLockError::Error(error)) => return Err(storage_error("cannot lock")(error)),
    }
    // The lock decides; the pid in the file is for people. A full disk must not keep the engine
    // from opening: it is how space is freed.
    let pid_written = file
        .set_len(0)
        .and_then(|()| file.rewind())
        .and_then(|()| writeln!(file, "{}", std::process::id()));
    if let Err(error) = pid_written {
        tracing::warn!(path = %path.display(), %error, "the lock does not say who holds it");
    }
    Ok(file)
}
