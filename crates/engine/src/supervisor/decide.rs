//! The supervisor itself.

use std::time::Duration;

use ostler_model::event::{DegradedAbility, TrimReason};
use ostler_model::{
    Cause, Ending, Event, EventRecord, Lifetime, LostReason, State, StopOrder, Timestamp,
};
use ostler_process::{Ladder, Order};

use super::effect::{Effect, Timer};
use super::ending;
use super::input::Input;
use crate::readiness::Readiness;

/// Where the attempts of an execution are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    /// Nothing happened yet, or recovery has not said what was found.
    Idle,
    /// A birth was asked for and not yet begun; a stop waits with this grace.
    Spawning { grace: Option<Duration> },
    /// A shim takes orders; the ladder begins or began with this grace.
    Live { grace: Option<Duration> },
    /// Between two attempts.
    Waiting,
    /// Finished.
    Over,
}

/// Why an attempt is ended for the next one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Again {
    /// Somebody asked: it begins at once.
    Asked,
    /// Its health rule wants it: that counts as a failure.
    Ill,
}

/// The policy of one execution.
#[derive(Debug, Clone)]
pub struct Supervisor {
    pub(super) lifetime: Lifetime,
    grace: Duration,
    pub(super) state: State,
    pub(super) stage: Stage,
    /// The attempt that was begun last.
    pub(super) attempt: u32,
    /// Attempts since the last stable one.
    pub(super) tries: u32,
    /// The attempt whose start is on record.
    started: u32,
    /// The attempt whose end is on record, and how its leader ended.
    pub(super) ended: Option<(u32, Event)>,
    journal_failed: bool,
    journal_returned: bool,
    /// Bytes of the attempt that are on record as lost to a full disk.
    pub(super) lost_bytes: u64,
    /// What is known of a service's readiness, while an attempt of one runs.
    pub(super) readiness: Option<Readiness>,
    /// This attempt is being ended for the next one.
    pub(super) again: Option<(u32, Again)>,
    /// Where the prompt stands that nothing was typed for since.
    prompted: Option<u64>,
    pub(super) offset: u64,
    last_at: Timestamp,
    pub(super) effects: Vec<Effect>,
}

impl Supervisor {
    /// For a new execution; `grace` is used where a stop names none.
    #[must_use]
    pub fn new(lifetime: Lifetime, grace: Duration) -> Self {
        Self {
            lifetime,
            grace,
            state: State::default(),
            stage: Stage::Idle,
            attempt: 0,
            tries: 0,
            started: 0,
            ended: None,
            journal_failed: false,
            journal_returned: false,
            lost_bytes: 0,
            readiness: None,
            again: None,
            prompted: None,
            offset: 0,
            last_at: Timestamp::UNIX_EPOCH,
            effects: Vec::new(),
        }
    }

    /// For an execution an earlier engine recorded this much of. Its first input says what
    /// recovery found.
    #[must_use]
    pub fn resume(lifetime: Lifetime, grace: Duration, records: &[EventRecord]) -> Self {
        let mut supervisor = Self::new(lifetime, grace);
        for record in records {
            supervisor.remember(record);
            supervisor.state.apply(record);
        }
        if supervisor.state.is_finished() {
            supervisor.stage = Stage::Over;
        }
        supervisor
    }

    /// What was observed so far: the fold of every event recorded.
    #[must_use]
    pub const fn state(&self) -> &State {
        &self.state
    }

    /// The highest offset on record.
    #[must_use]
    pub(crate) const fn offset(&self) -> u64 {
        self.offset
    }

    /// Whether it has ended, finally.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.stage == Stage::Over
    }

    /// Whether orders can be handed over now.
    #[must_use]
    pub const fn is_live(&self) -> bool {
        matches!(self.stage, Stage::Live { .. })
    }

    /// Takes one input in, at `now`, and answers what to do.
    pub fn handle(&mut self, now: Timestamp, input: Input) -> Vec<Effect> {
        if !self.is_over() {
            self.take(now, input);
        }
        std::mem::take(&mut self.effects)
    }

    fn take(&mut self, now: Timestamp, input: Input) {
        match input {
            Input::Admitted { missing } => self.admitted(now, missing),
            Input::Born => self.born(),
            Input::NotBorn { step, message } => self.not_born(now, (step, None, message)),
            Input::Started { at, pid } => self.started(at, pid),
            Input::Output { end } => self.offset = self.offset.max(end),
            Input::ClockRanOut { clock } => self.clock(now, StopOrder::TimedOut { clock }),
            Input::JournalFailed { detail } => self.journal_failed(now, detail),
            Input::JournalReturned { missing } => self.journal_returned(now, &missing),
            Input::Detached { status } => self.detached(now, status),
            Input::Seen { elapsed, seen } => self.seen(now, elapsed, seen),
            Input::Restart { by, reason } => self.restart(now, (by, reason)),
            Input::Exited(record) => self.exited(now, &record),
            Input::Gone => self.gone(now),
            Input::Stop { order, grace } => self.stop(now, order, grace),
            Input::Pass(order) => self.pass(order),
            Input::Freeze { frozen } => self.freeze(frozen),
            Input::Frozen { frozen, by } => self.frozen(now, frozen, by),
            Input::LimitHit { limit } => self.limit_hit(now, limit),
            Input::InputTaken { by, len } => {
                self.prompted = None;
                self.note(now, Event::Input { by, len });
            }
            Input::PromptSeen { text, secret, end } => self.prompt(now, (text, secret), end),
            Input::PromptAnswered { by } => {
                self.prompted = None;
                self.note(now, Event::PromptAnswered { by });
            }
            Input::Resized { size } => self.note(now, Event::Resized { size }),
            Input::LeaseTaken { by } => self.note(now, Event::LeaseTaken { by }),
            Input::Trimmed { from, to, reason } => {
                self.note(now, Event::Trimmed { from, to, reason });
            }
            Input::Timer(Timer::Backoff) => self.backoff_over(),
            Input::Adopted {
                attempt,
                pid,
                started_at,
            } => self.adopted(now, (attempt, pid, started_at)),
            Input::Lost { reason, attempt } => self.lost(now, reason, attempt),
        }
    }

    fn admitted(&mut self, now: Timestamp, missing: Vec<ostler_model::Degraded>) {
        if self.stage == Stage::Idle && self.state.events == 0 {
            self.record(now, Event::Created { missing });
            self.spawn();
        }
    }

    pub(super) fn spawn(&mut self) {
        self.attempt += 1;
        self.tries += 1;
        self.stage = Stage::Spawning { grace: None };
        self.effects.push(Effect::Spawn {
            attempt: self.attempt,
        });
    }

    fn born(&mut self) {
        if let Stage::Spawning { grace } = self.stage {
            self.stage = Stage::Live { grace };
            if let Some(grace) = grace {
                self.effects.push(Effect::Send(Order::Stop { grace }));
            }
        }
    }

    pub(super) fn has_attempt(&self) -> bool {
        matches!(self.stage, Stage::Spawning { .. } | Stage::Live { .. })
    }

    pub(super) fn started(&mut self, at: Timestamp, pid: u32) {
        if self.has_attempt() && self.started < self.attempt {
            let attempt = self.attempt;
            self.record(at, Event::Started { attempt, pid });
            self.begin_readiness();
        }
    }

    fn clock(&mut self, now: Timestamp, order: StopOrder) {
        if self.is_live() && self.state.stopping.is_none() {
            self.stage = Stage::Live {
                grace: Some(self.grace),
            };
            self.record(now, Event::Stopping { order });
        }
    }

    pub(super) fn journal_failed(&mut self, now: Timestamp, detail: String) {
        if !std::mem::replace(&mut self.journal_failed, true) {
            let ability = DegradedAbility::Journal;
            self.note(now, Event::Degraded { ability, detail });
        }
    }

    /// Told in words the first time; what is gone, every time.
    fn journal_returned(&mut self, now: Timestamp, missing: &[(u64, u64)]) {
        for &(from, to) in missing {
            let reason = TrimReason::DiskFull;
            self.note(now, Event::Trimmed { from, to, reason });
        }
        if !std::mem::replace(&mut self.journal_returned, true) {
            let lost = match missing.iter().map(|(from, to)| to - from).sum::<u64>() {
                0 => "nothing was lost".to_owned(),
                lost => format!("{lost} bytes of it were lost meanwhile"),
            };
            let ability = DegradedAbility::Journal;
            let detail = format!("output goes to disk again; {lost}");
            self.note(now, Event::Degraded { ability, detail });
        }
    }

    /// However many look at it, a prompt is told once.
    fn prompt(&mut self, now: Timestamp, (text, secret): (String, bool), end: u64) {
        self.offset = self.offset.max(end);
        if self.is_live() && self.prompted.replace(self.offset) != Some(self.offset) {
            self.note(now, Event::PromptDetected { text, secret });
        }
    }

    /// Records what needs no decision, once there is something to record it for.
    pub(super) fn note(&mut self, now: Timestamp, event: Event) {
        if self.state.events > 0 {
            self.record(now, event);
        }
    }

    fn pass(&mut self, order: Order) {
        if self.is_live() {
            self.effects.push(Effect::Send(order));
        }
    }

    fn stop(&mut self, now: Timestamp, order: StopOrder, grace: Duration) {
        if self.state.events == 0 {
            return;
        }
        let first = self.state.stopping.is_none();
        if first {
            self.record(now, Event::Stopping { order });
        }
        match self.stage {
            Stage::Spawning { grace: earlier } => {
                let grace = earlier.map_or(grace, |earlier| earlier.min(grace));
                self.stage = Stage::Spawning { grace: Some(grace) };
            }
            Stage::Live { grace: earlier } => {
                if earlier.is_none_or(|earlier| grace < earlier) {
                    self.stage = Stage::Live { grace: Some(grace) };
                    self.effects.push(Effect::Send(Order::Stop { grace }));
                }
            }
            Stage::Waiting => {
                self.effects.push(Effect::ClearTimer(Timer::Backoff));
                self.finish_stopped(now);
            }
            Stage::Idle | Stage::Over => {}
        }
    }

    pub(super) fn not_born(
        &mut self,
        now: Timestamp,
        (step, errno, message): (String, Option<i32>, String),
    ) {
        if !self.has_attempt() {
            return;
        }
        let attempt = self.attempt;
        self.record(
            now,
            Event::SpawnFailed {
                attempt,
                step: step.clone(),
                errno,
                message: message.clone(),
            },
        );
        if self.state.stopping.is_some() {
            return self.finish_stopped(now);
        }
        let ending = Ending::without_status(Cause::SpawnFailed {
            step,
            errno,
            message,
        });
        // A first attempt that cannot be born is a mistake in the request, not a crash.
        if attempt > 1 && self.may_restart(false) {
            return self.back_off(now, None);
        }
        self.finish(now, ending);
    }

    fn backoff_over(&mut self) {
        if self.stage == Stage::Waiting {
            self.spawn();
        }
    }

    fn gone(&mut self, now: Timestamp) {
        if self.has_attempt() {
            self.lose_attempt(now, LostReason::ShimKilled);
        }
    }

    fn adopted(&mut self, now: Timestamp, (attempt, pid, started_at): (u32, u32, Timestamp)) {
        if self.stage != Stage::Idle || self.state.events == 0 {
            return;
        }
        self.attempt = self.attempt.max(attempt);
        self.tries = self.tries.max(1);
        self.stage = Stage::Live { grace: None };
        self.started(started_at, pid);
        self.resume_readiness();
        self.record(now, Event::Adopted { attempt });
        // What was to be ended may be another attempt than the one that was found.
        let found = self.attempt;
        self.again = self.again.filter(|(ended, _)| *ended == found);
        if self.state.stopping.is_some() || self.again.is_some() {
            self.end_attempt();
        }
    }

    /// Has the attempt go down the ladder.
    pub(super) fn end_attempt(&mut self) {
        let grace = self.grace;
        self.stage = Stage::Live { grace: Some(grace) };
        self.effects.push(Effect::Send(Order::Stop { grace }));
    }

    fn lost(&mut self, now: Timestamp, reason: LostReason, attempt: u32) {
        if self.stage != Stage::Idle || self.state.events == 0 {
            return;
        }
        self.attempt = self.attempt.max(attempt);
        // What was recorded before the engine was killed is known all the same.
        let recorded = self.ended.take().filter(|(of, _)| *of == self.attempt);
        let Some((
            _,
            Event::Exited {
                status,
                out_of_memory,
                ..
            },
        )) = recorded
        else {
            self.tries = self.tries.max(1);
            return self.lose_attempt(now, reason);
        };
        self.tries = self.tries.max(1);
        let ladder = self.state.stopping.as_ref().map(|_| Ladder::Ordered);
        self.after_exit(now, (status, ladder, out_of_memory), Duration::ZERO);
    }

    /// Nobody can say how the attempt ended. What is meant to stay begins again as after any
    /// failure, where its supervisor process alone is gone: not after a reboot, and not without
    /// its files.
    fn lose_attempt(&mut self, now: Timestamp, reason: LostReason) {
        let again = self.again.take();
        let alone = match reason {
            LostReason::ShimKilled | LostReason::NoRecord => true,
            LostReason::Reboot | LostReason::FilesDamaged | LostReason::EngineKilled => false,
        };
        if matches!(again, Some((_, Again::Asked))) {
            self.tries = 0;
        }
        if alone && self.state.stopping.is_none() && self.may_restart(false) {
            return self.back_off(now, Some(reason));
        }
        self.finish_lost(now, reason);
    }

    fn finish_lost(&mut self, now: Timestamp, reason: LostReason) {
        self.finish(now, Ending::without_status(Cause::Lost { reason }));
    }

    /// Ends as the stop decision says, with the last status on record if there is one.
    pub(super) fn finish_stopped(&mut self, now: Timestamp) {
        let cause = self
            .state
            .stopping
            .as_ref()
            .map_or(Cause::Stopped { reason: None }, ending::ordered);
        self.finish(now, Ending::without_status(cause));
    }

    pub(super) fn finish(&mut self, at: Timestamp, ending: Ending) {
        self.record(at, Event::Finished { ending });
        self.stage = Stage::Over;
    }

    pub(super) fn record(&mut self, at: Timestamp, event: Event) {
        let record = EventRecord {
            seq: self.state.events,
            at: at.max(self.last_at),
            offset: self.offset,
            event,
        };
        self.remember(&record);
        self.state.apply(&record);
        self.effects.push(Effect::Record(record));
    }

    fn remember(&mut self, record: &EventRecord) {
        self.last_at = self.last_at.max(record.at);
        self.offset = self.offset.max(record.offset);
        match &record.event {
            Event::Started { attempt, .. } => {
                // The start of the one to be ended may be told late.
                self.again = self.again.filter(|(ended, _)| ended >= attempt);
                self.started = *attempt;
                self.attempt = self.attempt.max(*attempt);
            }
            Event::SpawnFailed { attempt, .. } => self.attempt = self.attempt.max(*attempt),
            Event::Exited { attempt, .. } => {
                self.lost_bytes = 0;
                self.ended = Some((*attempt, record.event.clone()));
            }
            // The limit on restarts holds across engines.
            Event::Backoff { attempt, .. } => {
                self.lost_bytes = 0;
                self.again = None;
                self.tries = self.tries.max(attempt - 1);
            }
            Event::Restarting { attempt, by, .. } => {
                let why = if by.is_some() {
                    Again::Asked
                } else {
                    Again::Ill
                };
                self.again = Some((*attempt, why));
            }
            Event::Degraded {
                ability: DegradedAbility::Journal,
                ..
            } => self.journal_failed = true,
            Event::Trimmed {
                from,
                to,
                reason: TrimReason::DiskFull,
            } => self.lost_bytes += to.saturating_sub(*from),
            Event::PromptDetected { .. } => self.prompted = Some(record.offset),
            Event::PromptAnswered { .. } | Event::Input { .. } => self.prompted = None,
            Event::Created { .. }
            | Event::Refused { .. }
            | Event::Ports { .. }
            | Event::Stage { .. }
            | Event::Detached { .. }
            | Event::Ready { .. }
            | Event::Health { .. }
            | Event::Resized { .. }
            | Event::Paused { .. }
            | Event::Resumed { .. }
            | Event::LeaseTaken { .. }
            | Event::Sampled { .. }
            | Event::LimitHit { .. }
            | Event::Autorun { .. }
            | Event::Workspace { .. }
            | Event::Degraded { .. }
            | Event::Stopping { .. }
            | Event::Adopted { .. }
            | Event::Trimmed { .. }
            | Event::Finished { .. } => {}
        }
    }
}
