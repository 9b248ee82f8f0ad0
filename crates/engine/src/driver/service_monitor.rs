//! Observes a service for its supervisor: sockets, output, probes and notify messages.
//!
//! The supervisor publishes a [`WatchPlan`]; one check of each kind runs at a time, and its result
//! is fed back. Nothing is decided here.

use std::sync::Arc;
use std::time::Duration;

use ostler_backend::{LaunchPlan, SnapshotError};
use ostler_journal::ByteQuery;
use ostler_model::snapshot::TreeMember;
use ostler_model::{
    ByteString, Cursor, Event, EventRecord, ReadyCondition, SnapshotRequest, TreeSnapshot,
};
use tokio::time::Instant;
use tokio_util::task::AbortOnDropHandle;

use super::event_loop::Driver;
use crate::engine_inner::EngineInner;
use crate::probes::{ExecContext, NotifySocket};
use crate::readiness::{
    ListeningSocket, NotifyState, ProbeOutcome, ProbeRequest, ReadinessInput, WatchPlan,
};
use crate::secret_texts::ProbeSecrets;
use crate::supervisor::SupervisorInput;

/// The largest chunk of output passed on at once, in bytes.
const PIECE_BYTES: u64 = 256 * 1024;
/// The largest backlog of output that is read, in bytes: a service that prints faster is not
/// slowed, and neither are other executions.
const BACKLOG_BYTES: u64 = 4 * 1024 * 1024;
/// Until a scan that failed is tried again, in milliseconds.
const SCAN_RETRY_MS: u64 = 100;
/// The directory of notify sockets within the state directory.
const NOTIFY: &str = "notify";

/// A check in progress; dropping it aborts it.
type CheckTask<T> = AbortOnDropHandle<T>;

/// The checks in progress.
#[derive(Default)]
pub(super) struct ServiceMonitor {
    /// When the attempt began.
    started_at: Option<Instant>,
    watch_plan: WatchPlan,
    scan: Option<CheckTask<Result<TreeSnapshot, SnapshotError>>>,
    /// The earliest next scan: the last one failed.
    scan_not_before: Option<Duration>,
    probe: Option<CheckTask<ProbeOutcome>>,
    /// The probe in progress.
    probe_request: Option<ProbeRequest>,
    notify: Option<NotifySocket>,
    exec: Option<ExecContext>,
    /// Output up to this offset was passed on.
    output_read_to: u64,
}

/// The result of a check.
pub(super) enum MonitorEvent {
    /// None where no process was found.
    Scanned(Option<TreeSnapshot>),
    /// None where the probe itself failed to run.
    Probed(Option<ProbeOutcome>),
    Notified(NotifyState),
    ScanDue,
    WakeDue,
}

impl ServiceMonitor {
    /// A monitor of an attempt that an earlier engine recorded this much of: output is read from
    /// the newest attempt's start on, or from where it was ready.
    pub(super) fn resume(records: &[EventRecord]) -> Self {
        let is_starting_point = |record: &&EventRecord| {
            matches!(record.event, Event::Started { .. } | Event::Ready { .. })
        };
        let last = records.iter().rev().find(is_starting_point);
        Self {
            output_read_to: last.map_or(0, |record| record.offset),
            ..Self::default()
        }
    }

    /// Resolves when a check has a result, or one is due. Cancel safe.
    pub(super) async fn next_event(&mut self) -> MonitorEvent {
        let Some(started_at) = self.started_at else {
            return std::future::pending().await;
        };
        let scan_at = self.watch_plan.scan_at.filter(|_| self.scan.is_none());
        let scan_at = scan_at.map(|at| self.scan_not_before.map_or(at, |not| at.max(not)));
        let wake_at = self.watch_plan.wake_at;
        let notify = self.notify.as_ref().filter(|_| self.watch_plan.notify);
        tokio::select! {
            biased;
            state = next_notification(notify) => MonitorEvent::Notified(state),
            answered = join_check(&mut self.probe) => MonitorEvent::Probed(answered),
            evidence = join_check(&mut self.scan) => MonitorEvent::Scanned(evidence.and_then(Result::ok)),
            () = sleep_until_elapsed(started_at, scan_at) => MonitorEvent::ScanDue,
            () = sleep_until_elapsed(started_at, wake_at) => MonitorEvent::WakeDue,
        }
    }

    /// Whether output notifications are needed.
    pub(super) const fn wants_output(&self) -> bool {
        self.watch_plan.output
    }

    fn elapsed(&self) -> Option<Duration> {
        self.started_at.map(|began| began.elapsed())
    }

    fn reset(&mut self) {
        self.started_at = None;
        self.watch_plan = WatchPlan::default();
        self.scan = None;
        self.scan_not_before = None;
        self.probe = None;
        self.probe_request = None;
    }
}

async fn join_check<T>(check: &mut Option<CheckTask<T>>) -> Option<T> {
    let Some(under_way) = check else {
        return std::future::pending().await;
    };
    let result = under_way.await;
    *check = None;
    result.ok()
}

async fn next_notification(socket: Option<&NotifySocket>) -> NotifyState {
    match socket {
        Some(socket) => socket.next().await,
        None => std::future::pending().await,
    }
}

async fn sleep_until_elapsed(started_at: Instant, at: Option<Duration>) {
    match at.and_then(|at| started_at.checked_add(at)) {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}

impl Driver {
    /// Prepares the monitor for an attempt that is about to begin.
    pub(super) fn prepare_monitor(&mut self, plan: &mut LaunchPlan) {
        let Some(service) = self.execution.spec.lifetime.plan() else {
            return;
        };
        if service.ready.when == ReadyCondition::Notify {
            self.bind_notify_socket();
            if let Some(socket) = &self.monitor.notify {
                let path = ByteString::from(socket.address());
                plan.env.push((ByteString::from("NOTIFY_SOCKET"), path));
            }
        }
        self.monitor.exec = Some(ExecContext {
            cwd: plan.cwd.clone(),
            env: plan.env.clone(),
            secrets: Arc::new(ProbeSecrets::new(&self.execution.spec, &plan.redact)),
        });
        self.monitor.output_read_to = self.execution.journal_end.borrow().end;
    }

    fn bind_notify_socket(&mut self) {
        let dir = notify_dir(&self.core, &self.execution.id);
        let bound = std::fs::create_dir_all(&dir).and_then(|()| NotifySocket::bind(&dir));
        match bound {
            Ok(socket) => self.monitor.notify = Some(socket),
            Err(error) => {
                tracing::warn!(id = %self.execution.id, %error, "no notify socket");
            }
        }
    }

    /// The attempt runs: checks begin, or continue after an earlier engine.
    pub(super) fn start_monitor(&mut self) {
        let Some(service) = self.execution.spec.lifetime.plan() else {
            return;
        };
        let by_notify = service.ready.when == ReadyCondition::Notify;
        self.monitor.reset();
        self.monitor.started_at = Some(Instant::now());
        if by_notify && self.monitor.notify.is_none() {
            self.bind_notify_socket();
        }
    }

    /// Starts the checks that the watch plan requests.
    pub(super) async fn schedule_checks(&mut self) {
        let Some(elapsed) = self.monitor.elapsed() else {
            return;
        };
        if self.control.is_none() {
            return self.monitor.reset();
        }
        let paused = self.supervisor.state().paused;
        let mut watch_plan = self.supervisor.watch_plan(elapsed);
        if paused {
            // A frozen tree shows nothing.
            watch_plan = WatchPlan::default();
        }
        self.schedule_probe(watch_plan.probe.take(), watch_plan.probe_timeout);
        self.monitor.watch_plan = watch_plan;
        let waits_for = self.supervisor.waiting_for();
        self.execution.live.send_if_modified(|live| {
            live.waiting_for = waits_for;
            // Published with the next event.
            false
        });
    }

    /// One probe at a time; one that is no longer requested is dropped with its result.
    fn schedule_probe(&mut self, request: Option<ProbeRequest>, limit: Duration) {
        if self.monitor.probe_request == request
            && (request.is_none() || self.monitor.probe.is_some())
        {
            return;
        }
        self.monitor.probe = None;
        self.monitor.probe_request.clone_from(&request);
        if let Some(order) = request {
            self.start_probe(order, limit);
        }
    }

    fn start_probe(&mut self, request: ProbeRequest, limit: Duration) {
        let exec = self.exec_context().clone();
        let prober = self.core.prober.with_limit(limit);
        let id = self.execution.id;
        let probing = self
            .core
            .tracker
            .spawn(async move { prober.probe(id, request, exec).await });
        self.monitor.probe = Some(AbortOnDropHandle::new(probing));
    }

    /// The context of the service's probe commands; made again for an attempt that an earlier engine
    /// began.
    fn exec_context(&mut self) -> &ExecContext {
        self.monitor.exec.get_or_insert_with(|| {
            let spec = &self.execution.spec;
            let template = crate::admission::relaunch_template(&self.core.settings, spec);
            let plan = template.ok().map(|draft| draft.plan(self.execution.id, 0));
            let (env, values) = plan.map(|plan| (plan.env, plan.redact)).unwrap_or_default();
            ExecContext {
                cwd: spec.cwd.clone(),
                env,
                secrets: Arc::new(ProbeSecrets::new(spec, &values)),
            }
        })
    }

    /// Handles the result of a check.
    pub(super) async fn on_monitor_event(&mut self, looked: MonitorEvent) {
        match looked {
            MonitorEvent::ScanDue => self.start_scan(),
            MonitorEvent::WakeDue => self.on_observation(ReadinessInput::Time).await,
            MonitorEvent::Probed(Some(answered)) => {
                self.on_observation(ReadinessInput::ProbeFinished(answered))
                    .await;
            }
            MonitorEvent::Probed(None) => {
                let detail = "the probe broke off".to_owned();
                self.on_observation(ReadinessInput::ProbeFinished(ProbeOutcome::Failed {
                    detail,
                }))
                .await;
            }
            MonitorEvent::Notified(mut state) => {
                if let Some(status) = &mut state.status {
                    *status = self.exec_context().secrets.redact(status);
                }
                self.on_observation(ReadinessInput::Notify(state)).await;
            }
            MonitorEvent::Scanned(Some(evidence)) => {
                self.on_observation(socket_observation(&evidence)).await;
            }
            // Not spawned yet, or gone: its end is reported elsewhere.
            MonitorEvent::Scanned(None) => {
                let retry = Duration::from_millis(SCAN_RETRY_MS);
                self.monitor.scan_not_before = self.monitor.elapsed().map(|now| now + retry);
            }
        }
    }

    fn start_scan(&mut self) {
        let backend = Arc::clone(&self.core.backend);
        let id = self.execution.id;
        let request = SnapshotRequest {
            listeners: true,
            unix: self.monitor.watch_plan.unix,
            ..SnapshotRequest::default()
        };
        let scanning = self
            .core
            .tracker
            .spawn(async move { backend.snapshot(id, request).await });
        self.monitor.scan = Some(AbortOnDropHandle::new(scanning));
    }

    async fn on_observation(&mut self, observation: ReadinessInput) {
        if let Some(elapsed) = self.monitor.elapsed() {
            self.step(SupervisorInput::Observed {
                elapsed,
                observation,
            })
            .await;
        }
    }

    /// Passes on the output printed since, where the watch plan requests it.
    pub(super) async fn monitor_output(&mut self, end: u64) {
        if !self.monitor.wants_output() || self.monitor.started_at.is_none() {
            self.monitor.output_read_to = end;
            return;
        }
        let from = self
            .monitor
            .output_read_to
            .max(end.saturating_sub(BACKLOG_BYTES));
        self.monitor.output_read_to = from;
        if self.journal.is_none() {
            self.journal = self.execution.journal().ok();
        }
        while self.monitor.output_read_to < end {
            let Some(observations) = self.next_output(end) else {
                return;
            };
            for seen in observations {
                self.on_observation(seen).await;
            }
        }
    }

    /// The next page of output; none where it cannot be read.
    fn next_output(&mut self, end: u64) -> Option<Vec<ReadinessInput>> {
        let from = Cursor {
            offset: self.monitor.output_read_to,
            event: 0,
        };
        let mut query = ByteQuery::starting_at(from);
        query.until = Some(end);
        query.max_bytes = PIECE_BYTES;
        let page = self.journal.as_ref()?.read(&query).ok()?;
        let next = page.next.offset;
        // Output that was trimmed meanwhile is skipped.
        self.monitor.output_read_to = if next > self.monitor.output_read_to {
            next
        } else {
            end
        };
        let observations = page.chunks.into_iter().map(|chunk| ReadinessInput::Output {
            stream: chunk.stream,
            bytes: chunk.bytes,
        });
        Some(observations.collect())
    }

    /// The attempt has ended: removes everything it was observed with.
    pub(super) fn stop_monitor(&mut self) {
        self.monitor.reset();
        if self.monitor.notify.take().is_some() && self.supervisor.is_over() {
            let dir = notify_dir(&self.core, &self.execution.id);
            if let Err(error) = std::fs::remove_dir_all(&dir) {
                tracing::debug!(id = %self.execution.id, %error, "its notify socket stays");
            }
        }
    }
}

/// The directory of an execution's notify socket: the path must be short, and the execution's own
/// directory is made only by its shim.
fn notify_dir(core: &EngineInner, id: &ostler_model::ExecutionId) -> std::path::PathBuf {
    core.settings.state_dir.join(NOTIFY).join(id.short())
}

fn socket_observation(snapshot: &TreeSnapshot) -> ReadinessInput {
    let sockets = snapshot.listeners.iter().map(|listener| {
        let owns_socket = |member: &&TreeMember| member.pid == listener.pid;
        let member = snapshot.members.iter().find(owns_socket);
        ListeningSocket {
            address: listener.address,
            inode: listener.inode,
            pid: listener.pid,
            process: member.map(|it| it.name.clone()).unwrap_or_default(),
            stopped: member.is_some_and(|it| it.stopped),
            waiting: listener.waiting,
        }
    });
    ReadinessInput::Sockets {
        sockets: sockets.collect(),
        unix: snapshot.unix.iter().map(|it| it.path.to_string()).collect(),
        members: u32::try_from(snapshot.members.len()).unwrap_or(u32::MAX),
    }
}
