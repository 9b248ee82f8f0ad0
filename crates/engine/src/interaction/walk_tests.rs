//! Random walks over the interaction table: questions, answers, deliveries, deadlines and ends in
//! any order, and the invariants. A failing walk prints its seed; set `OSTLER_WALK_SEED` to repeat
//! it.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use fastrand::Rng;
use ostler_model::{ExecutionId, Owner, Principal, QuestionSource, SessionName, Timestamp};
use tokio::time::Instant;

use super::table::{AnswerDelivery, ClockSnapshot, InteractionTable, MAX_ENDED_TOTAL, MAX_OPEN};
use super::watch::KnownInteractions;
use super::{
    CancelReason, Interaction, InteractionError, InteractionId, InteractionNews,
    InteractionOutcome, InteractionState, InteractionTransition, Question, QuestionKind,
};

const STEPS: u64 = 12_000;
const STEPS_PER_WALK: u64 = 400;
const SESSIONS: u64 = 3;
const EXECUTIONS: u64 = 4;

/// What one walk has shown so far.
struct Walk {
    book: InteractionTable,
    now: ClockSnapshot,
    executions: Vec<ExecutionId>,
    /// Deliveries under way.
    under_way: BTreeMap<InteractionId, AnswerDelivery>,
    /// How each one ended, once it had.
    ended: BTreeMap<InteractionId, (InteractionState, InteractionOutcome)>,
    /// The interactions whose line a command accepted.
    arrived: BTreeSet<InteractionId>,
    ids: Vec<InteractionId>,
    /// The interactions of which the ledger learned that they were opened, and those that ended.
    recorded: (BTreeSet<InteractionId>, BTreeSet<InteractionId>),
    watcher: KnownInteractions,
    log: Vec<String>,
}

impl Walk {
    fn new() -> Self {
        Self {
            book: InteractionTable::default(),
            now: ClockSnapshot {
                at: Timestamp::from_second(1_700_000_000).expect("a valid second"),
                instant: Instant::now(),
            },
            executions: (0..EXECUTIONS).map(|_| ExecutionId::mint()).collect(),
            under_way: BTreeMap::new(),
            ended: BTreeMap::new(),
            arrived: BTreeSet::new(),
            ids: Vec::new(),
            recorded: Default::default(),
            watcher: KnownInteractions::default(),
            log: Vec::new(),
        }
    }

    fn step(&mut self, rng: &mut Rng) -> Result<(), String> {
        let by = Principal::unix(1_000);
        match rng.u64(..17) {
            0..=4 => self.ask(rng)?,
            5..=7 => {
                let id = self.any(rng);
                let was = self.open_unclaimed(id);
                let answered = self.book.answer(self.now, id, by, "yes".to_owned());
                self.log.push(format!("answer {id}: {answered:?}"));
                if answered.is_ok() != was {
                    return Err(format!("{id} took an answer: {answered:?}, open: {was}"));
                }
                self.send(answered.ok().flatten())?;
            }
            8..=10 => self.deliver(rng)?,
            11 => {
                let id = self.any(rng);
                let was = self.open_unclaimed(id);
                let reason = CancelReason::Requested { by, reason: None };
                let cancelled = self.book.cancel(id, reason);
                self.log.push(format!("cancel {id}: {cancelled:?}"));
                if cancelled.is_ok() != was {
                    return Err(format!("{id} was cancelled: {cancelled:?}, open: {was}"));
                }
            }
            12 => {
                let id = rng.choice(&self.executions).cloned().expect("some");
                self.log.push(format!("{id} ends"));
                let of_it = |it: &Interaction| it.question.execution == Some(id);
                self.book.cancel_where(of_it, &CancelReason::ExecutionEnded);
                let open = self.book.iter().filter(|it| it.is_open() && of_it(it));
                if let Some(left) = open
                    .map(|it| it.id)
                    .find(|id| !self.under_way.contains_key(id))
                {
                    return Err(format!("{left} survived its execution"));
                }
            }
            13 => {
                let session = owner(rng).session;
                self.log.push(format!("{session:?} ends"));
                let theirs = |it: &Interaction| it.owner.session == session;
                self.book.cancel_where(theirs, &CancelReason::SessionEnded);
            }
            14 => {
                let id = rng.choice(&self.executions).cloned().expect("some");
                let owner = owner(rng);
                self.log.push(format!("{id} passes to {:?}", owner.session));
                self.book.transfer_to(id, &owner);
            }
            _ => {
                let gone = Duration::from_millis(rng.u64(..400));
                self.now.instant += gone;
                self.now.at += gone;
                self.expire()?;
            }
        }
        self.check()?;
        self.record()?;
        if rng.bool() {
            self.watch()?;
        }
        Ok(())
    }

    /// Each is opened once and ends once, in this order, in the ledger.
    fn record(&mut self) -> Result<(), String> {
        let (opened, ended) = &mut self.recorded;
        for InteractionTransition {
            interaction: it,
            outcome,
        } in self.book.take_transitions()
        {
            let is_new = match outcome {
                None => opened.insert(it.id),
                Some(_) => opened.contains(&it.id) && ended.insert(it.id),
            };
            if !is_new || it.is_open() != outcome.is_none() {
                return Err(format!("the ledger gets {it:?}, {outcome:?}"));
            }
        }
        let missing = self.ids.iter().find(|id| !opened.contains(id));
        let missing = missing.or_else(|| self.ended.keys().find(|id| !ended.contains(id)));
        missing.map_or(Ok(()), |id| Err(format!("the ledger misses {id}")))
    }

    /// A watcher of one session is told of each opening and each end once, and knows what is open.
    fn watch(&mut self) -> Result<(), String> {
        let visible = |it: &Interaction| it.owner == owner_of(0);
        let before = self.watcher.open.clone();
        let known = &self.watcher;
        let changes = self
            .book
            .changes_since(known.position, &known.open, visible);
        let mut open = before;
        for news in self.watcher.update(changes) {
            let is_expected = match &news {
                InteractionNews::Opened(it) => it.is_open() && open.insert(it.id),
                InteractionNews::Ended(it) => !it.is_open() && open.remove(&it.id),
                InteractionNews::Gone(id) => {
                    open.remove(id) && !self.book.get(*id).is_some_and(visible)
                }
            };
            if !is_expected {
                return Err(format!("the watcher is told {news:?}"));
            }
        }
        let now = self.book.iter().filter(|it| it.is_open() && visible(it));
        let now: BTreeSet<InteractionId> = now.map(|it| it.id).collect();
        if open != now {
            return Err(format!("the watcher knows {open:?}, open are {now:?}"));
        }
        Ok(())
    }

    fn ask(&mut self, rng: &mut Rng) -> Result<(), String> {
        let mut question = Question::new(QuestionKind::Confirmation, "well?");
        question.timeout = Duration::from_millis(1 + rng.u64(..2_000));
        question.default = rng.bool().then(|| "no".to_owned());
        if rng.bool() {
            question.source = QuestionSource::Command;
        }
        if rng.bool() {
            question.execution = rng.choice(&self.executions).cloned();
        }
        let owner = owner(rng);
        let open = |it: &&Interaction| it.is_open() && it.owner.session == owner.session;
        let full = self.book.iter().filter(open).count() >= MAX_OPEN;
        let interaction_id = self.book.open(self.now, owner.clone(), question);
        self.log.push(format!("ask: {interaction_id:?}"));
        match interaction_id {
            Ok(interaction_id) if !full => {
                if self
                    .ids
                    .last()
                    .is_some_and(|last| *last >= interaction_id.id)
                {
                    return Err(format!("{} again", interaction_id.id));
                }
                self.ids.push(interaction_id.id);
                Ok(())
            }
            Err(InteractionError::TooMany { .. }) if full => Ok(()),
            other => Err(format!("full: {full}, but {other:?}")),
        }
    }

    fn deliver(&mut self, rng: &mut Rng) -> Result<(), String> {
        let under_way: Vec<InteractionId> = self.under_way.keys().copied().collect();
        let Some(id) = rng.choice(&under_way).cloned() else {
            return Ok(());
        };
        self.under_way.remove(&id);
        let arrived = rng.bool();
        if arrived {
            self.arrived.insert(id);
        }
        let next = self.book.finish_delivery(self.now, id, arrived);
        self.log.push(format!("delivered {id} {arrived}: {next:?}"));
        if arrived && self.book.get(id).is_some_and(Interaction::is_open) {
            return Err(format!("{id} was answered and is open"));
        }
        // A second word on the same delivery changes nothing.
        if next.is_none() && self.book.finish_delivery(self.now, id, true).is_some() {
            return Err(format!("{id} is delivered out of nothing"));
        }
        self.send(next)
    }

    fn expire(&mut self) -> Result<(), String> {
        let due = self.book.expire(self.now);
        self.log.push(format!("expire: {due:?}"));
        if self
            .book
            .next_deadline()
            .is_some_and(|at| at <= self.now.instant)
        {
            return Err("a deadline in the past is left".to_owned());
        }
        due.into_iter().try_for_each(|it| self.send(Some(it)))
    }

    fn send(&mut self, delivery: Option<AnswerDelivery>) -> Result<(), String> {
        let Some(delivery) = delivery else {
            return Ok(());
        };
        let id = delivery.id;
        if self.ended.contains_key(&id) || self.arrived.contains(&id) {
            return Err(format!("{id} is answered after its end"));
        }
        match self.under_way.insert(id, delivery) {
            Some(_) => Err(format!("two answers to {id} are under way")),
            None => Ok(()),
        }
    }

    fn any(&self, rng: &mut Rng) -> InteractionId {
        let recent = self.ids.len().saturating_sub(24);
        let id = rng.choice(&self.ids[recent..]).cloned();
        id.unwrap_or_else(|| InteractionId::parse("i999999").expect("an id"))
    }

    fn open_unclaimed(&self, id: InteractionId) -> bool {
        let open = self.book.get(id).is_some_and(Interaction::is_open);
        open && !self.under_way.contains_key(&id)
    }

    fn check(&mut self) -> Result<(), String> {
        let mut open: BTreeMap<Option<SessionName>, usize> = BTreeMap::new();
        for it in self.book.iter() {
            if it.is_open() {
                // Those of executions may have been passed to it beyond the limit.
                if it.question.execution.is_none() {
                    *open.entry(it.owner.session.clone()).or_default() += 1;
                }
                if self.book.outcome(it.id).is_some() || self.ended.contains_key(&it.id) {
                    return Err(format!("{} is open and has ended", it.id));
                }
                continue;
            }
            let outcome = self.book.outcome(it.id);
            let outcome = outcome.ok_or_else(|| format!("{} ended without a word", it.id))?;
            if let Some((state, actual)) = self.ended.get(&it.id) {
                if (state, actual) != (&it.state, outcome) {
                    return Err(format!("{} ended twice: {state:?}, {actual:?}", it.id));
                }
                continue;
            }
            let end = (it.state.clone(), outcome.clone());
            if !agree(&end) {
                return Err(format!("{}: {end:?}", it.id));
            }
            let bound = it.question.execution.is_some();
            let took = matches!(
                end.1,
                InteractionOutcome::Answered(_) | InteractionOutcome::Default(_)
            );
            if bound && took != self.arrived.contains(&it.id) {
                return Err(format!("{} {end:?}, but what arrived differs", it.id));
            }
            self.ended.insert(it.id, end);
        }
        if let Some((session, count)) = open.iter().find(|(_, count)| **count > MAX_OPEN) {
            return Err(format!("{count} open in {session:?}"));
        }
        let kept = self.book.iter().filter(|it| !it.is_open()).count();
        if kept > MAX_ENDED_TOTAL {
            return Err(format!("{kept} are remembered"));
        }
        Ok(())
    }

    /// Whatever happened so far: with time, everything ends.
    fn end(&mut self, rng: &mut Rng) -> Result<(), String> {
        self.now.instant += Duration::from_secs(10);
        self.expire()?;
        while !self.under_way.is_empty() {
            self.deliver(rng)?;
            self.check()?;
        }
        match self.book.iter().find(|it| it.is_open()) {
            Some(left) => Err(format!("{} never ends", left.id)),
            None if self.book.next_deadline().is_some() => Err("a deadline is left".to_owned()),
            None => Ok(()),
        }
    }
}

/// Whether state and outcome agree.
fn agree((state, outcome): &(InteractionState, InteractionOutcome)) -> bool {
    match (state, outcome) {
        (InteractionState::Answered { .. }, InteractionOutcome::Answered(_)) => true,
        (InteractionState::Cancelled { reason }, InteractionOutcome::Cancelled(actual)) => {
            reason == actual
        }
        (InteractionState::TimedOut { took_default }, InteractionOutcome::Default(_)) => {
            *took_default
        }
        (InteractionState::TimedOut { took_default }, InteractionOutcome::TimedOut) => {
            !*took_default
        }
        (
            InteractionState::Open
            | InteractionState::Answered { .. }
            | InteractionState::Cancelled { .. }
            | InteractionState::TimedOut { .. },
            InteractionOutcome::Answered(_)
            | InteractionOutcome::Default(_)
            | InteractionOutcome::Cancelled(_)
            | InteractionOutcome::TimedOut,
        ) => false,
    }
}

fn owner(rng: &mut Rng) -> Owner {
    owner_of(rng.u64(..SESSIONS))
}

fn owner_of(session: u64) -> Owner {
    Owner {
        principal: Principal::unix(1_000),
        project: None,
        session: Some(SessionName(format!("s{session}"))),
        task: None,
        channel: ostler_model::RequestChannel::Local,
    }
}

#[test]
fn random_walks_hold_every_property() {
    walk_at_random(STEPS);
}

#[test]
fn full_random_walks_hold_every_property() {
    walk_at_random(20 * STEPS);
}

fn walk_at_random(steps: u64) {
    let given = std::env::var("OSTLER_WALK_SEED").ok();
    let seed = given.and_then(|seed| seed.parse().ok()).unwrap_or_else(|| {
        let now = Timestamp::now().as_nanosecond();
        u64::try_from(now & i128::from(u64::MAX)).expect("masked to 64 bits")
    });
    println!("OSTLER_WALK_SEED={seed}");
    let mut rng = Rng::with_seed(seed);
    for walk_number in 0..steps / STEPS_PER_WALK {
        let mut walk = Walk::new();
        let steps = (0..STEPS_PER_WALK).try_for_each(|_| walk.step(&mut rng));
        if let Err(why) = steps.and_then(|()| walk.end(&mut rng)) {
            let from = walk.log.len().saturating_sub(40);
            panic!(
                "OSTLER_WALK_SEED={seed}, walk {walk_number}: {why}\n{:#?}",
                &walk.log[from..]
            );
        }
    }
}
