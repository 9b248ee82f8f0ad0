//! Performs the supervisor's effects.

use std::sync::Arc;

use ostler_backend::{
    ControlCommand, ControlError, ExitRecord, LeaderOutcome, ProcessEvent, STEP_OPEN_FILES,
    STEP_STORAGE, SpawnError,
};
use ostler_model::{Event, EventRecord, Timestamp};
use tokio::time::Instant;

use crate::disk_space;
use crate::error::PLAN_STEP;
use crate::info::LifecycleEvent;
use crate::retention;
use crate::supervisor::{SupervisorEffect, SupervisorInput};

use super::event_loop::{Driver, launch_plan};

/// How often a stop is sent before it counts as lost; each try may take
/// [`COMMAND_TIMEOUT_MS`](ostler_backend::COMMAND_TIMEOUT_MS).
const STOP_TRIES: u32 = 3;

impl Driver {
    /// Feeds an input to the supervisor, performs its effects, and all that follows from them.
    pub(super) async fn step(&mut self, input: SupervisorInput) {
        self.step_at(Timestamp::now(), input).await;
    }

    /// As [`Driver::step`], at a given time.
    pub(super) async fn step_at(&mut self, now: Timestamp, input: SupervisorInput) {
        self.step_without_flush(now, input).await;
        self.flush_if_needed().await;
    }

    /// As [`Driver::step`], without writing events: [`Driver::flush_if_needed`] must follow.
    pub(super) async fn step_without_flush(&mut self, now: Timestamp, input: SupervisorInput) {
        let effects = self.supervisor.handle(now, input);
        self.execute(effects).await;
        while let Some(input) = self.inbox.pop_front() {
            let effects = self.supervisor.handle(Timestamp::now(), input);
            self.execute(effects).await;
        }
    }

    /// Writes the published events, if they cannot be deferred.
    pub(super) async fn flush_if_needed(&mut self) {
        if self.recorder.needs_flush() {
            // Waiters on the published state are woken before anything is written.
            tokio::task::yield_now().await;
            self.flush_events();
        }
    }

    async fn execute(&mut self, effects: Vec<SupervisorEffect>) {
        let mut records = Vec::new();
        for effect in effects {
            if let SupervisorEffect::Record(record) = effect {
                records.push(record);
                continue;
            }
            self.publish(std::mem::take(&mut records));
            match effect {
                SupervisorEffect::Record(_) => {}
                SupervisorEffect::Spawn { attempt } => self.spawn(attempt).await,
                SupervisorEffect::Send(order) => self.send_stop(order).await,
                SupervisorEffect::SetTimer { timer, after } => {
                    self.timer = Some((Instant::now() + after, timer));
                }
                SupervisorEffect::ClearTimer(_) => self.timer = None,
            }
        }
        self.publish(records);
    }

    async fn spawn(&mut self, attempt: u32) {
        self.detach_process();
        let planned = match launch_plan(self, attempt) {
            Some(plan) => Ok(plan),
            None => self.replan(attempt),
        };
        let spawned = match planned {
            Ok(plan) => self.core.backend.spawn(plan).await,
            Err(message) => Err(SpawnError::Zygote(message)),
        };
        let spawned = spawned.map_err(|error| match error {
            SpawnError::Storage(what) => SpawnError::Storage(self.with_disk_space(&what)),
            SpawnError::Zygote(_)
            | SpawnError::PlanTooLarge { .. }
            | SpawnError::Container(_)
            | SpawnError::OpenFiles { .. } => error,
        });
        let input = match spawned {
            Ok(handle) => {
                self.attach(handle);
                SupervisorInput::Spawned
            }
            Err(error) => SupervisorInput::SpawnFailed {
                step: failed_step(&error).to_owned(),
                message: error.to_string(),
            },
        };
        self.inbox.push_back(input);
    }

    /// Appends the free space to the message of a refused write.
    fn with_disk_space(&self, message: &str) -> String {
        let space = disk_space::describe(&self.core.settings.state_dir);
        format!("{message}; {space}")
    }

    /// The event as the shim reported it; an end because the state directory could not be written
    /// with its free space.
    pub(super) fn with_storage_hint(&self, mut event: ProcessEvent) -> ProcessEvent {
        if let ProcessEvent::Exited { record, .. } = &mut event
            && let LeaderOutcome::SpawnFailed { step, message, .. } = &mut record.outcome
            && step == STEP_STORAGE
        {
            *message = self.with_disk_space(message);
        }
        event
    }

    /// Plans from the spec alone, after an earlier engine admitted it.
    fn replan(&mut self, attempt: u32) -> Result<ostler_backend::LaunchPlan, String> {
        let template =
            crate::admission::relaunch_template(&self.core.settings, &self.execution.spec)
                .map_err(|error| error.to_string())?;
        self.template = Some(template);
        launch_plan(self, attempt).ok_or_else(|| "its spec cannot be written as JSON".to_owned())
    }

    /// Sends a command, and returns whether it arrived.
    pub(super) async fn send(&self, command: ControlCommand) -> Result<(), ControlError> {
        match &self.control {
            Some(control) => control.send(command).await,
            None => Err(ControlError::Ended),
        }
    }

    /// Forwards a command that needs no decision.
    pub(super) async fn forward(&mut self, command: ControlCommand) -> Result<(), ControlError> {
        let effects = self
            .supervisor
            .handle(Timestamp::now(), SupervisorInput::Forward(command));
        let mut sent = Err(ControlError::Ended);
        for effect in effects {
            if let SupervisorEffect::Send(order) = effect {
                sent = self.send(order).await;
            }
        }
        sent
    }

    /// A stop must arrive, and its reason must be on disk before it does.
    async fn send_stop(&mut self, command: ControlCommand) {
        self.flush_events();
        for _ in 0..STOP_TRIES {
            match self.send(command.clone()).await {
                Ok(()) | Err(ControlError::Ended) => return,
                Err(error @ (ControlError::Busy | ControlError::Unsupported(_))) => {
                    tracing::warn!(id = %self.execution.id, %error, "a stop did not arrive");
                }
            }
        }
    }

    /// Publishes events to all subscribers, in one step.
    fn publish(&mut self, records: Vec<EventRecord>) {
        if records.is_empty() {
            return;
        }
        let finished = records
            .iter()
            .any(|record| matches!(record.event, Event::Finished { .. }));
        if finished {
            // A waiter that sees the end may immediately start the next execution in its slot.
            self.core.registry.on_finished(self.execution.id);
        }
        let is_spawn_failure =
            |record: &EventRecord| matches!(record.event, Event::SpawnFailed { .. });
        if records.iter().any(is_spawn_failure) {
            let id = self.execution.id;
            self.core.notify(|observer| observer.spawn_failed(id));
        }
        let is_trim = |record: &EventRecord| matches!(record.event, Event::Trimmed { .. });
        if finished || records.iter().any(is_trim) {
            // A deleted file releases its space when its last descriptor is closed.
            self.execution.close_reader();
        }
        let sent_at = self.writes.sent_offset();
        self.execution.live.send_modify(|live| {
            for record in &records {
                live.state.apply(record);
                self.execution.timeline.apply(record);
                if matches!(record.event, Event::Input { .. }) {
                    live.last_input_offset = Some(sent_at.min(record.offset));
                }
            }
        });
        if finished {
            let id = self.execution.id;
            self.core.notify(|observer| observer.ended(id));
            self.execution
                .journal_end
                .send_modify(|mark| mark.finished = true);
        }
        if self.core.lifecycle_events.receiver_count() > 0 {
            for record in &records {
                let lifecycle_event = LifecycleEvent {
                    id: self.execution.id,
                    owner: self.execution.owner(),
                    record: Arc::new(record.clone()),
                };
                // Fails only when the last subscriber has just gone.
                let _gone = self.core.lifecycle_events.send(lifecycle_event).is_err();
            }
        }
        self.recorder.push(records);
    }

    /// Writes what is pending to the ledger and the execution's events.
    pub(super) fn flush_events(&mut self) {
        self.recorder.flush(&self.core, &self.execution);
    }

    /// Applies the journal state and the survivors in an exit record.
    pub(super) fn apply_exit_record(&mut self, record: &ExitRecord) {
        self.detach_process();
        self.execution.journal_end.send_modify(|mark| {
            mark.end = mark.end.max(record.output_end);
        });
        if !record.survivors.is_empty() {
            self.execution.live.send_modify(|live| {
                live.survivors.clone_from(&record.survivors);
            });
        }
    }

    /// Handles new output up to `end`.
    pub(super) async fn on_output(&mut self, end: u64) {
        self.execution.journal_end.send_if_modified(|mark| {
            let grown = end > mark.end;
            mark.end = mark.end.max(end);
            grown
        });
        self.step(ProcessEvent::Output { end }.into()).await;
        self.monitor_output(end).await;
        self.update_mirror();
        self.trim(end).await;
    }

    /// Reads the journal's end where no notification reports it.
    pub(super) async fn refresh_journal_end(&mut self) {
        let end = self.execution.journal().ok().and_then(|it| it.end().ok());
        if let Some(end) = end {
            self.on_output(end).await;
        }
        self.close_idle_journal();
    }

    /// Where nothing has reported the end of the output, and nothing will: the journal has it.
    pub(super) async fn read_last_output_end(&mut self) {
        let end = self.execution.journal().ok().and_then(|it| it.end().ok());
        let Some(end) = end else {
            return;
        };
        self.execution
            .journal_end
            .send_modify(|mark| mark.end = mark.end.max(end));
        self.step(ProcessEvent::Output { end }.into()).await;
    }

    /// Closes the journal files when nothing reads the output.
    pub(super) fn close_idle_journal(&mut self) {
        if !self.watches_output {
            self.journal = None;
            self.mirror = None;
        }
    }

    /// The last step: writes everything and wakes every waiter.
    pub(super) async fn finish(&mut self) {
        self.detach_process();
        self.fail_writes();
        self.stop_monitor();
        self.flush_events();
        self.update_mirror();
        self.recorder.close();
        if self.supervisor.is_over() {
            retention::retire(&self.core, &self.execution);
        }
        self.execution.mark_driver_done();
        if !self.execution.unwritten.lock().is_empty() {
            self.core.unwritten.add(self.execution.id);
        }
    }
}

/// The step at which a spawn failed before it began.
const fn failed_step(error: &SpawnError) -> &'static str {
    match error {
        SpawnError::Zygote(_) => "spawn",
        SpawnError::Container(_) => "container",
        SpawnError::PlanTooLarge { .. } => PLAN_STEP,
        SpawnError::Storage(_) => STEP_STORAGE,
        SpawnError::OpenFiles { .. } => STEP_OPEN_FILES,
    }
}
