//! Runs one tree from spawn to its end: a poll loop over the daemon, the leader and its output.

mod detach;
mod finish;
mod freeze;
mod idempotent_inputs;
mod input;
mod limits;
mod lost;
mod poller;
mod reserve;
mod stopped;
mod timers;

use std::ops::Range;
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use ostler_backend::execution_dir;
use ostler_backend::output_sink::{OutputSink, SinkEvent};
use ostler_backend::{ControlCommand, KillReason, LaunchIo, LaunchPlan, ProcessEvent};
use ostler_model::{LimitKind, MissingCapability};
use ostler_sandbox::cgroup::CgroupSlot;
use ostler_sandbox::stdio::set_size;
use ostler_sys::seqpacket::ReceiveMode;
use ostler_sys::signals;
use rustix::event::PollFlags;

use self::freeze::FreezeState;
use self::idempotent_inputs::IdempotentInputs;
use self::input::InputRecording;
use self::poller::{PollTarget, Poller};
use super::attempt_tree::AttemptTree;
use super::canonical_line::CanonicalLine;
use super::daemon_connection::{self, CONTROL_SOCKET, DaemonConnection, DaemonEvent};
use super::kill_escalation::{KillAction, KillEscalation};
use super::output_notify::NotifyThrottle;
use super::spawn::SpawnedTree;
use super::state::Shim;
use super::streams::OutputStreams;
use super::terminal_queries::TerminalQueryScanner;
use crate::proto::ShimRequest;
use crate::sys::time::ClockReading;

/// The interval of retries after a full disk while no daemon is connected, in milliseconds.
const RETRY_MS: u64 = 500;
/// A command without [`report_start`](crate::LaunchPlan::report_start) is reported as started once
/// it has lived this long, in milliseconds: one that ends earlier costs the daemon no wake-up.
const REPORT_START_MS: u64 = 20;
/// Bytes of the read buffer that stay resident between commands.
const WARM_BYTES: usize = 16 * 1024;

/// What the shim does after an attempt.
#[derive(Debug)]
pub(crate) enum AttemptEnd {
    /// Nothing is left of the attempt; another plan may come.
    Recycle(DaemonConnection),
    /// The shim exits: no daemon is connected, or a process could not be killed.
    Leave,
}

/// One running tree.
#[derive(Debug)]
pub(crate) struct AttemptRunner<'a> {
    shim: &'a mut Shim,
    daemon: DaemonConnection,
    plan: LaunchPlan,
    dir: OwnedFd,
    tree: AttemptTree,
    streams: OutputStreams,
    input: Option<OwnedFd>,
    /// Inputs that are written at most once.
    idempotent_inputs: IdempotentInputs,
    /// The unfinished line of the terminal.
    canonical_line: CanonicalLine,
    /// Finds the program's terminal queries.
    query_scanner: TerminalQueryScanner,
    sink: OutputSink,
    escalation: KillEscalation,
    started: ClockReading,
    /// When the leader's end was noticed; of a detached tree, the last process's.
    ended: Option<ClockReading>,
    /// The leader has ended, others continue the attempt, and this was reported.
    detached: bool,
    wall_at: Option<Instant>,
    idle_at: Option<Instant>,
    listen_at: Option<Instant>,
    /// The socket for the next daemon, which listens to nobody yet.
    spare_socket: Option<OwnedFd>,
    /// When reserving space for the exit record is tried, where none is reserved.
    reserve_at: Option<Instant>,
    /// When the start is reported, unless the attempt has ended by then.
    report_at: Option<Instant>,
    notifier: NotifyThrottle,
    poller: Poller,
    /// The exit record could not be written. Recovery must then not find this shim alive with
    /// another execution: it accepts none.
    exit_unrecorded: bool,
    oom_before: u64,
    /// Processor time in the slot before the start, where orphans are reaped by an init.
    cpu_before: Option<(u64, u64)>,
    /// Limits that were reported.
    limits_hit: Vec<LimitKind>,
    /// What the isolation has lost.
    lost_capabilities: Vec<MissingCapability>,
    freeze_state: Option<FreezeState>,
    /// A signal that stops the tree was requested, and none since that continues it.
    stop_ordered: bool,
}

/// The result of handling the timers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LoopAction {
    /// The attempt continues.
    Continue,
    /// No process is left.
    Empty,
    /// Processes are left that cannot be killed.
    GaveUp,
}

/// The descriptors a poll found ready.
#[derive(Debug, Default)]
struct PollReady {
    daemon: bool,
    processes: bool,
    limits: bool,
    streams: [bool; 2],
}

impl<'a> AttemptRunner<'a> {
    /// Takes over a tree that was just spawned.
    pub(crate) fn new(shim: &'a mut Shim, daemon: DaemonConnection, spawned: SpawnedTree) -> Self {
        let (dir, plan) = (spawned.dir.as_fd(), &spawned.plan);
        let (attempt, from) = (plan.attempt, plan.min_output_offset);
        let sink = OutputSink::open(dir, attempt, from, plan.lossless_reader);
        let now = Instant::now();
        let timeouts = spawned.plan.timeouts;
        let terminal = spawned.streams.terminal().is_some();
        let report_at = if spawned.plan.report_start {
            now
        } else {
            now + Duration::from_millis(REPORT_START_MS)
        };
        let slot = shim.slot.as_ref();
        let oom_before = slot.map_or(0, CgroupSlot::oom_kills);
        let is_jailed = spawned.tree.is_jailed();
        let cpu_before = slot.filter(|_| is_jailed).and_then(CgroupSlot::cpu_time);
        Self {
            daemon,
            dir: spawned.dir,
            tree: spawned.tree,
            streams: spawned.streams,
            input: spawned.input,
            idempotent_inputs: IdempotentInputs::default(),
            sink,
            escalation: KillEscalation::new(&timeouts, terminal),
            canonical_line: CanonicalLine::default(),
            query_scanner: TerminalQueryScanner::default(),
            started: spawned.started,
            ended: None,
            detached: false,
            wall_at: timeouts.wall.and_then(|limit| now.checked_add(limit)),
            idle_at: timeouts.idle.and_then(|limit| now.checked_add(limit)),
            listen_at: None,
            spare_socket: None,
            reserve_at: (!spawned.has_reserve).then_some(now),
            report_at: Some(report_at),
            notifier: NotifyThrottle::new(terminal),
            poller: Poller::default(),
            exit_unrecorded: false,
            oom_before,
            cpu_before,
            limits_hit: Vec::new(),
            lost_capabilities: Vec::new(),
            freeze_state: None,
            stop_ordered: false,
            plan: spawned.plan,
            shim,
        }
    }

    /// Runs the tree to its end.
    pub(crate) fn run(mut self) -> AttemptEnd {
        if self.plan.report_start {
            self.send_started();
        }
        if let LaunchIo::Bytes(bytes) = &self.plan.io {
            self.streams.record_input(bytes, &mut self.sink);
        }
        self.send_sink_events();
        self.reserve_if_due(Instant::now());
        loop {
            let ready = self.poll();
            if ready.daemon {
                self.daemon.flush();
                self.handle_daemon_messages();
            }
            self.read_streams(&ready);
            if ready.limits {
                self.check_limits();
            }
            if ready.processes && self.on_child_event() {
                return self.finish(true);
            }
            match self.on_timers(Instant::now()) {
                LoopAction::Continue => {}
                LoopAction::Empty => return self.finish(true),
                LoopAction::GaveUp => return self.finish(false),
            }
        }
    }

    /// Reports the start, once.
    fn send_started(&mut self) {
        if self.report_at.take().is_some() {
            let (pid, at) = (self.tree.pid(), self.started.timestamp());
            self.daemon.send(&ProcessEvent::Started { pid, at }, None);
            self.make_spare_socket();
        }
    }

    fn poll(&mut self) -> PollReady {
        let mut poller = std::mem::take(&mut self.poller);
        let ready = self.poll_with(&mut poller);
        self.poller = poller;
        if ready.daemon || ready.processes || ready.limits {
            // What follows may close their descriptors and open others with the same numbers.
            self.poller.reset();
        }
        ready
    }

    fn poll_with(&self, poller: &mut Poller) -> PollReady {
        let mut targets: Vec<PollTarget<'_>> = Vec::with_capacity(8);
        targets.extend(self.daemon.poll_target());
        let processes = targets.len();
        let exit = self.tree.exit_fd();
        let child_signal = self.shim.child_signal.as_ref().map(AsFd::as_fd);
        let both = exit.into_iter().chain(child_signal);
        targets.extend(both.map(|descriptor| (descriptor, PollFlags::IN)));
        let limits = targets.len();
        if let Some(slot) = &self.shim.slot {
            targets.extend(slot.poll_targets());
        }
        let streams = targets.len();
        let mut indices = [0; 2];
        // A reader of the memory file is slower than the command: the command waits.
        let readable = (!self.sink.must_pause_reads()).then(|| self.streams.polled());
        for (slot, (index, source)) in indices.iter_mut().zip(readable.into_iter().flatten()) {
            *slot = index;
            targets.push((source.as_fd(), PollFlags::IN));
        }
        let is_ready = poller.wait(&targets, self.timeout().as_ref());
        let any_ready = |mut positions: Range<usize>| positions.any(|it| is_ready.contains(it));
        let mut ready = PollReady {
            daemon: any_ready(0..processes),
            processes: any_ready(processes..limits),
            limits: any_ready(limits..streams),
            streams: [false; 2],
        };
        for (position, index) in (streams..targets.len()).zip(indices) {
            ready.streams[index] = is_ready.contains(position);
        }
        ready
    }

    fn handle_daemon_messages(&mut self) {
        loop {
            let buffer = self.shim.buffer.as_mut_slice();
            match self.daemon.receive(buffer, ReceiveMode::NonBlocking) {
                DaemonEvent::Message(
                    ShimRequest::Command {
                        id,
                        attempt,
                        command: order,
                    },
                    _,
                ) => {
                    if id == self.plan.id && attempt == self.plan.attempt {
                        self.handle_command(order);
                    }
                }
                DaemonEvent::Message(
                    ShimRequest::Start(_)
                    | ShimRequest::StartInContainer(..)
                    | ShimRequest::StartInMemory,
                    _,
                )
                | DaemonEvent::Malformed => {}
                DaemonEvent::Nothing => return,
                DaemonEvent::Hangup => {
                    self.notifier.set_watched(false);
                    self.sink.retain(None);
                    self.open_control_socket();
                    return;
                }
                DaemonEvent::Reconnected => return self.send_hello(),
            }
        }
    }

    /// Opens the control socket; where the disk refuses, again a little later.
    fn open_control_socket(&mut self) {
        let spare = self.spare_socket.take();
        let listens = self.daemon.listen(self.dir.as_fd(), spare);
        self.listen_at = (!listens).then(|| Instant::now() + Duration::from_millis(RETRY_MS));
    }

    /// Makes the socket for the next daemon while the disk has room, when the shim is awake anyway.
    fn make_spare_socket(&mut self) {
        if self.daemon.has_daemon() {
            self.spare_socket = daemon_connection::bind_spare(self.dir.as_fd()).ok();
        }
    }

    /// Describes the running attempt to a daemon that just connected.
    fn send_hello(&mut self) {
        execution_dir::remove(self.dir.as_fd(), CONTROL_SOCKET);
        let hello = ProcessEvent::Hello {
            id: self.plan.id,
            attempt: self.plan.attempt,
            pid: self.tree.pid(),
            started_at: self.started.timestamp(),
        };
        self.daemon.send(&hello, None);
        if self.sink.is_in_memory() {
            self.send_journal_failed(self.sink.error().unwrap_or_default().to_owned());
        }
        self.send_frozen();
        self.resend_limits();
        self.resend_lost();
        self.send_detached();
        self.make_spare_socket();
    }

    fn handle_command(&mut self, command: ControlCommand) {
        match command {
            ControlCommand::Stop { grace } => self.terminate(KillReason::Requested, grace),
            ControlCommand::Signal(signal) => {
                self.track_signal(signal.number());
                self.tree.signal_group(signal.number());
            }
            ControlCommand::Input(bytes) => self.handle_input(&bytes, InputRecording::AsRequested),
            ControlCommand::SecretInput(bytes) => {
                self.handle_input(&bytes, InputRecording::Omitted);
            }
            ControlCommand::InputOnce { input, from, bytes } => {
                self.handle_idempotent_input(input, from, &bytes);
            }
            ControlCommand::CloseInput => self.close_input(),
            ControlCommand::Freeze(frozen) => self.freeze(frozen),
            ControlCommand::Resize(size) => {
                if let Some(terminal) = self.streams.terminal() {
                    let _gone = set_size(terminal, size);
                }
            }
            ControlCommand::Watch(watched) => {
                self.notifier.set_watched(watched);
                self.notify_output();
            }
            ControlCommand::Retain(from) => {
                self.sink.retain(from);
                // The command may be waiting for that reader, and writes nothing meanwhile.
                self.retry_disk();
            }
        }
    }

    fn retry_disk(&mut self) {
        self.sink.retry_disk_if_due();
        self.send_sink_events();
    }

    fn read_streams(&mut self, ready: &PollReady) {
        for (index, is_ready) in ready.streams.into_iter().enumerate() {
            if is_ready {
                let before = self.sink.end();
                let buffer = self.shim.buffer.as_mut_slice();
                let bytes = self.streams.read(index, buffer, &mut self.sink);
                self.on_output(bytes);
                if self.streams.terminal().is_some() {
                    self.send_terminal_queries(before, bytes);
                }
            }
        }
    }

    /// Reports the terminal queries in the bytes just read, if a daemon is connected to answer
    /// them. The journal offset is exact except where secrets were replaced.
    fn send_terminal_queries(&mut self, before: u64, bytes: usize) {
        let chunk = &self.shim.buffer.as_mut_slice()[..bytes];
        for (query, len) in self.query_scanner.scan(chunk, Instant::now()) {
            let end = (before + len as u64).min(self.sink.end());
            self.daemon
                .send(&ProcessEvent::TerminalQuery { query, end }, None);
        }
    }

    /// Handles new output: restarts the idle timeout, notifies watchers, and reports changes of the
    /// output sink.
    fn on_output(&mut self, bytes: usize) {
        if bytes > 0 && self.idle_at.is_some() {
            self.idle_at = self
                .plan
                .timeouts
                .idle
                .and_then(|limit| Instant::now().checked_add(limit));
        }
        self.shim.buffer_touched |= bytes > WARM_BYTES;
        self.send_sink_events();
        self.notify_output();
    }

    /// Reports where output goes, where that has changed.
    fn send_sink_events(&mut self) {
        for event in self.sink.take_events() {
            match event {
                SinkEvent::Refused { detail } => self.send_journal_failed(detail),
                SinkEvent::Returned { missing } => {
                    self.daemon
                        .send(&ProcessEvent::JournalRecovered { missing }, None);
                }
            }
        }
    }

    fn send_journal_failed(&mut self, detail: String) {
        let (base, memory) = self.sink.memory().unzip();
        let failed = ProcessEvent::JournalFailed { detail, base };
        self.daemon.send(&failed, memory);
    }

    fn notify_output(&mut self) {
        if let Some(end) = self.notifier.on_output(self.sink.end(), Instant::now()) {
            self.daemon.send(&ProcessEvent::Output { end }, None);
        }
    }

    /// Handles the end or a change of state of a process of the tree; true when the attempt is
    /// over.
    fn on_child_event(&mut self) -> bool {
        if let Some(signal) = &self.shim.child_signal {
            signals::drain_signalfd(signal.as_fd());
        }
        self.continue_stopped();
        let empty = self.tree.reap();
        self.check_lost();
        if self.tree.status().is_some() && self.ended.is_none() {
            self.on_leader_exit(empty);
        }
        empty && self.ended.is_some()
    }

    fn on_leader_exit(&mut self, empty: bool) {
        self.thaw_for_exit();
        self.ended = Some(ClockReading::now());
        if empty || !self.sink.must_pause_reads() {
            let buffer = self.shim.buffer.as_mut_slice();
            let bytes = self.streams.drain(buffer, &mut self.sink);
            self.on_output(bytes);
        }
        if empty {
            return;
        }
        self.escalation
            .on_leader_exit(self.tree.orphan_policy(), Instant::now());
    }

    fn terminate(&mut self, reason: KillReason, grace: Duration) {
        self.thaw_for_exit();
        if let Some(action) = self.escalation.terminate(reason, grace, Instant::now()) {
            // Where this empties the tree, SIGCHLD and the pidfd wake the loop.
            let _action = self.apply(action);
        }
    }

    fn apply(&mut self, act: KillAction) -> LoopAction {
        match act {
            KillAction::Detach => self.detach(),
            KillAction::HangUp => {
                let foreground = self.streams.terminal().and_then(input::foreground);
                self.tree.hang_up(foreground);
            }
            KillAction::Terminate => self.tree.terminate(),
            KillAction::Kill => {
                if let Some(slot) = &mut self.shim.slot {
                    slot.kill();
                }
                self.tree.kill();
                if self.on_child_event() {
                    return LoopAction::Empty;
                }
            }
            KillAction::GiveUp => return LoopAction::GaveUp,
        }
        LoopAction::Continue
    }
}
