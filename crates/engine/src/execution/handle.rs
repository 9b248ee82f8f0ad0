//! [`ExecutionHandle`]: one execution as the registry holds it, shared between its driver and all
//! callers.

use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use ostler_backend::ControlError;
use ostler_journal::{Durability, EventWriter, Journal, JournalEnd, MemorySlot};
use ostler_model::{Event, EventRecord, ExecutionId, Owner, Principal, Spec, State, Timestamp};
use ostler_sys::open_files;
use parking_lot::Mutex;
use tokio::sync::{mpsc, watch};

use super::command::{DriverCommand, WriteKind};
use super::disclosure::IdDisclosure;
use super::input_record::InputRecord;
use super::timeline::Timeline;
use super::writer_changes::WriterChanges;
use crate::error::Error;
use crate::fd_shortage::is_write_out_of_fds;
use crate::info::{ExecutionInfo, QueueWait};
use crate::unwritten::UnwrittenEvents;

/// What the driver publishes.
#[derive(Debug, Clone, Default)]
pub(crate) struct LiveState {
    /// The fold of everything recorded.
    pub(crate) state: State,
    /// OS pids that survived the kill escalation.
    pub(crate) survivors: Vec<u32>,
    /// The journal's end, as far as it was known, when the command last received input.
    pub(crate) last_input_offset: Option<u64>,
    /// The condition that a service still waits for before it is ready, as one clause.
    pub(crate) waiting_for: Option<String>,
    /// Whether the driver is done: nothing more of this execution is written.
    pub(crate) driver_done: bool,
}

/// Requests to the driver outside its command channel: kept as counters and flags, so that none is
/// ever dropped for a full queue.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct DriverFlags {
    /// The number of followers and waits that need output notifications.
    pub(crate) watchers: usize,
    /// Whether the only request that waited for it is gone.
    pub(crate) cancelled: bool,
    /// How often its writer changed.
    pub(crate) writer_changes: u64,
    /// The lowest offset that a lossless reader has yet to read.
    pub(crate) retain_from: Option<u64>,
}

/// How an execution was started under this engine.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct StartOrigin {
    /// Whether the client chose its id, and so knows it before any answer.
    pub(crate) client_chose_id: bool,
    /// How long its start waited for a slot within the quota.
    pub(crate) queue_wait: Option<QueueWait>,
    /// Whether its answers report the capabilities that are missing on this host: only those of the
    /// first execution that lacks them do.
    pub(crate) warns_of_host: bool,
}

/// What identifies an execution.
#[derive(Debug)]
pub(crate) struct ExecutionIdentity {
    pub(crate) id: ExecutionId,
    pub(crate) spec: Arc<Spec>,
    pub(crate) owner: Arc<Owner>,
    /// Its directory.
    pub(crate) dir: PathBuf,
}

#[derive(Debug)]
pub(crate) struct ExecutionHandle {
    pub(crate) id: ExecutionId,
    pub(crate) spec: Arc<Spec>,
    pub(crate) dir: PathBuf,
    owner: Mutex<Arc<Owner>>,
    pub(crate) live: watch::Sender<LiveState>,
    pub(crate) journal_end: watch::Sender<JournalEnd>,
    pub(crate) flags: watch::Sender<DriverFlags>,
    /// The driver's command channel, while there is a driver.
    commands: Mutex<Option<mpsc::Sender<DriverCommand>>>,
    /// How many writes to its input were sent to the driver.
    writes: AtomicU64,
    pub(super) input_record: InputRecord,
    pub(super) memory: MemorySlot,
    /// The read offsets of lossless readers.
    pub(super) lossless_offsets: Mutex<BTreeMap<u64, u64>>,
    disclosure: IdDisclosure,
    /// How it was started.
    pub(crate) origin: StartOrigin,
    /// Whether an earlier engine left it unfinished.
    recovered: bool,
    /// Whether it is left out of lists of services.
    dismissed: AtomicBool,
    /// The changes of its writer that are not recorded yet.
    writer_changes: WriterChanges,
    /// The terminal's changes besides output (size, attempts).
    pub(crate) timeline: Timeline,
    /// The journal with its files open, while it is read repeatedly.
    open_journal: Mutex<Option<Journal>>,
    /// How many drops of output are under way.
    output_drops: AtomicU32,
    /// Its events that a full disk refused.
    pub(crate) unwritten: UnwrittenEvents,
    /// Held while files of an ended execution are rewritten or removed.
    pub(crate) maintenance_lock: tokio::sync::Mutex<()>,
}

/// The data of an ended execution besides its spec, owner and state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct EndedFields {
    output_end: u64,
    dropped_to: u64,
    last_input_offset: Option<u64>,
    id_disclosed: bool,
    client_chose_id: bool,
    recovered: bool,
}

/// While it exists, missing output of the execution need not be lost.
#[derive(Debug)]
pub(crate) struct OutputDropGuard(Arc<ExecutionHandle>);

impl Drop for OutputDropGuard {
    fn drop(&mut self) {
        self.0.output_drops.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Capacity of the driver's command channel; further senders wait.
pub(crate) const DRIVER_COMMANDS_MAX: usize = 32;

impl ExecutionHandle {
    /// An execution that an earlier engine left unfinished: its id counts as disclosed.
    pub(crate) fn reattached(
        identity: ExecutionIdentity,
        live: LiveState,
    ) -> (Arc<Self>, mpsc::Receiver<DriverCommand>) {
        let (mut entry, receiver) = Self::with_commands(identity, live);
        entry.recovered = true;
        // The earlier engine may have written.
        entry.writes = AtomicU64::new(1);
        (Arc::new(entry), receiver)
    }

    /// A new execution with a driver, and the driver's receivers. Its id is not disclosed, unless
    /// the client chose it.
    pub(crate) fn with_driver(
        identity: ExecutionIdentity,
        live: LiveState,
        origin: StartOrigin,
    ) -> (Arc<Self>, mpsc::Receiver<DriverCommand>) {
        let (mut entry, receiver) = Self::with_commands(identity, live);
        entry.disclosure = IdDisclosure::new(false);
        entry.origin = origin;
        (Arc::new(entry), receiver)
    }

    fn with_commands(
        identity: ExecutionIdentity,
        live: LiveState,
    ) -> (Self, mpsc::Receiver<DriverCommand>) {
        let (sender, receiver) = mpsc::channel(DRIVER_COMMANDS_MAX);
        let mut entry = Self::new(identity, live, 0);
        entry.commands = Mutex::new(Some(sender));
        (entry, receiver)
    }

    /// An execution that ended before this engine was opened.
    pub(crate) fn new_ended(
        identity: ExecutionIdentity,
        state: State,
        output_end: u64,
    ) -> Arc<Self> {
        let live = LiveState {
            state,
            survivors: Vec::new(),
            waiting_for: None,
            last_input_offset: None,
            driver_done: true,
        };
        let mut entry = Self::new(identity, live, output_end);
        entry.timeline = Timeline::on_disk();
        entry.journal_end.send_modify(|mark| mark.finished = true);
        Arc::new(entry)
    }

    /// An execution that ended under this engine and was summarized.
    pub(crate) fn restore_ended(
        identity: ExecutionIdentity,
        state: State,
        ended_fields: EndedFields,
    ) -> Arc<Self> {
        let live = LiveState {
            state,
            last_input_offset: ended_fields.last_input_offset,
            driver_done: true,
            ..LiveState::default()
        };
        let mut entry = Self::new(identity, live, ended_fields.output_end);
        entry.timeline = Timeline::on_disk();
        entry.timeline.set_dropped_to(ended_fields.dropped_to);
        entry.disclosure = IdDisclosure::new(ended_fields.id_disclosed);
        entry.origin.client_chose_id = ended_fields.client_chose_id;
        entry.recovered = ended_fields.recovered;
        entry.journal_end.send_modify(|mark| mark.finished = true);
        Arc::new(entry)
    }

    /// The fields to keep of it; none while it runs, has subscribers, or holds state that cannot be
    /// rebuilt.
    pub(crate) fn ended_fields(&self) -> Option<EndedFields> {
        let live = self.live.borrow();
        let has_ended = live.driver_done && live.state.is_finished() && live.survivors.is_empty();
        let has_subscribers = self.live.receiver_count() > 0
            || self.journal_end.receiver_count() > 0
            || self.flags.receiver_count() > 0;
        let has_unsaved_data = self.memory.get().is_some()
            || !self.unwritten.lock().is_empty()
            || !self.lossless_offsets.lock().is_empty();
        if !has_ended || has_subscribers || has_unsaved_data {
            return None;
        }
        Some(EndedFields {
            output_end: self.journal_end.borrow().end,
            dropped_to: self.timeline.dropped_to(),
            last_input_offset: live.last_input_offset,
            id_disclosed: self.is_id_disclosed(),
            client_chose_id: self.origin.client_chose_id,
            recovered: self.recovered,
        })
    }

    fn new(identity: ExecutionIdentity, live: LiveState, end: u64) -> Self {
        let mark = JournalEnd {
            end,
            finished: false,
        };
        let ExecutionIdentity {
            id,
            spec,
            owner,
            dir,
        } = identity;
        Self {
            id,
            spec,
            dir,
            owner: Mutex::new(owner),
            live: watch::Sender::new(live),
            journal_end: watch::Sender::new(mark),
            flags: watch::Sender::new(DriverFlags::default()),
            commands: Mutex::new(None),
            memory: MemorySlot::default(),
            lossless_offsets: Mutex::default(),
            disclosure: IdDisclosure::new(true),
            origin: StartOrigin::default(),
            dismissed: AtomicBool::new(false),
            writes: AtomicU64::new(0),
            input_record: InputRecord::default(),
            recovered: false,
            writer_changes: WriterChanges::default(),
            timeline: Timeline::new(),
            open_journal: Mutex::default(),
            output_drops: AtomicU32::new(0),
            unwritten: UnwrittenEvents::default(),
            maintenance_lock: tokio::sync::Mutex::new(()),
        }
    }

    /// Who may see it now.
    pub(crate) fn owner(&self) -> Arc<Owner> {
        let owner = self.owner.lock();
        Arc::clone(&owner)
    }

    /// Passes it to another owner.
    pub(crate) fn set_owner(&self, owner: Owner) {
        *self.owner.lock() = Arc::new(owner);
    }

    /// Its state as callers get it.
    pub(crate) fn info(&self) -> ExecutionInfo {
        // Before the state: a drop that has just ended is on record in it.
        let is_dropping_output = self.output_drops.load(Ordering::SeqCst) > 0;
        let (state, survivors, waits_for) = {
            let live = self.live.borrow();
            let waits_for = live.waiting_for.clone();
            (live.state.clone(), live.survivors.clone(), waits_for)
        };
        ExecutionInfo {
            id: self.id,
            spec: Arc::clone(&self.spec),
            owner: self.owner(),
            state,
            output_end: self.journal_end.borrow().end,
            survivors,
            waiting_for: waits_for,
            id_disclosed: self.is_id_disclosed(),
            recovered: self.recovered,
            queue_wait: self.origin.queue_wait,
            warns_about_host: self.origin.warns_of_host,
            is_dropping_output,
        }
    }

    /// As [`ExecutionHandle::info`], with the journal's end looked up while it runs.
    pub(crate) fn fresh_info(&self) -> ExecutionInfo {
        let mut info = self.info();
        if !info.state.is_finished()
            && let Some(end) = self.journal().ok().and_then(|it| it.end().ok())
        {
            info.output_end = info.output_end.max(end);
        }
        info
    }

    /// Announces that output is dropped on purpose, until the event that reports it is applied.
    pub(crate) fn begin_output_drop(self: &Arc<Self>) -> OutputDropGuard {
        self.output_drops.fetch_add(1, Ordering::SeqCst);
        OutputDropGuard(Arc::clone(self))
    }

    /// Records an event of an ended execution: there is no driver to do so. The driver must be
    /// done.
    pub(crate) fn record_event(
        &self,
        event: Event,
        offset: u64,
        durability: Durability,
    ) -> Result<EventRecord, ostler_journal::WriteError> {
        let mut unwritten = self.unwritten.lock();
        let open = || EventWriter::open(&self.dir);
        let (writer, _known) = open_files::with_emergency_fds(open, is_write_out_of_fds)?;
        let mut writer = writer.with_durability(durability);
        let mut written = None;
        self.live.send_modify(|live| {
            let record = EventRecord {
                seq: live.state.events,
                at: Timestamp::now(),
                offset,
                event,
            };
            live.state.apply(&record);
            self.timeline.apply(&record);
            let records = std::slice::from_ref(&record);
            let append = || unwritten.append(&mut writer, records);
            let appended = open_files::with_emergency_fds(append, is_write_out_of_fds);
            if appended.is_err() {
                unwritten.push(records);
            }
            written = Some(appended.map(|()| record));
        });
        written.expect("it was just written")
    }

    /// Whether it has ended.
    pub(crate) fn is_finished(&self) -> bool {
        self.live.borrow().state.is_finished()
    }

    /// Records that a caller receives its id; returns false where it is stopped already, as one that
    /// nobody knows.
    pub(crate) fn disclose_id(&self) -> bool {
        self.disclosure.disclose()
    }

    /// Records that it is stopped as one that nobody knows; returns false where a caller has its id.
    pub(crate) fn revoke_id(&self) -> bool {
        self.disclosure.revoke()
    }

    /// Leaves it out of lists of services from now on.
    pub(crate) fn dismiss(&self) {
        self.dismissed.store(true, Ordering::Release);
    }

    /// Whether it is left out of lists of services.
    pub(crate) fn is_dismissed(&self) -> bool {
        self.dismissed.load(Ordering::Acquire)
    }

    /// Whether a caller received its id.
    pub(crate) fn is_id_disclosed(&self) -> bool {
        self.disclosure.is_disclosed()
    }

    /// Cancels it: no request waits for it and no client knows it. Never blocks.
    pub(crate) fn cancel(&self) {
        self.flags.send_modify(|flags| flags.cancelled = true);
    }

    /// Has the driver record who alone may type from now on, if anybody. Never blocks.
    pub(crate) fn record_writer_change(&self, by: Option<Principal>) {
        self.writer_changes.push(by);
        self.flags.send_modify(|flags| flags.writer_changes += 1);
    }

    /// The next change of the writer that is not recorded yet.
    pub(crate) fn next_writer_change(&self) -> Option<Option<Principal>> {
        self.writer_changes.pop()
    }

    /// Sends a command to the driver; an ended execution has none.
    pub(crate) async fn send_command(&self, ask: DriverCommand) -> Result<(), ControlError> {
        let commands = {
            let commands = self.commands.lock();
            commands.clone()
        };
        // A query of the progress of an input writes nothing.
        if let DriverCommand::Write(write) = &ask
            && !matches!(write.kind, WriteKind::QueryProgress(_))
        {
            self.writes.fetch_add(1, Ordering::AcqRel);
        }
        match commands {
            Some(asks) => asks.send(ask).await.map_err(|_| ControlError::Ended),
            None => Err(ControlError::Ended),
        }
    }

    /// How many writes to its input there were: keys, lines, and replies to queries of the terminal.
    /// 0 where nothing was ever written.
    pub(crate) fn write_count(&self) -> u64 {
        self.writes.load(Ordering::Acquire)
    }

    /// Marks the driver as done: nothing more of this execution is written, and resources that only
    /// its driver needed are released.
    pub(crate) fn mark_driver_done(&self) {
        drop(self.commands.lock().take());
        self.live.send_modify(|live| live.driver_done = true);
    }

    /// Sets the memory file that output goes to while the disk is full.
    pub(crate) fn set_memory(&self, memory: OwnedFd) {
        self.memory.set(memory);
        self.publish_retain_from(&self.lossless_offsets.lock());
    }

    /// Clears the memory file: its content is on disk, or lost.
    pub(crate) fn clear_memory(&self) {
        self.memory.clear();
    }

    /// Keeps the files of its journal open from now on; returns true where they were not.
    pub(crate) fn open_reader(&self) -> bool {
        let mut reader = self.open_journal.lock();
        if reader.is_none() && !self.is_finished() && !open_files::is_scarce() {
            *reader = Journal::open(&self.dir).ok().map(Journal::with_open_files);
            return reader.is_some();
        }
        false
    }

    /// Closes the files of its journal, those of cloned handles included.
    pub(crate) fn close_reader(&self) {
        let reader = self.open_journal.lock().take();
        if let Some(reader) = reader {
            reader.close_files();
        }
    }

    /// Its journal, for reading.
    pub(crate) fn journal(&self) -> Result<Journal, Error> {
        let open = self.open_journal.lock();
        let journal = match open.clone() {
            Some(open) => open,
            None => Journal::open(&self.dir)?,
        };
        Ok(journal.with_memory_slot(self.memory.clone()))
    }

    pub(super) fn publish_retain_from(&self, lossless: &BTreeMap<u64, u64>) {
        let from = lossless.values().min().copied();
        self.flags.send_if_modified(|flags| {
            let changed = flags.retain_from != from;
            flags.retain_from = from;
            changed
        });
    }

    /// Waits until the driver is done.
    pub(crate) async fn wait_driver_done(&self) {
        let mut live = self.live.subscribe();
        // The sender is owned by self, so this cannot fail.
        let _ended = live.wait_for(|live| live.driver_done).await.is_ok();
    }
}
