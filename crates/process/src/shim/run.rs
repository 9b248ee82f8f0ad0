//! One tree from birth to its end: a poll loop over the daemon, the leader and its output.

mod finish;
mod input;
mod limits;
mod once;
mod pause;
mod reserve;
mod stopped;

use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use ostler_model::{Limit, TimeoutKind};
use ostler_sandbox::cgroup::Slot;
use rustix::event::{PollFd, PollFlags, Timespec};

use self::once::Inputs;
use self::pause::Pause;
use super::birth::Born;
use super::channels::set_size;
use super::ladder::{Act, Descent};
use super::line::Line;
use super::link::{Incoming, Link};
use super::marks::Marks;
use super::questions::Questions;
use super::record;
use super::serve::Shim;
use super::sink::{News, Sink};
use super::streams::Streams;
use super::tree::Tree;
use crate::place::{Ladder, Order};
use crate::proto::{FromShim, ToShim, WirePlan};
use crate::sys::packet::Patience;
use crate::sys::signals;
use crate::sys::time::Moment;

/// Between two tries of what a full disk refused while no daemon lives, in milliseconds.
const RETRY_MS: u64 = 500;
/// A command whose start was not asked for is told of all the same once it lived so long, in
/// milliseconds: what is over before costs the daemon no wake-up.
const REPORT_START_MS: u64 = 20;
/// Bytes of the read buffer that stay touched between commands.
const WARM_BYTES: usize = 16 * 1024;

/// What becomes of the shim afterwards.
#[derive(Debug)]
pub(crate) enum End {
    /// Nothing is left; the next plan may come.
    Recycle(Link),
    /// No daemon is there, or something could not be ended.
    Leave,
}

/// One tree under way.
#[derive(Debug)]
pub(crate) struct Run<'a> {
    shim: &'a mut Shim,
    link: Link,
    plan: WirePlan,
    dir: OwnedFd,
    tree: Tree,
    streams: Streams,
    input: Option<OwnedFd>,
    /// Inputs that go in once.
    inputs: Inputs,
    /// What a terminal holds of an unfinished line.
    line: Line,
    /// What its program asks a terminal.
    questions: Questions,
    sink: Sink,
    descent: Descent,
    started: Moment,
    /// When the leader's end was seen; of a detached tree, when the last one's was.
    ended: Option<Moment>,
    /// The leader has ended and others went on in its place, which was told.
    detached: bool,
    wall_at: Option<Instant>,
    idle_at: Option<Instant>,
    listen_at: Option<Instant>,
    /// Where there is no room reserved for the exit record: when that is tried.
    reserve_at: Option<Instant>,
    /// When the daemon is told that it runs, unless it has ended by then.
    report_at: Option<Instant>,
    marks: Marks,
    /// The exit record could not be written. Recovery must then not find this shim alive with
    /// another execution: it does not take one.
    unrecorded: bool,
    oom_before: u64,
    /// Processor time in the slot before, where orphans are reaped by a warden.
    cpu_before: Option<(u64, u64)>,
    /// Limits that were told of.
    limits_hit: Vec<Limit>,
    pause: Option<Pause>,
    /// Somebody ordered a signal that stops it, and none since that continues it.
    stop_ordered: bool,
}

/// What a round of deadlines came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    /// It is not over.
    GoOn,
    /// Nobody is left.
    Empty,
    /// Somebody is left that cannot be ended.
    GivenUp,
}

/// What a poll found ready.
#[derive(Debug, Default)]
struct Ready {
    line: bool,
    processes: bool,
    limits: bool,
    streams: [bool; 2],
}

impl<'a> Run<'a> {
    /// Takes over what was just born.
    pub(crate) fn new(shim: &'a mut Shim, link: Link, born: Born) -> Self {
        let (dir, plan) = (born.dir.as_fd(), &born.plan);
        let begin = (plan.attempt, plan.output_from);
        let sink = Sink::open(dir, begin, plan.lossless_reader);
        let now = Instant::now();
        let clocks = born.plan.clocks;
        let terminal = born.streams.terminal().is_some();
        let report_at = if born.plan.report_start {
            now
        } else {
            now + Duration::from_millis(REPORT_START_MS)
        };
        let slot = shim.slot.as_ref();
        let oom_before = slot.map_or(0, Slot::oom_kills);
        let confined = born.tree.is_confined();
        let cpu_before = slot.filter(|_| confined).and_then(Slot::cpu_time);
        Self {
            link,
            dir: born.dir,
            tree: born.tree,
            streams: born.streams,
            input: born.input,
            inputs: Inputs::default(),
            sink,
            descent: Descent::new(&clocks, terminal),
            line: Line::default(),
            questions: Questions::default(),
            started: born.started,
            ended: None,
            detached: false,
            wall_at: clocks.wall.and_then(|limit| now.checked_add(limit)),
            idle_at: clocks.idle.and_then(|limit| now.checked_add(limit)),
            listen_at: None,
            reserve_at: (!born.has_reserve).then_some(now),
            report_at: Some(report_at),
            marks: Marks::new(terminal),
            unrecorded: false,
            oom_before,
            cpu_before,
            limits_hit: Vec::new(),
            pause: None,
            stop_ordered: false,
            plan: born.plan,
            shim,
        }
    }

    /// Carries it to its end.
    pub(crate) fn carry(mut self) -> End {
        if self.plan.report_start {
            self.report_start();
        }
        self.tell_news();
        self.reserve_where_due(Instant::now());
        loop {
            let ready = self.wait();
            if ready.line {
                self.link.flush();
                self.listen_to_daemon();
            }
            self.read(&ready);
            if ready.limits {
                self.look_at_limits();
            }
            if ready.processes && self.processes_changed() {
                return self.finish(true);
            }
            match self.keep_time(Instant::now()) {
                Verdict::GoOn => {}
                Verdict::Empty => return self.finish(true),
                Verdict::GivenUp => return self.finish(false),
            }
        }
    }

    /// Tells the daemon that it runs; once.
    fn report_start(&mut self) {
        if self.report_at.take().is_some() {
            let (pid, at) = (self.tree.pid(), self.started.timestamp());
            self.link.send(&FromShim::Started { pid, at }, None);
        }
    }

    fn wait(&self) -> Ready {
        let mut polled: Vec<PollFd<'_>> = Vec::with_capacity(8);
        let has_line = self.link.poll_fd().map(|line| polled.push(line)).is_some();
        let processes = polled.len();
        if let Some(process) = self.tree.watched() {
            polled.push(PollFd::from_borrowed_fd(process, PollFlags::IN));
        }
        if let Some(signal) = &self.shim.child_signal {
            polled.push(PollFd::new(signal, PollFlags::IN));
        }
        let limits = polled.len();
        if let Some(slot) = &self.shim.slot {
            polled.extend(
                slot.alarms()
                    .map(|(alarm, flags)| PollFd::from_borrowed_fd(alarm, flags)),
            );
        }
        let streams = polled.len();
        let mut places = [0; 2];
        // A reader of what is in memory is slower than the command: the command waits.
        let readable = (!self.sink.must_wait()).then(|| self.streams.polled());
        for (slot, (place, source)) in places.iter_mut().zip(readable.into_iter().flatten()) {
            *slot = place;
            polled.push(PollFd::new(source, PollFlags::IN));
        }
        let timeout = self.timeout();
        if rustix::event::poll(&mut polled, timeout.as_ref()).is_err() {
            return Ready::default();
        }
        let is_ready = |poll: &PollFd<'_>| !poll.revents().is_empty();
        let mut ready = Ready {
            line: has_line && is_ready(&polled[0]),
            processes: polled[processes..limits].iter().any(is_ready),
            limits: polled[limits..streams].iter().any(is_ready),
            streams: [false; 2],
        };
        for (poll, place) in polled[streams..].iter().zip(places) {
            ready.streams[place] = is_ready(poll);
        }
        ready
    }

    fn timeout(&self) -> Option<Timespec> {
        let clocks = if self.clocks_run() {
            [self.wall_at, self.idle_at]
        } else {
            [None, None]
        };
        let others = [
            self.descent.deadline(),
            self.streams.deadline(),
            self.marks.deadline(),
            self.listen_at,
            self.reserve_at,
            self.report_at,
        ];
        let next = clocks.into_iter().chain(others).flatten().min()?;
        let left = next.saturating_duration_since(Instant::now());
        Some(Timespec {
            tv_sec: i64::try_from(left.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: i64::from(left.subsec_nanos()),
        })
    }

    fn listen_to_daemon(&mut self) {
        loop {
            let buffer = self.shim.buffer.as_mut_slice();
            match self.link.receive(buffer, Patience::Now) {
                Incoming::Message(ToShim::Order { id, attempt, order }, _) => {
                    if id == self.plan.id && attempt == self.plan.attempt {
                        self.obey(order);
                    }
                }
                Incoming::Message(ToShim::Start(_) | ToShim::StartInMemory, _)
                | Incoming::Garbled => {}
                Incoming::Nothing => return,
                Incoming::Hangup => {
                    self.marks.watch(false);
                    self.sink.retain(None);
                    self.listen();
                    return;
                }
                Incoming::Called => return self.greet(),
            }
        }
    }

    /// Opens the control socket; where the disk refuses, again a little later.
    fn listen(&mut self) {
        let listens = self.link.listen(self.dir.as_fd());
        self.listen_at = (!listens).then(|| Instant::now() + Duration::from_millis(RETRY_MS));
    }

    /// A new daemon called: it is told what runs here.
    fn greet(&mut self) {
        record::remove(self.dir.as_fd(), record::CONTROL_SOCKET);
        let hello = FromShim::Hello {
            id: self.plan.id,
            attempt: self.plan.attempt,
            pid: self.tree.pid(),
            started_at: self.started.timestamp(),
        };
        self.link.send(&hello, None);
        if self.sink.is_in_memory() {
            self.tell_memory(self.sink.error().unwrap_or_default().to_owned());
        }
        self.tell_frozen();
        self.tell_limits_again();
        self.tell_detached();
    }

    fn obey(&mut self, order: Order) {
        match order {
            Order::Stop { grace } => self.end_by(Ladder::Ordered, grace),
            Order::Signal(signal) => {
                self.note_signal(signal.number());
                self.tree.signal_group(signal.number());
            }
            Order::Input(bytes) => self.write_input(&bytes),
            Order::InputOnce { input, from, bytes } => self.write_once(input, from, &bytes),
            Order::CloseInput => self.close_input(),
            Order::Freeze(frozen) => self.freeze(frozen),
            Order::Resize(size) => {
                if let Some(terminal) = self.streams.terminal() {
                    let _gone = set_size(terminal, size);
                }
            }
            Order::Watch(watched) => {
                self.marks.watch(watched);
                self.mark();
            }
            Order::Retain(from) => {
                self.sink.retain(from);
                // The command may be waiting for that reader, and writes nothing meanwhile.
                self.look_at_disk();
            }
        }
    }

    fn look_at_disk(&mut self) {
        self.sink.look_at_disk();
        self.tell_news();
    }

    fn read(&mut self, ready: &Ready) {
        for (place, is_ready) in ready.streams.into_iter().enumerate() {
            if is_ready {
                let before = self.sink.end();
                let buffer = self.shim.buffer.as_mut_slice();
                let bytes = self.streams.read(place, buffer, &mut self.sink);
                self.heard(bytes);
                if self.streams.terminal().is_some() {
                    self.tell_questions(before, bytes);
                }
            }
        }
    }

    /// What the program asked its terminal in the bytes just read, if anybody is there to
    /// answer. The place in the journal is right but for secrets that were replaced.
    fn tell_questions(&mut self, before: u64, bytes: usize) {
        let piece = &self.shim.buffer.as_mut_slice()[..bytes];
        for (question, len) in self.questions.in_piece(piece, Instant::now()) {
            let end = (before + len as u64).min(self.sink.end());
            self.link.send(&FromShim::Asked { question, end }, None);
        }
    }

    /// Output came: the idle clock begins anew, watchers are told, and so is what became of the
    /// way to the disk.
    fn heard(&mut self, bytes: usize) {
        if bytes > 0 && self.idle_at.is_some() {
            self.idle_at = self
                .plan
                .clocks
                .idle
                .and_then(|limit| Instant::now().checked_add(limit));
        }
        self.shim.read_much |= bytes > WARM_BYTES;
        self.tell_news();
        self.mark();
    }

    /// Tells where output goes, where that has changed.
    fn tell_news(&mut self) {
        for news in self.sink.take_news() {
            match news {
                News::Refused { detail } => self.tell_memory(detail),
                News::Returned { missing } => {
                    self.link.send(&FromShim::JournalReturned { missing }, None);
                }
            }
        }
    }

    fn tell_memory(&mut self, detail: String) {
        let (base, memory) = self.sink.memory().unzip();
        let failed = FromShim::JournalFailed { detail, base };
        self.link.send(&failed, memory);
    }

    fn mark(&mut self) {
        if let Some(end) = self.marks.at(self.sink.end(), Instant::now()) {
            self.link.send(&FromShim::Output { end }, None);
        }
    }

    /// Somebody of the tree ended or changed; whether all is over.
    fn processes_changed(&mut self) -> bool {
        if let Some(signal) = &self.shim.child_signal {
            signals::drain(signal.as_fd());
        }
        self.continue_stopped();
        let empty = self.tree.reap();
        if self.tree.status().is_some() && self.ended.is_none() {
            self.leader_ended(empty);
        }
        empty && self.ended.is_some()
    }

    fn leader_ended(&mut self, empty: bool) {
        self.thaw_to_end();
        self.ended = Some(Moment::now());
        if empty || !self.sink.must_wait() {
            let buffer = self.shim.buffer.as_mut_slice();
            let bytes = self.streams.drain(buffer, &mut self.sink);
            self.heard(bytes);
        }
        if empty {
            return;
        }
        self.descent
            .leader_ended(self.tree.leftovers(), Instant::now());
    }

    /// What the leader left behind goes on in its place.
    fn detach(&mut self) {
        self.detached = true;
        self.tree.detach();
        self.report_start();
        self.tell_detached();
    }

    fn tell_detached(&mut self) {
        if let (true, Some(status)) = (self.detached, self.tree.status()) {
            self.link.send(&FromShim::Detached { status }, None);
        }
    }

    fn clocks_run(&self) -> bool {
        self.descent.goes_on() && self.pause.is_none()
    }

    /// Whatever the time demands.
    fn keep_time(&mut self, now: Instant) -> Verdict {
        if self.report_at.is_some_and(|at| now >= at) {
            self.report_start();
        }
        if self.clocks_run() {
            self.run_clocks(now);
        }
        if self.streams.deadline().is_some_and(|at| now >= at) {
            self.streams.flush(Some(now), &mut self.sink);
            self.tell_news();
            self.mark();
        }
        if self.marks.deadline().is_some_and(|at| now >= at) {
            self.mark();
        }
        if self.ended.is_some() && self.streams.are_over() {
            self.descent.silent(now);
        }
        if self.listen_at.is_some_and(|at| now >= at) {
            self.listen();
        }
        self.reserve_where_due(now);
        match self.descent.due(now) {
            Some(act) => self.act(act),
            None => Verdict::GoOn,
        }
    }

    fn run_clocks(&mut self, now: Instant) {
        let clocks = [
            (TimeoutKind::Wall, self.wall_at),
            (TimeoutKind::Idle, self.idle_at),
        ];
        let ran_out = clocks
            .into_iter()
            .find(|(_, at)| at.is_some_and(|at| now >= at));
        if let Some((clock, _)) = ran_out {
            self.report_start();
            self.link.send(&FromShim::ClockRanOut { clock }, None);
            self.end_by(Ladder::Clock(clock), self.plan.clocks.grace);
        }
    }

    fn end_by(&mut self, why: Ladder, grace: Duration) {
        self.thaw_to_end();
        if let Some(act) = self.descent.ask(why, grace, Instant::now()) {
            // Where this empties the tree, SIGCHLD and the pidfd wake the loop to see it.
            let _soon = self.act(act);
        }
    }

    fn act(&mut self, act: Act) -> Verdict {
        match act {
            Act::Detach => self.detach(),
            Act::HangUp => {
                let foreground = self.streams.terminal().and_then(input::foreground);
                self.tree.hang_up(foreground);
            }
            Act::Ask => self.tree.ask(),
            Act::Kill => {
                if let Some(slot) = &mut self.shim.slot {
                    slot.kill();
                }
                self.tree.kill();
                if self.processes_changed() {
                    return Verdict::Empty;
                }
            }
            Act::GiveUp => return Verdict::GivenUp,
        }
        Verdict::GoOn
    }
}
