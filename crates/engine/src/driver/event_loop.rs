//! The driver's event loop: control messages first, output last.

use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use ostler_backend::{
    ControlCommand, LaunchIo, LaunchPlan, ProcessControl, ProcessEvent, ReceivedEvent,
    RecoveryOutcome, SpawnHandle, TerminalQuery,
};
use ostler_journal::Journal;
use ostler_model::event::TrimReason;
use ostler_model::{Capability, EventRecord, PortForward, Spec, StopReason, Timestamp};
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;

use crate::admission::LaunchTemplate;
use crate::engine_inner::EngineInner;
use crate::execution::{DriverCommand, DriverFlags, ExecutionHandle, FreezeRequest, PromptRecord};
use crate::supervisor::{Supervisor, SupervisorInput, Timer};

use super::input_queue::InputQueue;
use super::output_readers::RetainState;
use super::recorder::EventRecorder;
use super::service_monitor::{MonitorEvent, ServiceMonitor};
use super::trim::TrimSchedule;

/// The parameters of a driver.
#[derive(Debug)]
pub(crate) struct DriverInit {
    pub(crate) execution: Arc<ExecutionHandle>,
    pub(crate) commands: mpsc::Receiver<DriverCommand>,
    /// The launch template; none where an earlier engine launched it.
    pub(crate) template: Option<LaunchTemplate>,
    /// Whether a caller waits for the start.
    pub(crate) report_start: bool,
    /// Whether a lossless reader is expected from the first byte on.
    pub(crate) lossless_reader: bool,
}

/// The driver of one execution.
pub(crate) struct Driver {
    pub(super) core: Arc<EngineInner>,
    pub(super) execution: Arc<ExecutionHandle>,
    pub(super) supervisor: Supervisor,
    pub(super) recorder: EventRecorder,
    pub(super) template: Option<LaunchTemplate>,
    pub(super) report_start: bool,
    pub(super) control: Option<Arc<dyn ProcessControl>>,
    pub(super) process_events: Option<mpsc::Receiver<ReceivedEvent>>,
    pub(super) writes: InputQueue,
    pub(super) timer: Option<(Instant, Timer)>,
    /// Inputs that follow from effects, handled before anything else.
    pub(super) inbox: VecDeque<SupervisorInput>,
    pub(super) watches_output: bool,
    pub(super) retain_state: RetainState,
    /// When to check again whether the shim should send output notifications: after the last
    /// watcher has gone, and when the shim was too busy for the command.
    pub(super) watch_check_at: Option<Instant>,
    pub(super) journal: Option<Journal>,
    pub(super) mirror: Option<ostler_export::Mirror>,
    pub(super) trim_schedule: TrimSchedule,
    /// Observes a service.
    pub(super) monitor: ServiceMonitor,
    /// Requests that wait for the result of a freeze or thaw.
    pub(super) pending_freezes: Vec<FreezeRequest>,
    /// Recovery found it running: the shim reports once, unasked, whether it is frozen.
    pub(super) adopted: bool,
    commands: mpsc::Receiver<DriverCommand>,
    pub(super) flags: watch::Receiver<DriverFlags>,
    cancel_handled: bool,
    closing_handled: bool,
    detached: bool,
}

/// One event that a driver wakes up for.
enum DriverEvent {
    Closing,
    FlagsChanged,
    Command(DriverCommand),
    Timer(Timer),
    TrimDue,
    ReadersDue,
    WriteDue,
    Process(Option<ReceivedEvent>),
    Monitor(MonitorEvent),
}

impl Driver {
    /// A driver of a new execution.
    pub(crate) fn new(core: Arc<EngineInner>, init: DriverInit) -> Self {
        let grace = core.grace_of(&init.execution.spec);
        let spec = &init.execution.spec;
        let supervisor = Supervisor::new(spec.lifetime.clone(), grace)
            .with_own_network(own_network_forwards(spec));
        Self::build(core, init, supervisor)
    }

    /// A driver of an execution that an earlier engine recorded this much of.
    pub(crate) fn resume(
        core: Arc<EngineInner>,
        init: DriverInit,
        records: &[EventRecord],
    ) -> Self {
        let grace = core.grace_of(&init.execution.spec);
        let spec = &init.execution.spec;
        let supervisor = Supervisor::resume(spec.lifetime.clone(), grace, records)
            .with_own_network(own_network_forwards(spec));
        let mut driver = Self::build(core, init, supervisor);
        driver.monitor = ServiceMonitor::resume(records);
        driver
    }

    fn build(core: Arc<EngineInner>, init: DriverInit, supervisor: Supervisor) -> Self {
        Self {
            core,
            recorder: EventRecorder::new(init.execution.dir.clone()),
            flags: init.execution.flags.subscribe(),
            execution: init.execution,
            supervisor,
            template: init.template,
            report_start: init.report_start,
            control: None,
            process_events: None,
            writes: InputQueue::default(),
            timer: None,
            inbox: VecDeque::new(),
            watches_output: false,
            retain_state: RetainState::new(init.lossless_reader),
            watch_check_at: None,
            journal: None,
            mirror: None,
            trim_schedule: TrimSchedule::new(),
            monitor: ServiceMonitor::default(),
            pending_freezes: Vec::new(),
            adopted: false,
            commands: init.commands,
            cancel_handled: false,
            closing_handled: false,
            detached: false,
        }
    }

    /// Starts the execution and drives it to its end.
    pub(crate) async fn run(mut self, now: Timestamp) {
        let missing = self.execution.spec.policy.missing.clone();
        self.step_at(now, SupervisorInput::Admitted { missing })
            .await;
        // Apart: this future and the loop's would each hold the driver.
        Box::pin(self.run_loop()).await;
    }

    /// Handles the result of recovery; returns whether the driver must run.
    pub(crate) async fn on_recovered(&mut self, recovered: RecoveryOutcome) -> bool {
        let input = match recovered {
            RecoveryOutcome::Running {
                attempt,
                pid,
                started_at,
                handle,
            } => {
                self.attach(handle);
                self.adopted = true;
                SupervisorInput::Adopted {
                    attempt,
                    pid,
                    started_at,
                }
            }
            RecoveryOutcome::Exited(record) => {
                self.apply_exit_record(&record);
                SupervisorInput::Process(ProcessEvent::Exited {
                    record,
                    idle: false,
                })
            }
            // Reported by recovery, which does not continue.
            RecoveryOutcome::Unreachable(_) => return false,
            RecoveryOutcome::Lost {
                reason, attempt, ..
            } => {
                self.read_last_output_end().await;
                SupervisorInput::Lost { reason, attempt }
            }
        };
        self.start_monitor();
        self.step(input).await;
        if self.supervisor.is_over() {
            self.finish().await;
        }
        !self.supervisor.is_over()
    }

    pub(super) fn attach(&mut self, handle: SpawnHandle) {
        self.control = Some(handle.control);
        self.process_events = Some(handle.events);
        self.watches_output = false;
        self.retain_state.reset();
        self.core.usage_monitor.attempt_started(self.execution.id);
    }

    /// Runs until the execution or the engine ends.
    pub(crate) async fn run_loop(mut self) {
        if let Some(limit) = self.execution.spec.policy.limits.disk_bytes {
            let (core, entry) = (Arc::clone(&self.core), Arc::clone(&self.execution));
            let enforcement = super::disk_quota::enforce_disk_limit(core, entry, limit);
            self.core.tracker.spawn(enforcement);
        }
        self.schedule_checks().await;
        self.sync_retain_offset().await;
        self.sync_output_watch().await;
        while !self.supervisor.is_over() && !self.detached {
            let event = self.next_event().await;
            self.handle_event(event).await;
            self.schedule_checks().await;
            self.sync_retain_offset().await;
            self.sync_output_watch().await;
        }
        self.finish().await;
    }

    /// Queues events rebuilt from the spec, to be written like new ones.
    pub(crate) fn push_rebuilt(&mut self, records: Vec<EventRecord>) {
        self.recorder.push(records);
    }

    async fn next_event(&mut self) -> DriverEvent {
        let timer = self.timer;
        let is_unwatched = self.control.is_some() && !self.watches_output;
        let trim_at = self.trim_schedule.due();
        let write_at = self.writes.retry_at();
        let watch_at = earlier(self.watch_check_at, self.retain_state.due());
        tokio::select! {
            biased;
            () = self.core.closing.cancelled(), if !self.closing_handled => DriverEvent::Closing,
            Ok(()) = self.flags.changed() => DriverEvent::FlagsChanged,
            Some(ask) = self.commands.recv() => DriverEvent::Command(ask),
            timer = timer_fired(timer) => DriverEvent::Timer(timer),
            report = next_process_event(&mut self.process_events) => DriverEvent::Process(report),
            () = sleep_until_due(write_at) => DriverEvent::WriteDue,
            looked = self.monitor.next_event() => DriverEvent::Monitor(looked),
            () = sleep_until_due(watch_at) => DriverEvent::ReadersDue,
            () = tokio::time::sleep_until(trim_at), if is_unwatched => DriverEvent::TrimDue,
        }
    }

    async fn handle_event(&mut self, event: DriverEvent) {
        match event {
            DriverEvent::Closing => self.on_closing().await,
            DriverEvent::FlagsChanged => self.on_flags().await,
            DriverEvent::Command(ask) => self.handle_command(ask).await,
            DriverEvent::Timer(timer) => {
                self.timer = None;
                self.step(SupervisorInput::Timer(timer)).await;
            }
            DriverEvent::WriteDue => self.retry_write().await,
            // Handled after everything that happened.
            DriverEvent::Monitor(looked) => self.on_monitor_event(looked).await,
            DriverEvent::ReadersDue => {}
            DriverEvent::TrimDue => self.check_trim().await,
            DriverEvent::Process(Some(report)) => self.on_process_event(report).await,
            DriverEvent::Process(None) => {
                self.process_events = None;
                self.read_last_output_end().await;
                self.step(ProcessEvent::Lost.into()).await;
            }
        }
    }

    /// The engine shuts down: an execution that is durable and whose id a client has continues
    /// without it. A start in progress is refused from now on.
    async fn on_closing(&mut self) {
        self.closing_handled = true;
        let durable = self.core.capabilities.has(Capability::Durable);
        // An id that the client chose is known to it without an answer.
        let known = durable && self.execution.origin.client_chose_id;
        let is_kept = known || !self.execution.revoke_id();
        if durable && is_kept {
            self.detached = true;
            return;
        }
        let grace = self.core.grace_of(&self.execution.spec);
        let order = StopReason::Shutdown;
        self.step(SupervisorInput::Stop { order, grace }).await;
    }

    async fn on_flags(&mut self) {
        let flags = *self.flags.borrow_and_update();
        if flags.cancelled && !self.cancel_handled && self.execution.revoke_id() {
            self.cancel_handled = true;
            let order = StopReason::Cancelled;
            let grace = self.core.grace_of(&self.execution.spec);
            self.step(SupervisorInput::Stop { order, grace }).await;
        }
        while let Some(by) = self.execution.next_writer_change() {
            self.step(SupervisorInput::LeaseTaken { by }).await;
        }
        self.sync_output_watch().await;
    }

    async fn handle_command(&mut self, command: DriverCommand) {
        match command {
            DriverCommand::Stop { order, grace } => {
                self.refresh_journal_end().await;
                self.step(SupervisorInput::Stop { order, grace }).await;
            }
            DriverCommand::Interrupt { order, wait, grace } => {
                self.refresh_journal_end().await;
                self.step(SupervisorInput::Interrupt { order, wait, grace })
                    .await;
            }
            DriverCommand::Forward {
                command: order,
                reply: answer,
            } => {
                let sent = if let ControlCommand::Resize(size) = order {
                    self.resize(size).await
                } else {
                    self.forward(order).await
                };
                // The caller may be gone; the command was performed.
                let _gone = answer.send(sent).is_err();
            }
            DriverCommand::Write(write) => self.enqueue_write(write).await,
            DriverCommand::Freeze(freeze) => self.freeze(freeze).await,
            DriverCommand::Restart { by, reason } => {
                self.refresh_journal_end().await;
                self.step(SupervisorInput::Restart { by, reason }).await;
            }
            DriverCommand::LimitHit(limit) => {
                self.step(ProcessEvent::LimitHit { limit }.into()).await;
            }
            DriverCommand::CapabilityLost(lost) => {
                self.step(ProcessEvent::Degraded { lost }.into()).await;
            }
            DriverCommand::PromptDetected {
                prompt,
                reply: answer,
            } => {
                let PromptRecord { text, secret, end } = prompt;
                self.step(SupervisorInput::PromptDetected { text, secret, end })
                    .await;
                // The caller may be gone; the prompt is recorded.
                let _gone = answer.send(()).is_err();
            }
            DriverCommand::PromptGone { prompts } => {
                self.step(SupervisorInput::PromptGone { prompts }).await;
            }
            DriverCommand::OutputCleared {
                from,
                to,
                by,
                reply: answer,
            } => {
                tracing::debug!(id = %self.execution.id, %by, from, to, "output cleared");
                let reason = TrimReason::Cleared;
                self.step(SupervisorInput::Trimmed { from, to, reason })
                    .await;
                let cleared = self.clear_mirror();
                // The caller may be gone; the event is recorded.
                let _gone = answer.send(cleared).is_err();
            }
        }
    }

    async fn on_process_event(&mut self, received: ReceivedEvent) {
        let ReceivedEvent { event, memory } = received;
        match event {
            ProcessEvent::Started { .. } => self.start_monitor(),
            ProcessEvent::Output { end } => return self.on_output(end).await,
            ProcessEvent::InputAccepted { len } => return self.on_input_taken(len).await,
            ProcessEvent::InputProgress { input } => return self.on_input_progress(input),
            ProcessEvent::TerminalQuery { query, end } => return self.reply_to_query(query, end),
            ProcessEvent::Frozen { frozen } => return self.on_frozen(frozen).await,
            ProcessEvent::TimedOut { .. } => self.refresh_journal_end().await,
            ProcessEvent::JournalFailed { .. } => self.on_journal_failed(memory),
            ProcessEvent::JournalRecovered { .. } => self.on_output_on_disk(),
            ProcessEvent::Exited { ref record, .. } => self.apply_exit_record(record),
            ProcessEvent::Lost => {
                self.detach_process();
                self.read_last_output_end().await;
            }
            ProcessEvent::LimitHit { .. }
            | ProcessEvent::Degraded { .. }
            | ProcessEvent::Detached { .. }
            | ProcessEvent::Hello { .. } => {}
        }
        let event = self.with_storage_hint(event);
        self.step(SupervisorInput::Process(event)).await;
    }

    fn reply_to_query(&self, query: TerminalQuery, end: u64) {
        let (screens, entry) = (Arc::clone(&self.core.screens), Arc::clone(&self.execution));
        let reply = screens.reply_to_query(entry, query, end);
        self.core.tracker.spawn(reply);
    }

    fn on_journal_failed(&mut self, memory: Option<OwnedFd>) {
        if let Some(memory) = memory {
            self.execution.set_memory(memory);
            self.on_output_in_memory();
            self.execution.close_reader();
        }
    }

    pub(super) fn detach_process(&mut self) {
        self.core.usage_monitor.attempt_ended(self.execution.id);
        self.control = None;
        self.process_events = None;
        self.watches_output = false;
        self.retain_state.reset();
        self.pending_freezes.clear();
    }
}

/// The port forwards of an execution with a network of its own.
fn own_network_forwards(spec: &Spec) -> Option<Vec<PortForward>> {
    let sandbox = spec.policy.confinement.as_ref()?;
    sandbox.has_own_network().then(|| sandbox.forwards.clone())
}

fn earlier(one: Option<Instant>, other: Option<Instant>) -> Option<Instant> {
    one.into_iter().chain(other).min()
}

async fn sleep_until_due(due: Option<Instant>) {
    match due {
        Some(due) => tokio::time::sleep_until(due).await,
        None => std::future::pending().await,
    }
}

async fn timer_fired(timer: Option<(Instant, Timer)>) -> Timer {
    match timer {
        Some((due, timer)) => {
            sleep_until_due(Some(due)).await;
            timer
        }
        None => std::future::pending().await,
    }
}

async fn next_process_event(
    process_events: &mut Option<mpsc::Receiver<ReceivedEvent>>,
) -> Option<ReceivedEvent> {
    match process_events {
        Some(reports) => reports.recv().await,
        None => std::future::pending().await,
    }
}

/// The launch plan of one attempt.
pub(super) fn launch_plan(driver: &mut Driver, attempt: u32) -> Option<LaunchPlan> {
    let service = matches!(
        driver.execution.spec.lifetime,
        ostler_model::Lifetime::Service { .. }
    );
    let template = if service {
        driver.template.clone()?
    } else {
        driver.template.take()?
    };
    let mut plan = template.plan(driver.execution.id, attempt);
    if let (LaunchIo::Pty(size), Some(newer)) = (&mut plan.io, driver.supervisor.state().size) {
        *size = newer;
    }
    plan.report_start = driver.report_start || service;
    plan.lossless_reader = driver.retain_state.is_reader_expected();
    if attempt > 1 {
        let output_end = driver.execution.fresh_info().output_end;
        plan.min_output_offset = output_end.max(driver.supervisor.offset());
    }
    driver.prepare_monitor(&mut plan);
    // A spec is plain data: strings, numbers and lists always serialize as JSON.
    plan.spec = serde_json::to_vec(&*driver.execution.spec).ok()?;
    Some(plan)
}
