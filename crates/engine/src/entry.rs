//! One execution as the registry knows it: what is shared between its driver and everybody
//! who asks.

use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use ostler_journal::{EventWriter, Journal, Mark};
use ostler_model::event::TrimReason;
use ostler_model::{Event, EventRecord, ExecutionId, Owner, Spec, State, Timestamp};
use ostler_process::ControlError;
use tokio::sync::{mpsc, watch};

use crate::driver::Ask;
use crate::error::Error;
use crate::info::Info;
use crate::shell::RunSlot;
use crate::terminal::{Leases, Seat, Turns};

/// What the driver publishes.
#[derive(Debug, Clone, Default)]
pub(crate) struct Live {
    /// The fold of everything recorded.
    pub(crate) state: State,
    /// OS pids that survived the ladder.
    pub(crate) survivors: Vec<u32>,
    /// The journal's end, as far as it was known, when the command was last given input.
    pub(crate) input_at: Option<u64>,
    /// What a service waits for on its way to ready, as one clause.
    pub(crate) waits_for: Option<String>,
    /// Whether the driver is done: nothing of this execution is written any more.
    pub(crate) settled: bool,
}

/// What others want of the driver besides asking it: counted, so that nothing is ever dropped
/// for a full queue.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Wishes {
    /// Followers and waits that need to hear of output.
    pub(crate) watchers: usize,
    /// Whether the one request that waited for it is gone (F7).
    pub(crate) cancelled: bool,
    /// Times its writer's lease changed hands.
    pub(crate) leases: u64,
}

/// One execution.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) id: ExecutionId,
    pub(crate) spec: Arc<Spec>,
    pub(crate) dir: PathBuf,
    owner: Mutex<Arc<Owner>>,
    pub(crate) live: watch::Sender<Live>,
    pub(crate) marks: watch::Sender<Mark>,
    pub(crate) wishes: watch::Sender<Wishes>,
    asks: Option<mpsc::Sender<Ask>>,
    memory: Mutex<Option<OwnedFd>>,
    given_out: AtomicBool,
    /// Whether an earlier engine left it unfinished.
    recovered: bool,
    /// Who may type.
    pub(crate) leases: Leases,
    /// What runs in its shell on somebody's behalf.
    pub(crate) shell_run: RunSlot,
    /// What happened to its terminal besides output.
    pub(crate) turns: Turns,
    /// Its screen, while somebody looks at it.
    pub(crate) screen: Arc<tokio::sync::Mutex<Option<Seat>>>,
    /// Held while files of an ended execution are rewritten or removed.
    pub(crate) upkeep: tokio::sync::Mutex<()>,
}

/// How many asks wait for a driver; more wait in their callers.
pub(crate) const ASKS: usize = 32;

impl Entry {
    /// An execution that an earlier engine left unfinished: its id counts as given out.
    pub(crate) fn taken_up(
        whose: (ExecutionId, Arc<Spec>, Arc<Owner>),
        dir: PathBuf,
        live: Live,
    ) -> (Arc<Self>, mpsc::Receiver<Ask>) {
        let (mut entry, receiver) = Self::with_asks(whose, dir, live);
        entry.recovered = true;
        (Arc::new(entry), receiver)
    }

    /// A new execution with a driver, and what that driver listens to. Nobody knows its id yet.
    pub(crate) fn driven(
        whose: (ExecutionId, Arc<Spec>, Arc<Owner>),
        dir: PathBuf,
        live: Live,
    ) -> (Arc<Self>, mpsc::Receiver<Ask>) {
        let (mut entry, receiver) = Self::with_asks(whose, dir, live);
        entry.given_out = AtomicBool::new(false);
        (Arc::new(entry), receiver)
    }

    fn with_asks(
        whose: (ExecutionId, Arc<Spec>, Arc<Owner>),
        dir: PathBuf,
        live: Live,
    ) -> (Self, mpsc::Receiver<Ask>) {
        let (sender, receiver) = mpsc::channel(ASKS);
        let mut entry = Self::new(whose, dir, live, 0);
        entry.asks = Some(sender);
        (entry, receiver)
    }

    /// An execution that ended before this engine was opened.
    pub(crate) fn ended(
        (id, spec, owner): (ExecutionId, Arc<Spec>, Arc<Owner>),
        dir: PathBuf,
        state: State,
        output_end: u64,
    ) -> Arc<Self> {
        let live = Live {
            state,
            survivors: Vec::new(),
            waits_for: None,
            input_at: None,
            settled: true,
        };
        let mut entry = Self::new((id, spec, owner), dir, live, output_end);
        entry.turns = Turns::on_disk();
        entry.marks.send_modify(|mark| mark.finished = true);
        Arc::new(entry)
    }

    fn new(
        (id, spec, owner): (ExecutionId, Arc<Spec>, Arc<Owner>),
        dir: PathBuf,
        live: Live,
        end: u64,
    ) -> Self {
        let mark = Mark {
            end,
            finished: false,
        };
        Self {
            id,
            spec,
            dir,
            owner: Mutex::new(owner),
            live: watch::Sender::new(live),
            marks: watch::Sender::new(mark),
            wishes: watch::Sender::new(Wishes::default()),
            asks: None,
            memory: Mutex::new(None),
            given_out: AtomicBool::new(true),
            recovered: false,
            leases: Leases::default(),
            shell_run: RunSlot::default(),
            turns: Turns::new(),
            screen: Arc::default(),
            upkeep: tokio::sync::Mutex::new(()),
        }
    }

    /// Who may see it now.
    pub(crate) fn owner(&self) -> Arc<Owner> {
        let owner = self.owner.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(&owner)
    }

    /// Passes it on (D3).
    pub(crate) fn pass_to(&self, owner: Owner) {
        *self.owner.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(owner);
    }

    /// What callers are told.
    pub(crate) fn info(&self) -> Info {
        let (state, survivors, waits_for) = {
            let live = self.live.borrow();
            let waits_for = live.waits_for.clone();
            (live.state.clone(), live.survivors.clone(), waits_for)
        };
        Info {
            id: self.id,
            spec: Arc::clone(&self.spec),
            owner: self.owner(),
            state,
            output_end: self.marks.borrow().end,
            survivors,
            waits_for,
            given_out: self.is_given_out(),
            recovered: self.recovered,
        }
    }

    /// As [`Entry::info`], with the journal's end looked up while it runs.
    pub(crate) fn fresh_info(&self) -> Info {
        let mut info = self.info();
        if !info.state.is_finished()
            && let Some(end) = self.journal().ok().and_then(|it| it.end().ok())
        {
            info.output_end = info.output_end.max(end);
        }
        info
    }

    /// Output of an ended execution was dropped: there is no driver to write it down.
    pub(crate) fn note_trimmed(
        &self,
        (from, to): (u64, u64),
        reason: TrimReason,
    ) -> Result<(), Error> {
        let noted = self.note(Event::Trimmed { from, to, reason }, to);
        noted.map(drop).map_err(Error::Clear)
    }

    /// Something happened to an ended execution: there is no driver to write it down. The
    /// driver must be done.
    pub(crate) fn note(
        &self,
        event: Event,
        offset: u64,
    ) -> Result<EventRecord, ostler_journal::WriteError> {
        let (mut writer, _known) = EventWriter::open(&self.dir)?;
        let mut written = None;
        self.live.send_modify(|live| {
            let record = EventRecord {
                seq: live.state.events,
                at: Timestamp::now(),
                offset,
                event,
            };
            live.state.apply(&record);
            self.turns.note(&record);
            written = Some(
                writer
                    .append(std::slice::from_ref(&record))
                    .map(|()| record),
            );
        });
        written.expect("it was just written")
    }

    /// Whether it has ended.
    pub(crate) fn is_finished(&self) -> bool {
        self.live.borrow().state.is_finished()
    }

    /// Somebody was told its id.
    pub(crate) fn give_out(&self) {
        self.given_out.store(true, Ordering::Release);
    }

    /// Whether somebody was told its id.
    pub(crate) fn is_given_out(&self) -> bool {
        self.given_out.load(Ordering::Acquire)
    }

    /// Nobody waits for it and nobody knows it: it must end (F7). Never blocks.
    pub(crate) fn cancel(&self) {
        self.wishes.send_modify(|wishes| wishes.cancelled = true);
    }

    /// Its lease changed hands: the driver is to put that on record. Never blocks.
    pub(crate) fn leases_changed(&self) {
        self.wishes.send_modify(|wishes| wishes.leases += 1);
    }

    /// Asks the driver; an ended execution has none.
    pub(crate) async fn ask(&self, ask: Ask) -> Result<(), ControlError> {
        match &self.asks {
            Some(asks) => asks.send(ask).await.map_err(|_| ControlError::Ended),
            None => Err(ControlError::Ended),
        }
    }

    /// Output went into memory for want of disk.
    pub(crate) fn keep_memory(&self, memory: OwnedFd) {
        *self.memory.lock().unwrap_or_else(PoisonError::into_inner) = Some(memory);
    }

    /// Its journal.
    pub(crate) fn journal(&self) -> Result<Journal, Error> {
        let journal = Journal::open(&self.dir)?;
        let memory = self.memory.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(memory) = memory.as_ref() else {
            return Ok(journal);
        };
        let memory = memory.try_clone().map_err(|source| Error::Storage {
            what: "cannot duplicate the memory segment of",
            path: self.dir.clone(),
            source,
        })?;
        Ok(journal.with_memory(memory))
    }

    /// Waits until the driver is done.
    pub(crate) async fn settled(&self) {
        let mut live = self.live.subscribe();
        // The sender lives in self, so this cannot fail.
        let _ended = live.wait_for(|live| live.settled).await.is_ok();
    }
}

/// While it lives, the driver hears of output and tells of it.
#[derive(Debug)]
pub(crate) struct Watching(pub(crate) Arc<Entry>);

impl Watching {
    /// Begins to watch.
    pub(crate) fn new(entry: &Arc<Entry>) -> Self {
        entry.wishes.send_modify(|wishes| wishes.watchers += 1);
        Self(Arc::clone(entry))
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        self.0.wishes.send_modify(|wishes| wishes.watchers -= 1);
    }
}
