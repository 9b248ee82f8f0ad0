//! The supervisor's state machine.

use std::time::Duration;

use ostler_model::ControlCommand;
use ostler_model::event::{DegradedCapability, TrimReason};
use ostler_model::{
    Capability, Event, EventRecord, Lifetime, MissingCapability, PortForward, ProcessEvent, Signal,
    State, StopReason, Termination, TerminationCause, Timestamp,
};

use super::effect::{SupervisorEffect, Timer};
use super::input::SupervisorInput;
use super::termination;
use crate::readiness::Readiness;

/// The stage of the current attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AttemptStage {
    /// Nothing has happened yet, or recovery has not reported its result.
    Idle,
    /// A spawn was requested and has not begun; a stop waits with this grace.
    Spawning {
        grace: Option<Duration>,
    },
    /// A shim accepts commands; the kill escalation begins or began with this grace.
    Live {
        grace: Option<Duration>,
    },
    /// Between two attempts.
    Backoff,
    Ended,
}

/// Why an attempt is ended in favour of the next one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RestartCause {
    /// A caller requested it: the next attempt begins at once.
    Requested,
    /// The health rule requires it: counts as a failure.
    Unhealthy,
}

/// An attempt that could not be spawned.
#[derive(Debug, Clone)]
pub(super) struct SpawnFailure {
    pub(super) attempt: u32,
    pub(super) cause: TerminationCause,
}

/// The policy of one execution.
#[derive(Debug, Clone)]
pub struct Supervisor {
    pub(super) lifetime: Lifetime,
    /// The ports that lead into its network, where it has one of its own.
    pub(super) forwards: Option<Vec<PortForward>>,
    grace: Duration,
    pub(super) state: State,
    pub(super) stage: AttemptStage,
    /// The newest attempt.
    pub(super) attempt: u32,
    /// Attempts since the last stable one.
    pub(super) tries: u32,
    /// The attempt whose start is on record.
    pub(super) started_attempt: u32,
    /// The attempt whose end is on record, and how its leader ended.
    pub(super) ended_attempt: Option<(u32, Event)>,
    /// The newest attempt, where it could not be spawned: no exit record tells of it.
    pub(super) spawn_failure: Option<SpawnFailure>,
    pub(super) journal_failed: bool,
    pub(super) journal_recovered: bool,
    /// The capabilities that the attempt is recorded to have lost.
    pub(super) lost_capabilities: Vec<Capability>,
    /// Bytes of the attempt that are recorded as lost to a full disk.
    pub(super) lost_bytes: u64,
    /// The readiness of a service, while an attempt of it runs.
    pub(super) readiness: Option<Readiness>,
    /// The attempt that is being ended for the next one.
    pub(super) pending_restart: Option<(u32, RestartCause)>,
    /// The grace of the stop that follows SIGINT.
    interrupt_grace: Option<Duration>,
    /// The offset of the prompt that was not answered yet.
    pub(super) prompt_offset: Option<u64>,
    pub(super) offset: u64,
    pub(super) last_at: Timestamp,
    pub(super) effects: Vec<SupervisorEffect>,
}

impl Supervisor {
    /// A supervisor of a new execution; `grace` is used where a stop names none.
    #[must_use]
    pub fn new(lifetime: Lifetime, grace: Duration) -> Self {
        Self {
            lifetime,
            forwards: None,
            grace,
            state: State::default(),
            stage: AttemptStage::Idle,
            attempt: 0,
            tries: 0,
            started_attempt: 0,
            ended_attempt: None,
            spawn_failure: None,
            journal_failed: false,
            journal_recovered: false,
            lost_capabilities: Vec::new(),
            lost_bytes: 0,
            readiness: None,
            pending_restart: None,
            interrupt_grace: None,
            prompt_offset: None,
            offset: 0,
            last_at: Timestamp::UNIX_EPOCH,
            effects: Vec::new(),
        }
    }

    /// With the port forwards of an execution that has a network of its own: its URL is published as
    /// the host reaches it.
    #[must_use]
    pub fn with_own_network(mut self, forwards: Option<Vec<PortForward>>) -> Self {
        self.forwards = forwards;
        self
    }

    /// The observed state: the fold of every event recorded.
    #[must_use]
    pub const fn state(&self) -> &State {
        &self.state
    }

    /// The highest recorded offset.
    #[must_use]
    pub const fn offset(&self) -> u64 {
        self.offset
    }

    /// Whether it has ended, finally.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.stage == AttemptStage::Ended
    }

    /// Whether commands can be sent now.
    #[must_use]
    pub const fn is_live(&self) -> bool {
        matches!(self.stage, AttemptStage::Live { .. })
    }

    /// Handles one input at time `now`, and returns the effects to perform.
    pub fn handle(&mut self, now: Timestamp, input: SupervisorInput) -> Vec<SupervisorEffect> {
        if !self.is_over() {
            self.handle_input(now, input);
        }
        std::mem::take(&mut self.effects)
    }

    fn handle_input(&mut self, now: Timestamp, input: SupervisorInput) {
        match input {
            SupervisorInput::Admitted { missing } => self.on_admitted(now, missing),
            SupervisorInput::Spawned => self.on_spawned(),
            SupervisorInput::SpawnFailed { step, message } => {
                self.on_spawn_failed(now, step, None, message);
            }
            SupervisorInput::Process(event) => self.on_process_event(now, event),
            SupervisorInput::Observed {
                elapsed,
                observation: seen,
            } => self.on_observation(now, elapsed, seen),
            SupervisorInput::Restart { by, reason } => self.on_restart(now, by, reason),
            SupervisorInput::Stop { order, grace } => self.on_stop(now, order, grace),
            SupervisorInput::Interrupt { order, wait, grace } => {
                self.on_interrupt(now, order, wait, grace);
            }
            SupervisorInput::Forward(order) => self.forward(order),
            SupervisorInput::Freeze { frozen } => self.on_freeze(frozen),
            SupervisorInput::Frozen { frozen, by } => self.on_frozen(now, frozen, by),
            SupervisorInput::InputTaken { by, len } => {
                self.prompt_offset = None;
                self.record_if_created(now, Event::Input { by, len });
            }
            SupervisorInput::PromptDetected { text, secret, end } => {
                self.on_prompt(now, text, secret, end);
            }
            SupervisorInput::PromptAnswered { by } => {
                self.prompt_offset = None;
                self.record_if_created(now, Event::PromptAnswered { by });
            }
            SupervisorInput::PromptGone { prompts } => {
                if self.state.prompt.is_some() && self.state.prompts == prompts {
                    self.prompt_offset = None;
                    self.record_if_created(now, Event::PromptGone {});
                }
            }
            SupervisorInput::Resized { size } => {
                self.record_if_created(now, Event::Resized { size });
            }
            SupervisorInput::LeaseTaken { by } => {
                self.record_if_created(now, Event::LeaseTaken { by });
            }
            SupervisorInput::Trimmed { from, to, reason } => {
                self.record_if_created(now, Event::Trimmed { from, to, reason });
            }
            SupervisorInput::Timer(Timer::Backoff) => self.on_backoff_elapsed(),
            SupervisorInput::Timer(Timer::Interrupt) => self.on_interrupt_elapsed(),
            SupervisorInput::Adopted {
                attempt,
                pid,
                started_at,
            } => self.on_adopted(now, attempt, pid, started_at),
            SupervisorInput::Lost { reason, attempt } => self.on_lost(now, reason, attempt),
        }
    }

    fn on_process_event(&mut self, now: Timestamp, event: ProcessEvent) {
        match event {
            ProcessEvent::Started { at, pid } => self.on_started(at, pid),
            ProcessEvent::Output { end } => self.offset = self.offset.max(end),
            ProcessEvent::TimedOut { kind } => {
                self.on_timeout(now, StopReason::TimedOut { clock: kind });
            }
            ProcessEvent::JournalFailed { detail, .. } => self.on_journal_failed(now, detail),
            ProcessEvent::JournalRecovered { missing } => {
                self.on_journal_recovered(now, &missing);
            }
            ProcessEvent::Detached { status } => self.on_detached(now, status),
            ProcessEvent::LimitHit { limit } => self.on_limit_hit(now, limit),
            ProcessEvent::Degraded { lost } => self.on_capability_lost(now, lost),
            ProcessEvent::Exited { record, .. } => self.on_exited(now, &record),
            ProcessEvent::Lost => self.on_shim_gone(now),
            // Answers to requests: the driver knows who made them.
            ProcessEvent::Hello { .. }
            | ProcessEvent::InputAccepted { .. }
            | ProcessEvent::InputProgress { .. }
            | ProcessEvent::TerminalQuery { .. }
            | ProcessEvent::Frozen { .. } => {}
        }
    }

    fn on_admitted(&mut self, now: Timestamp, missing: Vec<ostler_model::MissingCapability>) {
        if self.stage == AttemptStage::Idle && self.state.events == 0 {
            self.record(now, Event::Created { missing });
            self.spawn();
        }
    }

    pub(super) fn spawn(&mut self) {
        self.attempt += 1;
        self.tries += 1;
        self.stage = AttemptStage::Spawning { grace: None };
        self.effects.push(SupervisorEffect::Spawn {
            attempt: self.attempt,
        });
    }

    fn on_spawned(&mut self) {
        if let AttemptStage::Spawning { grace } = self.stage {
            self.stage = AttemptStage::Live { grace };
            if let Some(grace) = grace {
                self.effects
                    .push(SupervisorEffect::Send(ControlCommand::Stop { grace }));
            }
        }
    }

    pub(super) fn has_attempt(&self) -> bool {
        matches!(
            self.stage,
            AttemptStage::Spawning { .. } | AttemptStage::Live { .. }
        )
    }

    pub(super) fn on_started(&mut self, at: Timestamp, pid: u32) {
        if self.has_attempt() && self.started_attempt < self.attempt {
            let attempt = self.attempt;
            self.record(at, Event::Started { attempt, pid });
            self.begin_readiness();
        }
    }

    fn on_timeout(&mut self, now: Timestamp, order: StopReason) {
        if self.is_live() && self.state.stopping.is_none() {
            self.stage = AttemptStage::Live {
                grace: Some(self.grace),
            };
            self.record(now, Event::Stopping { order });
        }
    }

    pub(super) fn on_journal_failed(&mut self, now: Timestamp, detail: String) {
        if !std::mem::replace(&mut self.journal_failed, true) {
            let ability = DegradedCapability::Journal;
            self.record_if_created(now, Event::Degraded { ability, detail });
        }
    }

    /// Records the recovery the first time, and the lost ranges every time.
    fn on_journal_recovered(&mut self, now: Timestamp, missing: &[(u64, u64)]) {
        for &(from, to) in missing {
            let reason = TrimReason::DiskFull;
            self.record_if_created(now, Event::Trimmed { from, to, reason });
        }
        if !std::mem::replace(&mut self.journal_recovered, true) {
            let lost = match missing.iter().map(|(from, to)| to - from).sum::<u64>() {
                0 => "nothing was lost".to_owned(),
                lost => format!("{lost} bytes of it were lost meanwhile"),
            };
            let ability = DegradedCapability::Journal;
            let detail = format!("output goes to disk again; {lost}");
            self.record_if_created(now, Event::Degraded { ability, detail });
        }
    }

    /// Records each capability that an attempt loses once, however often it is reported.
    pub(super) fn on_capability_lost(&mut self, now: Timestamp, lost: MissingCapability) {
        if !self.lost_capabilities.contains(&lost.ability) {
            let ability = DegradedCapability::Enforcement(lost.ability);
            let detail = lost.reason;
            self.record_if_created(now, Event::Degraded { ability, detail });
        }
    }

    /// Records a prompt once, however many waits detect it.
    fn on_prompt(&mut self, now: Timestamp, text: String, secret: bool, end: u64) {
        self.offset = self.offset.max(end);
        if self.is_live() && self.prompt_offset.replace(self.offset) != Some(self.offset) {
            self.record_if_created(now, Event::PromptDetected { text, secret });
        }
    }

    /// Records an event that needs no decision, once the execution exists.
    pub(super) fn record_if_created(&mut self, now: Timestamp, event: Event) {
        if self.state.events > 0 {
            self.record(now, event);
        }
    }

    fn forward(&mut self, command: ControlCommand) {
        if self.is_live() {
            self.effects.push(SupervisorEffect::Send(command));
        }
    }

    fn on_stop(&mut self, now: Timestamp, order: StopReason, grace: Duration) {
        if self.state.events == 0 {
            return;
        }
        let is_first = self.state.stopping.is_none();
        if is_first {
            self.record(now, Event::Stopping { order });
        }
        match self.stage {
            AttemptStage::Spawning { grace: earlier } => {
                let grace = earlier.map_or(grace, |earlier| earlier.min(grace));
                self.stage = AttemptStage::Spawning { grace: Some(grace) };
            }
            AttemptStage::Live { grace: earlier } => {
                if earlier.is_none_or(|earlier| grace < earlier) {
                    self.send_stop(grace);
                }
            }
            AttemptStage::Backoff => {
                self.effects
                    .push(SupervisorEffect::ClearTimer(Timer::Backoff));
                self.finish_stopped(now);
            }
            AttemptStage::Idle | AttemptStage::Ended => {}
        }
    }

    /// Where the kill escalation has not begun, SIGINT comes before it.
    fn on_interrupt(&mut self, now: Timestamp, order: StopReason, wait: Duration, grace: Duration) {
        let is_running = self.stage == AttemptStage::Live { grace: None };
        if is_running && self.interrupt_grace.is_some() {
            // The first one has its time.
            return;
        }
        if !is_running || self.state.stopping.is_some() {
            return self.on_stop(now, order, grace);
        }
        self.record(now, Event::Stopping { order });
        // Who is frozen cannot end by itself.
        self.on_freeze(false);
        self.interrupt_grace = Some(grace);
        let interrupt = ControlCommand::Signal(Signal::INT);
        self.effects.push(SupervisorEffect::Send(interrupt));
        self.effects.push(SupervisorEffect::SetTimer {
            timer: Timer::Interrupt,
            after: wait,
        });
    }

    fn on_interrupt_elapsed(&mut self) {
        if self.stage == (AttemptStage::Live { grace: None })
            && let Some(grace) = self.interrupt_grace.take()
        {
            self.send_stop(grace);
        }
    }

    /// Has the shim begin the kill escalation.
    fn send_stop(&mut self, grace: Duration) {
        self.stage = AttemptStage::Live { grace: Some(grace) };
        self.effects
            .push(SupervisorEffect::Send(ControlCommand::Stop { grace }));
    }

    pub(super) fn on_spawn_failed(
        &mut self,
        now: Timestamp,
        step: String,
        errno: Option<i32>,
        message: String,
    ) {
        if !self.has_attempt() {
            return;
        }
        let attempt = self.attempt;
        self.record(
            now,
            Event::SpawnFailed {
                attempt,
                step,
                errno,
                message,
            },
        );
        if let Some(failure) = self.spawn_failure.take() {
            self.after_spawn_failed(now, failure);
        }
    }

    /// What follows from an attempt that could not be spawned: the end, or another one.
    pub(super) fn after_spawn_failed(&mut self, now: Timestamp, failure: SpawnFailure) {
        if self.state.stopping.is_some() {
            return self.finish_stopped(now);
        }
        // A first attempt that cannot be spawned is an error in the request, not a crash.
        if failure.attempt > 1 && self.may_restart(false) {
            return self.back_off(now, None);
        }
        self.finish(now, Termination::without_status(failure.cause));
    }

    fn on_backoff_elapsed(&mut self) {
        if self.stage == AttemptStage::Backoff {
            self.spawn();
        }
    }

    fn on_adopted(&mut self, now: Timestamp, attempt: u32, pid: u32, started_at: Timestamp) {
        if self.stage != AttemptStage::Idle || self.state.events == 0 {
            return;
        }
        self.attempt = self.attempt.max(attempt);
        self.tries = self.tries.max(1);
        self.stage = AttemptStage::Live { grace: None };
        self.on_started(started_at, pid);
        self.resume_readiness();
        self.record(now, Event::Adopted { attempt });
        // The attempt to be ended may be another than the one that was found.
        let found = self.attempt;
        self.pending_restart = self.pending_restart.filter(|(ended, _)| *ended == found);
        if self.state.stopping.is_some() || self.pending_restart.is_some() {
            self.end_attempt();
        }
    }

    /// Starts the kill escalation of the attempt.
    pub(super) fn end_attempt(&mut self) {
        self.send_stop(self.grace);
    }

    /// Ends as the stop decision says, with the last recorded exit status if there is one.
    pub(super) fn finish_stopped(&mut self, now: Timestamp) {
        let cause = self.state.stopping.as_ref().map_or(
            TerminationCause::Stopped { reason: None },
            termination::stop_cause,
        );
        self.finish(now, Termination::without_status(cause));
    }

    pub(super) fn finish(&mut self, at: Timestamp, ending: Termination) {
        self.record(at, Event::Finished { ending });
        self.stage = AttemptStage::Ended;
    }

    pub(super) fn record(&mut self, at: Timestamp, event: Event) {
        let record = EventRecord {
            seq: self.state.events,
            at: at.max(self.last_at),
            offset: self.offset,
            event,
        };
        self.replay(&record);
        self.state.apply(&record);
        self.effects.push(SupervisorEffect::Record(record));
    }
}
