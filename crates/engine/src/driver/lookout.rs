//! Looks at a service on its supervisor's behalf: sockets, output, probes, its own words.
//!
//! The supervisor says what it [`Wants`]; one look of each kind is under way at a time, and what
//! it shows is fed back. Nothing is decided here.

use std::sync::Arc;
use std::time::Duration;

use ostler_journal::ByteQuery;
use ostler_model::evidence::Member;
use ostler_model::{Cursor, Event, EventRecord, Evidence, Observation, ReadyWhen, Text};
use ostler_process::{LaunchPlan, ObserveError};
use tokio::time::Instant;
use tokio_util::task::AbortOnDropHandle;

use super::run::Driver;
use crate::core::Core;
use crate::effects::{ExecProbe, NotifySocket};
use crate::readiness::{Answered, NotifyState, ProbeOrder, Seen, Socket, Wants};
use crate::supervisor::Input;

/// Output is handed over in pieces of at most so many bytes.
const PIECE_BYTES: u64 = 256 * 1024;
/// Output further back than this is not looked at: a service that prints faster than it can be
/// read is not slowed, nor is anybody else.
const BACKLOG_BYTES: u64 = 4 * 1024 * 1024;
/// Until a scan that failed is tried again, in milliseconds.
const SCAN_AGAIN_MS: u64 = 100;
/// The directory of notify sockets within the state directory.
const NOTIFY: &str = "notify";

/// A look under way; dropped, it stops.
type Look<T> = AbortOnDropHandle<T>;

/// Everything under way.
#[derive(Default)]
pub(super) struct Lookout {
    /// When the attempt began.
    began: Option<Instant>,
    wants: Wants,
    scan: Option<Look<Result<Evidence, ObserveError>>>,
    /// No scan before this: the last one failed.
    not_before: Option<Duration>,
    probe: Option<Look<Answered>>,
    /// What is under way.
    order: Option<ProbeOrder>,
    notify: Option<NotifySocket>,
    exec: Option<ExecProbe>,
    /// Output up to here was handed over.
    heard: u64,
}

/// What a look showed.
pub(super) enum Looked {
    /// None where there was nothing to see.
    Scanned(Option<Evidence>),
    /// None where the look itself failed.
    Probed(Option<Answered>),
    Notified(NotifyState),
    TimeToScan,
    Time,
}

impl Lookout {
    /// For what an earlier engine recorded this much of: output is looked at from the newest
    /// attempt's start on, or from where it was ready.
    pub(super) fn resume(records: &[EventRecord]) -> Self {
        let told = |record: &&EventRecord| {
            matches!(record.event, Event::Started { .. } | Event::Ready { .. })
        };
        let last = records.iter().rev().find(told);
        Self {
            heard: last.map_or(0, |record| record.offset),
            ..Self::default()
        }
    }

    /// Until a look shows something, or it is time for one. Dropped, nothing is lost.
    pub(super) async fn next(&mut self) -> Looked {
        let Some(began) = self.began else {
            return std::future::pending().await;
        };
        let scan_at = self.wants.scan_at.filter(|_| self.scan.is_none());
        let scan_at = scan_at.map(|at| self.not_before.map_or(at, |not| at.max(not)));
        let wake_at = self.wants.wake_at;
        let notify = self.notify.as_ref().filter(|_| self.wants.notify);
        tokio::select! {
            biased;
            state = told(notify) => Looked::Notified(state),
            answered = done(&mut self.probe) => Looked::Probed(answered),
            evidence = done(&mut self.scan) => Looked::Scanned(evidence.and_then(Result::ok)),
            () = due(began, scan_at) => Looked::TimeToScan,
            () = due(began, wake_at) => Looked::Time,
        }
    }

    /// Whether output is to be told.
    pub(super) const fn wants_output(&self) -> bool {
        self.wants.output
    }

    fn elapsed(&self) -> Option<Duration> {
        self.began.map(|began| began.elapsed())
    }

    fn stop(&mut self) {
        self.began = None;
        self.wants = Wants::default();
        self.scan = None;
        self.not_before = None;
        self.probe = None;
        self.order = None;
    }
}

async fn done<T>(look: &mut Option<Look<T>>) -> Option<T> {
    let Some(under_way) = look else {
        return std::future::pending().await;
    };
    let shown = under_way.await;
    *look = None;
    shown.ok()
}

async fn told(socket: Option<&NotifySocket>) -> NotifyState {
    match socket {
        Some(socket) => socket.next().await,
        None => std::future::pending().await,
    }
}

async fn due(began: Instant, at: Option<Duration>) {
    match at.and_then(|at| began.checked_add(at)) {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}

impl Driver {
    /// An attempt of a service is about to begin.
    pub(super) fn prepare_lookout(&mut self, plan: &mut LaunchPlan) {
        let Some(service) = self.entry.spec.lifetime.plan() else {
            return;
        };
        if service.ready.when == ReadyWhen::Notify {
            self.listen_for_words();
            if let Some(socket) = &self.lookout.notify {
                let path = Text::from(socket.address());
                plan.env.push((Text::from("NOTIFY_SOCKET"), path));
            }
        }
        self.lookout.exec = Some(ExecProbe {
            cwd: plan.cwd.clone(),
            env: plan.env.clone(),
        });
        self.lookout.heard = self.entry.marks.borrow().end;
    }

    fn listen_for_words(&mut self) {
        let dir = notify_dir(&self.core, &self.entry.id);
        let bound = std::fs::create_dir_all(&dir).and_then(|()| NotifySocket::bind(&dir));
        match bound {
            Ok(socket) => self.lookout.notify = Some(socket),
            Err(error) => {
                tracing::warn!(id = %self.entry.id, %error, "no notify socket");
            }
        }
    }

    /// The attempt runs: looks begin, or go on after an earlier engine.
    pub(super) fn begin_looking(&mut self) {
        let Some(service) = self.entry.spec.lifetime.plan() else {
            return;
        };
        let by_word = service.ready.when == ReadyWhen::Notify;
        self.lookout.stop();
        self.lookout.began = Some(Instant::now());
        if by_word && self.lookout.notify.is_none() {
            self.listen_for_words();
        }
    }

    /// What the supervisor wants to be looked at now.
    pub(super) async fn see_to_looking(&mut self) {
        let Some(elapsed) = self.lookout.elapsed() else {
            return;
        };
        if self.control.is_none() {
            return self.lookout.stop();
        }
        let paused = self.supervisor.state().paused;
        let mut wants = self.supervisor.wants(elapsed);
        if paused {
            // What stands still shows nothing.
            wants = Wants::default();
        }
        self.see_to_probing(wants.probe.take(), wants.probe_limit);
        self.lookout.wants = wants;
        let waits_for = self.supervisor.waits_for();
        self.entry.live.send_if_modified(|live| {
            live.waits_for = waits_for;
            // Told with the next thing that happens.
            false
        });
    }

    /// One probe at a time; one that is not wanted any more is dropped with its answer.
    fn see_to_probing(&mut self, wanted: Option<ProbeOrder>, limit: Duration) {
        if self.lookout.order == wanted && (wanted.is_none() || self.lookout.probe.is_some()) {
            return;
        }
        self.lookout.probe = None;
        self.lookout.order.clone_from(&wanted);
        if let Some(order) = wanted {
            self.begin_probe(order, limit);
        }
    }

    fn begin_probe(&mut self, order: ProbeOrder, limit: Duration) {
        let exec = self.lookout.exec.get_or_insert_with(|| {
            let again = crate::admission::again(&self.core.settings, &self.entry.spec);
            let plan = again.ok().map(|draft| draft.plan(self.entry.id, 0));
            ExecProbe {
                cwd: self.entry.spec.cwd.clone(),
                env: plan.map(|plan| plan.env).unwrap_or_default(),
            }
        });
        let exec = exec.clone();
        let prober = self.core.prober.within(limit);
        let id = self.entry.id;
        let looks = self
            .core
            .tracker
            .spawn(async move { prober.probe(id, order, exec).await });
        self.lookout.probe = Some(AbortOnDropHandle::new(looks));
    }

    /// Takes in what a look showed.
    pub(super) async fn looked(&mut self, looked: Looked) {
        match looked {
            Looked::TimeToScan => self.begin_scan(),
            Looked::Time => self.saw(Seen::Time).await,
            Looked::Probed(Some(answered)) => self.saw(Seen::Answered(answered)).await,
            Looked::Probed(None) => {
                let detail = "the probe broke off".to_owned();
                self.saw(Seen::Answered(Answered::Failed { detail })).await;
            }
            Looked::Notified(state) => self.saw(Seen::Notified(state)).await,
            Looked::Scanned(Some(evidence)) => self.saw(sockets(&evidence)).await,
            // Not born yet, or gone: its end is told elsewhere.
            Looked::Scanned(None) => {
                let again = Duration::from_millis(SCAN_AGAIN_MS);
                self.lookout.not_before = self.lookout.elapsed().map(|now| now + again);
            }
        }
    }

    fn begin_scan(&mut self) {
        let place = Arc::clone(&self.core.place);
        let id = self.entry.id;
        let what = Observation {
            listeners: true,
            unix: self.lookout.wants.unix,
            ..Observation::default()
        };
        let looks = self
            .core
            .tracker
            .spawn(async move { place.observe(id, what).await });
        self.lookout.scan = Some(AbortOnDropHandle::new(looks));
    }

    async fn saw(&mut self, seen: Seen) {
        if let Some(elapsed) = self.lookout.elapsed() {
            self.feed(Input::Seen { elapsed, seen }).await;
        }
    }

    /// Hands over what was printed since, where somebody wants it.
    pub(super) async fn look_at_output(&mut self, end: u64) {
        if !self.lookout.wants_output() || self.lookout.began.is_none() {
            self.lookout.heard = end;
            return;
        }
        let from = self.lookout.heard.max(end.saturating_sub(BACKLOG_BYTES));
        self.lookout.heard = from;
        if self.journal.is_none() {
            self.journal = self.entry.journal().ok();
        }
        while self.lookout.heard < end {
            let Some(pieces) = self.pieces(end) else {
                return;
            };
            for seen in pieces {
                self.saw(seen).await;
            }
        }
    }

    /// The next page of output; none where it cannot be read.
    fn pieces(&mut self, end: u64) -> Option<Vec<Seen>> {
        let from = Cursor {
            offset: self.lookout.heard,
            event: 0,
        };
        let mut query = ByteQuery::from(from);
        query.until = Some(end);
        query.max_bytes = PIECE_BYTES;
        let page = self.journal.as_ref()?.read(&query).ok()?;
        let next = page.next.offset;
        // What was trimmed meanwhile is passed over.
        self.lookout.heard = if next > self.lookout.heard { next } else { end };
        let pieces = page.chunks.into_iter().map(|chunk| Seen::Output {
            stream: chunk.stream,
            bytes: chunk.bytes,
        });
        Some(pieces.collect())
    }

    /// It is over: nothing is left of what it was looked at with.
    pub(super) fn end_looking(&mut self) {
        self.lookout.stop();
        if self.lookout.notify.take().is_some() && self.supervisor.is_over() {
            let dir = notify_dir(&self.core, &self.entry.id);
            if let Err(error) = std::fs::remove_dir_all(&dir) {
                tracing::debug!(id = %self.entry.id, %error, "its notify socket stays");
            }
        }
    }
}

/// Where the notify socket of an execution stands: the path must be short, and the execution's
/// own directory is made by its shim only.
fn notify_dir(core: &Core, id: &ostler_model::ExecutionId) -> std::path::PathBuf {
    core.settings.state_dir.join(NOTIFY).join(id.short())
}

fn sockets(evidence: &Evidence) -> Seen {
    let sockets = evidence.listeners.iter().map(|listener| {
        let holder = |member: &&Member| member.pid == listener.pid;
        let holder = evidence.members.iter().find(holder);
        Socket {
            address: listener.address,
            inode: listener.inode,
            pid: listener.pid,
            process: holder.map(|it| it.name.clone()).unwrap_or_default(),
            stopped: holder.is_some_and(|it| it.stopped),
            waiting: listener.waiting,
        }
    });
    Seen::Sockets {
        sockets: sockets.collect(),
        unix: evidence.unix.iter().map(|it| it.path.to_string()).collect(),
        members: u32::try_from(evidence.members.len()).unwrap_or(u32::MAX),
    }
}
