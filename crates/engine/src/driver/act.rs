//! Carrying out effects.

use std::sync::Arc;

use ostler_model::{Event, EventRecord, Timestamp};
use ostler_process::{
    ControlError, ExitRecord, Order, Outcome, STEP_OPEN_FILES, STEP_STORAGE, SpawnError,
};
use tokio::time::Instant;

use crate::error::PLAN_STEP;
use crate::info::Notice;
use crate::space;
use crate::supervisor::{Effect, Input};

use super::run::{Driver, plan};

/// How often a stop is handed over before it counts as lost; each try may take
/// [`ORDER_TIMEOUT_MS`](ostler_process::place::ORDER_TIMEOUT_MS).
const STOP_TRIES: u32 = 3;

impl Driver {
    /// Has the supervisor decide, and carries it out, with all that follows from it.
    pub(super) async fn feed(&mut self, input: Input) {
        self.feed_at(Timestamp::now(), input).await;
    }

    /// As [`Driver::feed`], with a time told by somebody else.
    pub(super) async fn feed_at(&mut self, now: Timestamp, input: Input) {
        self.take_in(now, input).await;
        self.leave_record().await;
    }

    /// As [`Driver::feed`], but for the writing down: [`Driver::leave_record`] is to follow.
    pub(super) async fn take_in(&mut self, now: Timestamp, input: Input) {
        let effects = self.supervisor.handle(now, input);
        self.act(effects).await;
        while let Some(input) = self.inbox.pop_front() {
            let effects = self.supervisor.handle(Timestamp::now(), input);
            self.act(effects).await;
        }
    }

    /// Writes down what was published, if that cannot wait.
    pub(super) async fn leave_record(&mut self) {
        if self.recorder.wants_writing() {
            // Whoever waits for what was published is answered before anything is written.
            tokio::task::yield_now().await;
            self.write_down();
        }
    }

    async fn act(&mut self, effects: Vec<Effect>) {
        let mut records = Vec::new();
        for effect in effects {
            if let Effect::Record(record) = effect {
                records.push(record);
                continue;
            }
            self.publish(std::mem::take(&mut records));
            match effect {
                Effect::Record(_) => {}
                Effect::Spawn { attempt } => self.spawn(attempt).await,
                Effect::Send(order) => self.send_stop(order).await,
                Effect::SetTimer { timer, after } => {
                    self.timer = Some((Instant::now() + after, timer));
                }
                Effect::ClearTimer(_) => self.timer = None,
            }
        }
        self.publish(records);
    }

    async fn spawn(&mut self, attempt: u32) {
        self.drop_birth();
        let planned = match plan(self, attempt) {
            Some(plan) => Ok(plan),
            None => self.plan_again(attempt),
        };
        let born = match planned {
            Ok(plan) => self.core.place.spawn(plan).await,
            Err(message) => Err(SpawnError::Keeper(message)),
        };
        let born = born.map_err(|error| match error {
            SpawnError::Storage(what) => SpawnError::Storage(self.with_space(&what)),
            SpawnError::Keeper(_)
            | SpawnError::PlanTooLarge { .. }
            | SpawnError::OpenFiles { .. } => error,
        });
        let input = match born {
            Ok(birth) => {
                self.take_birth(birth);
                Input::Born
            }
            Err(error) => Input::NotBorn {
                step: step(&error).to_owned(),
                message: error.to_string(),
            },
        };
        self.inbox.push_back(input);
    }

    /// What a refused write of the state directory is told with.
    fn with_space(&self, what: &str) -> String {
        let space = space::describe(&self.core.settings.state_dir);
        format!("{what}; {space}")
    }

    /// As the shim reported it; where the state directory could not be written, with how much
    /// room there is.
    pub(super) fn explained(&self, mut record: ExitRecord) -> ExitRecord {
        if let Outcome::NotBorn { step, message, .. } = &mut record.outcome
            && step == STEP_STORAGE
        {
            *message = self.with_space(message);
        }
        record
    }

    /// Plans from the spec alone, after an earlier engine admitted it.
    fn plan_again(&mut self, attempt: u32) -> Result<ostler_process::LaunchPlan, String> {
        let draft = crate::admission::again(&self.core.settings, &self.entry.spec)
            .map_err(|error| error.to_string())?;
        self.draft = Some(draft);
        plan(self, attempt).ok_or_else(|| "its spec cannot be written as JSON".to_owned())
    }

    /// Hands an order over and tells whether it arrived.
    pub(super) async fn send(&self, order: Order) -> Result<(), ControlError> {
        match &self.control {
            Some(control) => control.send(order).await,
            None => Err(ControlError::Ended),
        }
    }

    /// Passes an order that needs no decision.
    pub(super) async fn pass(&mut self, order: Order) -> Result<(), ControlError> {
        let effects = self.supervisor.handle(Timestamp::now(), Input::Pass(order));
        let mut sent = Err(ControlError::Ended);
        for effect in effects {
            if let Effect::Send(order) = effect {
                sent = self.send(order).await;
            }
        }
        sent
    }

    /// A stop must arrive, and its reason must be on disk before it does.
    async fn send_stop(&mut self, order: Order) {
        self.write_down();
        for _ in 0..STOP_TRIES {
            match self.send(order.clone()).await {
                Ok(()) | Err(ControlError::Ended) => return,
                Err(error @ (ControlError::Busy | ControlError::Unsupported(_))) => {
                    tracing::warn!(id = %self.entry.id, %error, "a stop did not arrive");
                }
            }
        }
    }

    /// Tells everybody, in one step.
    fn publish(&mut self, records: Vec<EventRecord>) {
        if records.is_empty() {
            return;
        }
        let finished = records
            .iter()
            .any(|record| matches!(record.event, Event::Finished { .. }));
        if finished {
            // Whoever sees the end may start the next one in its place.
            self.core.registry.finished(self.entry.id);
        }
        let drops = |record: &EventRecord| matches!(record.event, Event::Trimmed { .. });
        if finished || records.iter().any(drops) {
            // Files that are gone give their space back once nobody has them open.
            self.entry.close_reader();
        }
        let sent_at = self.writes.sent_at();
        self.entry.live.send_modify(|live| {
            for record in &records {
                live.state.apply(record);
                self.entry.turns.note(record);
                if matches!(record.event, Event::Input { .. }) {
                    live.input_at = Some(sent_at.min(record.offset));
                }
            }
        });
        if finished {
            self.core.desk.execution_ended(self.entry.id);
            self.entry.marks.send_modify(|mark| mark.finished = true);
        }
        if self.core.notices.receiver_count() > 0 {
            for record in &records {
                let notice = Notice {
                    id: self.entry.id,
                    owner: self.entry.owner(),
                    record: Arc::new(record.clone()),
                };
                // Fails only when the last subscriber has just gone.
                let _gone = self.core.notices.send(notice).is_err();
            }
        }
        self.recorder.push(records);
    }

    /// Writes what is pending to the ledger and the execution's events.
    pub(super) fn write_down(&mut self) {
        self.recorder.write(&self.core, &self.entry);
    }

    /// Takes over what an exit record says of the journal and of survivors.
    pub(super) fn note_end(&mut self, record: &ExitRecord) {
        self.drop_birth();
        self.entry.marks.send_modify(|mark| {
            mark.end = mark.end.max(record.output_end);
        });
        if !record.survivors.is_empty() {
            self.entry.live.send_modify(|live| {
                live.survivors.clone_from(&record.survivors);
            });
        }
    }

    /// Output is there up to `end`.
    pub(super) async fn output(&mut self, end: u64) {
        self.entry.marks.send_if_modified(|mark| {
            let grown = end > mark.end;
            mark.end = mark.end.max(end);
            grown
        });
        self.feed(Input::Output { end }).await;
        self.look_at_output(end).await;
        self.mirror();
        self.trim(end).await;
    }

    /// Learns the journal's end where nobody tells it.
    pub(super) async fn look_at_journal(&mut self) {
        let end = self.entry.journal().ok().and_then(|it| it.end().ok());
        if let Some(end) = end {
            self.output(end).await;
        }
        self.let_go_of_journal();
    }

    /// Nothing is held open for output that nobody looks at.
    pub(super) fn let_go_of_journal(&mut self) {
        if !self.watching {
            self.journal = None;
            self.mirror = None;
        }
    }

    /// The last thing: everything on disk, nobody left waiting.
    pub(super) async fn settle(&mut self) {
        self.drop_birth();
        self.fail_writes();
        self.end_looking();
        self.write_down();
        self.mirror();
        self.recorder.close();
        if self.supervisor.is_over() {
            self.core.retire(&self.entry);
        }
        self.entry.settle();
        if !self.entry.unwritten.lock().is_empty() {
            self.core.unwritten.add(self.entry.id);
        }
    }
}

/// The step at which a birth failed before it began.
const fn step(error: &SpawnError) -> &'static str {
    match error {
        SpawnError::Keeper(_) => "spawn",
        SpawnError::PlanTooLarge { .. } => PLAN_STEP,
        SpawnError::Storage(_) => STEP_STORAGE,
        SpawnError::OpenFiles { .. } => STEP_OPEN_FILES,
    }
}
