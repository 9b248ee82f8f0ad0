//! What the drivers and the facade of one engine share.

use std::collections::BTreeMap;
use std::fs::{File, TryLockError};
use std::io::{Read, Seek, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};

use ostler_journal::{Ledger, LedgerEntry, LedgerReader};
use ostler_model::{Abilities, Event, ExecutionId, Owner, PlaceName, Timestamp};
use ostler_process::Place;
use tokio::sync::{Semaphore, broadcast, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::effects::Prober;
use crate::error::Error;
use crate::info::Notice;
use crate::interaction::Desk;
use crate::keyed_mutex::KeyedMutex;
use crate::registry::Registry;
use crate::retention::Calendar;
use crate::service::Book;
use crate::settings::Settings;
use crate::terminal::{Readers, Screens};
use crate::unwritten::{UnwrittenEntries, UnwrittenExecutions};

/// Lifecycle events kept for a subscriber that falls behind.
pub(crate) const NOTICES: usize = 1_024;
/// The directory of executions within the state directory.
const EXECUTIONS: &str = "executions";
/// The directory of the ledger within the state directory.
const LEDGER: &str = "ledger";
/// The file in the state directory whose lock says that an engine works there.
pub const LOCK_FILE: &str = "daemon.lock";

/// The shared part of an engine.
#[derive(Debug)]
pub(crate) struct Core {
    pub(crate) settings: Settings,
    pub(crate) place: Arc<dyn Place>,
    pub(crate) place_name: PlaceName,
    pub(crate) abilities: Abilities,
    pub(crate) registry: Registry,
    pub(crate) notices: broadcast::Sender<Notice>,
    pub(crate) tracker: TaskTracker,
    pub(crate) closing: CancellationToken,
    pub(crate) calendar: Calendar,
    /// What a full disk did not take.
    pub(crate) unwritten: UnwrittenExecutions,
    /// Looks at services from outside.
    pub(crate) prober: Prober,
    /// One start at a time for each id that a client chose.
    pub(crate) starts: KeyedMutex<ExecutionId>,
    /// Questions and their answers.
    pub(crate) desk: Desk,
    /// Screens that somebody looks at.
    pub(crate) screens: Screens,
    /// Whose journal files stay open.
    pub(crate) readers: Readers,
    /// One journal is compressed at a time.
    pub(crate) compressing: Semaphore,
    /// Services beyond what the registry knows.
    pub(crate) book: Book,
    /// Whether somebody was told what no command gets on this host.
    pub(crate) host_told: AtomicBool,
    /// Entries of the ledger so far.
    pub(crate) ledger_end: watch::Sender<u64>,
    held: Mutex<Option<Held>>,
}

/// What only one engine may hold; let go at shutdown.
#[derive(Debug)]
struct Held {
    ledger: Ledger,
    unwritten: UnwrittenEntries,
    _lock: File,
}

impl Core {
    /// Makes and locks the state directory and opens the ledger.
    pub(crate) fn open(settings: Settings, place: Arc<dyn Place>) -> Result<Arc<Self>, Error> {
        let state = settings.state_dir.clone();
        make_directory(&state)?;
        make_directory(&state.join(EXECUTIONS))?;
        let lock = lock(&state)?;
        make_directory(&state.join(LEDGER))?;
        let mut ledger =
            Ledger::open(&state.join(LEDGER)).map_err(|error| Error::Ledger(error.to_string()))?;
        if let Err(error) = ledger.expire(Timestamp::now(), settings.ledger_retention) {
            tracing::warn!(%error, "old ledger entries cannot be removed");
        }
        let book = Book::open(&settings)?;
        let ledger_end = watch::Sender::new(ledger.end());
        Ok(Arc::new(Self {
            book,
            registry: Registry::new(settings.quotas, state.join(EXECUTIONS)),
            calendar: Calendar::new(&state),
            unwritten: UnwrittenExecutions::default(),
            starts: KeyedMutex::default(),
            desk: Desk::new(),
            screens: Screens::default(),
            readers: Readers::default(),
            settings,
            prober: Prober::new(Arc::clone(&place)),
            place_name: place.name(),
            abilities: place.abilities(),
            place,
            notices: broadcast::Sender::new(NOTICES),
            tracker: TaskTracker::new(),
            closing: CancellationToken::new(),
            compressing: Semaphore::new(1),
            host_told: AtomicBool::new(false),
            ledger_end,
            held: Mutex::new(Some(Held {
                ledger,
                unwritten: UnwrittenEntries::default(),
                _lock: lock,
            })),
        }))
    }

    /// Where executions are kept.
    pub(crate) fn executions(&self) -> PathBuf {
        self.settings.state_dir.join(EXECUTIONS)
    }

    /// The directory of one execution.
    pub(crate) fn dir(&self, id: ExecutionId) -> PathBuf {
        self.executions().join(id.to_string())
    }

    /// Appends to the ledger; nothing runs unrecorded.
    pub(crate) fn record(&self, entry: &LedgerEntry) -> Result<(), Error> {
        self.append(entry, |_| {})
    }

    /// Appends what has happened already: what cannot be written now is written before the next.
    pub(crate) fn write_ledger(&self, entry: &LedgerEntry) {
        if let Err(error) = self.append(entry, |unwritten| unwritten.keep(entry)) {
            tracing::error!(%error, "an entry is not in the ledger yet");
        }
    }

    fn append(
        &self,
        entry: &LedgerEntry,
        refused: impl FnOnce(&mut UnwrittenEntries),
    ) -> Result<(), Error> {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(held) = held.as_mut() else {
            return Err(Error::Closing);
        };
        let appended = held.unwritten.append(&mut held.ledger, entry);
        if appended.is_err() {
            refused(&mut held.unwritten);
        }
        // What waited may be in it although this one is not.
        self.ledger_end.send_replace(held.ledger.end());
        appended.map_err(|error| Error::Ledger(error.to_string()))
    }

    /// Writes down that a request was turned down.
    pub(crate) fn refuse(&self, owner: &Owner, detail: Detail, error: &Error) {
        self.write_ledger(&LedgerEntry {
            at: Timestamp::now(),
            execution: None,
            by: owner.clone(),
            event: Event::Refused {
                code: error.code(),
                message: error.to_string(),
            },
            detail,
        });
    }

    /// A reader of the ledger; none after shutdown.
    pub(crate) fn ledger_reader(&self) -> Option<LedgerReader> {
        let held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        held.as_ref().map(|held| held.ledger.reader())
    }

    /// Lets the ledger and the lock go; another engine may open the directory now.
    pub(crate) fn release(&self) {
        self.catch_up();
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(Err(error)) = held
            .as_mut()
            .map(|held| held.unwritten.write(&mut held.ledger))
        {
            tracing::error!(%error, "entries are missing in the ledger");
        }
        *held = None;
    }
}

/// What the ledger tells people beside an event.
pub(crate) type Detail = BTreeMap<String, serde_json::Value>;

fn make_directory(path: &Path) -> Result<(), Error> {
    ostler_process::private_dir::make(path).map_err(|source| Error::Storage {
        what: "cannot make",
        path: path.to_owned(),
        source,
    })
}

/// The mode of files that are ours alone.
const PRIVATE_FILE: u32 = 0o600;

fn lock(state: &Path) -> Result<File, Error> {
    let path = state.join(LOCK_FILE);
    let failed = |what| {
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
        .map_err(failed("cannot open"))?;
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
        Err(TryLockError::Error(error)) => return Err(failed("cannot lock")(error)),
    }
    // The lock is what counts; who holds it is for people. A full disk must not keep the
    // engine from opening: it is how space is freed.
    let signed = file
        .set_len(0)
        .and_then(|()| file.rewind())
        .and_then(|()| writeln!(file, "{}", std::process::id()));
    if let Err(error) = signed {
        tracing::warn!(path = %path.display(), %error, "the lock does not say who holds it");
    }
    Ok(file)
}
