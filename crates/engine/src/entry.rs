//! One execution as the registry knows it: what is shared between its driver and everybody
//! who asks.

use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ostler_journal::{EventWriter, Journal, Mark, MemorySlot};
use ostler_model::event::TrimReason;
use ostler_model::{Event, EventRecord, ExecutionId, Owner, Spec, State, Timestamp};
use ostler_process::{ControlError, open_files};
use tokio::sync::{mpsc, watch};

use crate::driver::Ask;
use crate::error::Error;
use crate::info::Info;
use crate::quota_queue::QueueWait;
use crate::shell::RunSlot;
use crate::short::is_not_opened;
use crate::terminal::{Leases, Seat, Turns};
use crate::unwritten::UnwrittenEvents;

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
    /// The lowest offset a reader has yet to read that may miss nothing.
    pub(crate) retain_from: Option<u64>,
}

/// How an execution came about under this engine.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct StartOrigin {
    /// Whether the client chose its id, and so knows it before any answer.
    pub(crate) id_chosen: bool,
    /// How long its start waited for a place.
    pub(crate) queued: Option<QueueWait>,
    /// Whether its answers say what no command gets on this host: those of the first one that
    /// lacks it do.
    pub(crate) warns_of_host: bool,
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
    /// How to ask its driver, while it has one.
    asks: Mutex<Option<mpsc::Sender<Ask>>>,
    memory: MemorySlot,
    /// How far the readers are that may miss nothing.
    lossless: Mutex<BTreeMap<u64, u64>>,
    given_out: AtomicBool,
    /// How it came about.
    pub(crate) origin: StartOrigin,
    /// Whether an earlier engine left it unfinished.
    recovered: bool,
    /// Whether it is left out of lists of services.
    dismissed: AtomicBool,
    /// Who may type.
    pub(crate) leases: Leases,
    /// What runs in its shell on somebody's behalf.
    pub(crate) shell_run: RunSlot,
    /// What happened to its terminal besides output.
    pub(crate) turns: Turns,
    /// Its screen, while somebody looks at it; by itself, for most executions have none.
    pub(crate) screen: Arc<tokio::sync::Mutex<Option<Box<Seat>>>>,
    /// Its journal with its files open, while somebody looks at it again and again.
    reader: Mutex<Option<Journal>>,
    /// Its events that a full disk did not take.
    pub(crate) unwritten: UnwrittenEvents,
    /// Held while files of an ended execution are rewritten or removed.
    pub(crate) upkeep: tokio::sync::Mutex<()>,
}

/// What is kept of an ended execution besides what was asked, its owner and its state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct EndedFields {
    end: u64,
    dropped_to: u64,
    input_at: Option<u64>,
    given_out: bool,
    id_chosen: bool,
    recovered: bool,
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

    /// A new execution with a driver, and what that driver listens to. Nobody was told its id
    /// yet; whoever chose it knows it.
    pub(crate) fn driven(
        whose: (ExecutionId, Arc<Spec>, Arc<Owner>),
        dir: PathBuf,
        live: Live,
        origin: StartOrigin,
    ) -> (Arc<Self>, mpsc::Receiver<Ask>) {
        let (mut entry, receiver) = Self::with_asks(whose, dir, live);
        entry.given_out = AtomicBool::new(false);
        entry.origin = origin;
        (Arc::new(entry), receiver)
    }

    fn with_asks(
        whose: (ExecutionId, Arc<Spec>, Arc<Owner>),
        dir: PathBuf,
        live: Live,
    ) -> (Self, mpsc::Receiver<Ask>) {
        let (sender, receiver) = mpsc::channel(ASKS);
        let mut entry = Self::new(whose, dir, live, 0);
        entry.asks = Mutex::new(Some(sender));
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

    /// An execution of this engine that had ended and was set aside.
    pub(crate) fn again(
        (id, spec, owner): (ExecutionId, Arc<Spec>, Arc<Owner>),
        dir: PathBuf,
        state: State,
        remains: EndedFields,
    ) -> Arc<Self> {
        let live = Live {
            state,
            input_at: remains.input_at,
            settled: true,
            ..Live::default()
        };
        let mut entry = Self::new((id, spec, owner), dir, live, remains.end);
        entry.turns = Turns::on_disk();
        entry.turns.set_dropped_to(remains.dropped_to);
        entry.given_out = AtomicBool::new(remains.given_out);
        entry.origin.id_chosen = remains.id_chosen;
        entry.recovered = remains.recovered;
        entry.marks.send_modify(|mark| mark.finished = true);
        Arc::new(entry)
    }

    /// What is to be kept of it; none where it runs, somebody hears of it, or it holds what
    /// cannot be made again.
    pub(crate) fn remains(&self) -> Option<EndedFields> {
        let live = self.live.borrow();
        let is_over = live.settled && live.state.is_finished() && live.survivors.is_empty();
        let is_heard = self.live.receiver_count() > 0
            || self.marks.receiver_count() > 0
            || self.wishes.receiver_count() > 0;
        let holds = self.memory.get().is_some()
            || !self.unwritten.lock().is_empty()
            || !self.lossless().is_empty();
        if !is_over || is_heard || holds {
            return None;
        }
        Some(EndedFields {
            end: self.marks.borrow().end,
            dropped_to: self.turns.dropped_to(),
            input_at: live.input_at,
            given_out: self.is_given_out(),
            id_chosen: self.origin.id_chosen,
            recovered: self.recovered,
        })
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
            asks: Mutex::new(None),
            memory: MemorySlot::default(),
            lossless: Mutex::default(),
            given_out: AtomicBool::new(true),
            origin: StartOrigin::default(),
            dismissed: AtomicBool::new(false),
            recovered: false,
            leases: Leases::default(),
            shell_run: RunSlot::default(),
            turns: Turns::new(),
            screen: Arc::default(),
            reader: Mutex::default(),
            unwritten: UnwrittenEvents::default(),
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
            queued: self.origin.queued,
            warns_of_host: self.origin.warns_of_host,
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
        let mut waiting = self.unwritten.lock();
        let open = || EventWriter::open(&self.dir);
        let (mut writer, _known) = open_files::with_held(open, is_not_opened)?;
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
            let records = std::slice::from_ref(&record);
            let append = || waiting.append(&mut writer, records);
            let appended = open_files::with_held(append, is_not_opened);
            if appended.is_err() {
                waiting.keep(records);
            }
            written = Some(appended.map(|()| record));
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

    /// It is left out of lists of services from now on.
    pub(crate) fn dismiss(&self) {
        self.dismissed.store(true, Ordering::Release);
    }

    /// Whether it is left out of lists of services.
    pub(crate) fn is_dismissed(&self) -> bool {
        self.dismissed.load(Ordering::Acquire)
    }

    /// Whether somebody was told its id.
    pub(crate) fn is_given_out(&self) -> bool {
        self.given_out.load(Ordering::Acquire)
    }

    /// Whether somebody may come back for it by its id under the next engine.
    pub(crate) fn is_id_known(&self) -> bool {
        self.origin.id_chosen || self.is_given_out()
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
        let asks = {
            let asks = self.asks.lock().unwrap_or_else(PoisonError::into_inner);
            asks.clone()
        };
        match asks {
            Some(asks) => asks.send(ask).await.map_err(|_| ControlError::Ended),
            None => Err(ControlError::Ended),
        }
    }

    /// The driver is done: nothing of this execution is written any more, and what only its
    /// driver needed is given back.
    pub(crate) fn settle(&self) {
        drop(
            self.asks
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .take(),
        );
        self.live.send_modify(|live| live.settled = true);
    }

    /// Output went into memory for want of disk.
    pub(crate) fn keep_memory(&self, memory: OwnedFd) {
        self.memory.put(memory);
        self.publish_retained(&self.lossless());
    }

    /// What was in memory is on disk, or gone.
    pub(crate) fn drop_memory(&self) {
        self.memory.clear();
    }

    /// Keeps the files of its journal open from now on; true where they were not.
    pub(crate) fn open_reader(&self) -> bool {
        let mut reader = self.reader.lock().unwrap_or_else(PoisonError::into_inner);
        if reader.is_none() && !self.is_finished() && !open_files::is_short() {
            *reader = Journal::open(&self.dir)
                .ok()
                .map(Journal::keeping_files_open);
            return reader.is_some();
        }
        false
    }

    /// Closes the files of its journal, those of handles given out included.
    pub(crate) fn close_reader(&self) {
        let reader = self
            .reader
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        if let Some(reader) = reader {
            reader.close_files();
        }
    }

    /// Its journal.
    pub(crate) fn journal(&self) -> Result<Journal, Error> {
        let open = self.reader.lock().unwrap_or_else(PoisonError::into_inner);
        let journal = match open.clone() {
            Some(open) => open,
            None => Journal::open(&self.dir)?,
        };
        Ok(journal.with_memory_slot(self.memory.clone()))
    }

    fn lossless(&self) -> MutexGuard<'_, BTreeMap<u64, u64>> {
        self.lossless.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn publish_retained(&self, lossless: &BTreeMap<u64, u64>) {
        let from = lossless.values().min().copied();
        self.wishes.send_if_modified(|wishes| {
            let changed = wishes.retain_from != from;
            wishes.retain_from = from;
            changed
        });
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

/// A reader that may miss nothing: while output goes to memory for want of disk, the command
/// waits for it as for the reader of a pipe.
#[derive(Debug)]
pub(crate) struct Lossless {
    entry: Arc<Entry>,
    key: u64,
}

impl Lossless {
    /// Begins to read at `offset`.
    pub(crate) fn new(entry: &Arc<Entry>, offset: u64) -> Self {
        let mut lossless = entry.lossless();
        let key = lossless.last_key_value().map_or(0, |(last, _)| last + 1);
        lossless.insert(key, offset);
        entry.publish_retained(&lossless);
        drop(lossless);
        Self {
            entry: Arc::clone(entry),
            key,
        }
    }

    /// Everything before `offset` was read.
    pub(crate) fn read_to(&self, offset: u64) {
        let mut lossless = self.entry.lossless();
        lossless.insert(self.key, offset);
        // While the disk takes everything nobody needs to know.
        if self.entry.memory.get().is_some() {
            self.entry.publish_retained(&lossless);
        }
    }
}

impl Drop for Lossless {
    fn drop(&mut self) {
        let mut lossless = self.entry.lossless();
        lossless.remove(&self.key);
        self.entry.publish_retained(&lossless);
    }
}
