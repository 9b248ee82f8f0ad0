//! Random walks over the supervisor: a million inputs, plausible and not, and the invariants. A
//! failing walk prints its seed; set `OSTLER_WALK_SEED` to repeat it.

use std::time::Duration;

use fastrand::Rng;
use ostler_model::event::DegradedCapability;
use ostler_model::termination::WaitStatus;
use ostler_model::{Capability, MissingCapability};
use ostler_model::{ControlCommand, ExitRecord, KillReason, LeaderOutcome};
use ostler_model::{
    Event, EventRecord, HealthRule, Lifetime, LimitKind, LostReason, Principal, ProcessEvent,
    ReadyCondition, ReadyRule, RestartPolicy, ServicePlan, Signal, State, StopReason, StreamName,
    TermSize, TerminationCause, TimeoutKind, Timestamp, Usage,
};

use super::{Supervisor, SupervisorEffect, SupervisorInput, Timer, termination};
use crate::readiness::{ListeningSocket, ProbeOutcome, ReadinessInput};

const INPUTS: u64 = 1_000_000;
const STEPS_PER_WALK: u64 = 24;
const GRACE: Duration = Duration::from_secs(5);

/// The state of one walk.
struct Walk {
    supervisor: Supervisor,
    lifetime: Lifetime,
    records: Vec<EventRecord>,
    inputs: Vec<(Timestamp, SupervisorInput)>,
    reported: Vec<WaitStatus>,
    spawned: u32,
    now: Timestamp,
}

impl Walk {
    fn new(lifetime: Lifetime) -> Self {
        Self {
            supervisor: Supervisor::new(lifetime.clone(), GRACE),
            lifetime,
            records: Vec::new(),
            inputs: Vec::new(),
            reported: Vec::new(),
            spawned: 0,
            now: Timestamp::from_second(1_700_000_000).expect("a valid second"),
        }
    }

    fn step(&mut self, input: SupervisorInput) -> Result<(), String> {
        self.now += Duration::from_millis(7);
        self.inputs.push((self.now, input.clone()));
        if let SupervisorInput::Process(ProcessEvent::Exited { record, .. }) = &input
            && let LeaderOutcome::Ended { status, .. } = record.outcome
        {
            self.reported.push(status);
        }
        let was_over = self.supervisor.is_over();
        let effects = self.supervisor.handle(self.now, input);
        if was_over && !effects.is_empty() {
            return Err(format!("effects after the end: {effects:?}"));
        }
        for effect in effects {
            self.check(effect)?;
        }
        let fold = State::fold(&self.records);
        if fold != *self.supervisor.state() {
            return Err(format!("the fold is {fold:?}"));
        }
        Ok(())
    }

    fn check(&mut self, effect: SupervisorEffect) -> Result<(), String> {
        let stopping = self.records.iter().find_map(|it| {
            if let Event::Stopping { order } = &it.event {
                return Some(order.clone());
            }
            None
        });
        match effect {
            SupervisorEffect::Spawn { attempt } => {
                if stopping.is_some() {
                    return Err("an attempt after a stop".to_owned());
                }
                self.spawned += 1;
                if attempt != self.spawned {
                    return Err(format!("attempt {attempt} after {}", self.spawned - 1));
                }
                Ok(())
            }
            SupervisorEffect::Send(ControlCommand::Stop { .. })
                if stopping.is_none() && !self.restarts() =>
            {
                Err("a stop was sent and not recorded".to_owned())
            }
            SupervisorEffect::Send(ControlCommand::Freeze(frozen)) => {
                let paused = State::fold(&self.records).paused;
                if paused == frozen {
                    return Err("frozen or thawed twice".to_owned());
                }
                if frozen && stopping.is_some() {
                    return Err("frozen although it must end".to_owned());
                }
                Ok(())
            }
            SupervisorEffect::Record(record) => self.check_record(record, stopping.as_ref()),
            SupervisorEffect::Send(_)
            | SupervisorEffect::SetTimer { .. }
            | SupervisorEffect::ClearTimer(_) => Ok(()),
        }
    }

    fn check_record(
        &mut self,
        record: EventRecord,
        stopping: Option<&StopReason>,
    ) -> Result<(), String> {
        if let Some(last) = self.records.last() {
            if matches!(last.event, Event::Finished { .. }) {
                return Err(format!("recorded after Finished: {record:?}"));
            }
            if record.at < last.at || record.offset < last.offset {
                return Err(format!("{record:?} goes back behind {last:?}"));
            }
        } else if !matches!(record.event, Event::Created { .. }) {
            return Err(format!("{record:?} before Created"));
        }
        if record.seq != self.records.len() as u64 {
            return Err(format!(
                "number {} in place {}",
                record.seq,
                self.records.len()
            ));
        }
        if matches!(record.event, Event::Stopping { .. }) && stopping.is_some() {
            return Err("a second stop decision".to_owned());
        }
        self.check_standstill(&record.event)?;
        self.check_service(&record.event)?;
        if let Event::Started { attempt, .. } | Event::Exited { attempt, .. } = record.event
            && attempt != self.spawned
        {
            return Err(format!("{record:?} during attempt {}", self.spawned));
        }
        if matches!(record.event, Event::PromptDetected { .. })
            && self.unanswered() == Some(record.offset)
        {
            return Err(format!("the same prompt twice: {record:?}"));
        }
        if matches!(record.event, Event::PromptGone {}) && self.unanswered().is_none() {
            return Err(format!("no prompt that could be gone: {record:?}"));
        }
        if let Event::Finished { ending } = &record.event {
            self.check_ending(ending, stopping)?;
        }
        self.records.push(record);
        Ok(())
    }

    /// Whether an attempt is ended in favour of the next one.
    fn restarts(&self) -> bool {
        let mut newest = self.records.iter().rev().map(|it| &it.event);
        let actual =
            newest.find(|it| matches!(it, Event::Restarting { .. } | Event::Backoff { .. }));
        matches!(actual, Some(Event::Restarting { attempt, .. }) if *attempt == self.spawned)
    }

    /// Events of a service are about the running attempt, and each is new.
    fn check_service(&self, event: &Event) -> Result<(), String> {
        let before = State::fold(&self.records);
        let (attempt, is_new) = if let Event::Ports {
            attempt,
            ports,
            url,
        } = event
        {
            (*attempt, (ports, url) != (&before.ports, &before.url))
        } else if let Event::Stage { attempt, stage, .. } = event {
            (*attempt, before.stage < Some(*stage))
        } else if let Event::Ready { attempt, .. } = event {
            (*attempt, true)
        } else if let Event::Detached { attempt, .. } = event {
            (*attempt, !before.detached)
        } else if let Event::Health { ok, .. } = event {
            (self.spawned, before.healthy.unwrap_or(true) != *ok)
        } else {
            return Ok(());
        };
        if self.lifetime.plan().is_none() {
            return Err(format!("{event:?} of what is no service"));
        }
        if attempt != self.spawned || !is_new {
            return Err(format!(
                "{event:?} during {}, old: {before:?}",
                self.spawned
            ));
        }
        let ends = before.stopping.is_some() || self.restarts();
        if ends && !matches!(event, Event::Detached { .. }) {
            return Err(format!("{event:?} of what must end"));
        }
        Ok(())
    }

    /// Pauses and their ends alternate; a limit is recorded once, and what an attempt loses.
    fn check_standstill(&self, event: &Event) -> Result<(), String> {
        let before = State::fold(&self.records);
        if matches!(event, Event::Paused { .. }) && before.paused {
            return Err("paused twice".to_owned());
        }
        if matches!(event, Event::Resumed { .. }) && !before.paused {
            return Err("resumed and not paused".to_owned());
        }
        if let Event::LimitHit { limit } = event
            && before.limits_hit.contains(limit)
        {
            return Err(format!("{limit:?} twice"));
        }
        if let Event::Degraded {
            ability: DegradedCapability::Enforcement(ability),
            ..
        } = event
            && before
                .lost_capabilities
                .iter()
                .any(|it| it.ability == *ability)
        {
            return Err(format!("{ability:?} lost twice"));
        }
        Ok(())
    }

    /// The offset of the prompt that was not answered.
    fn unanswered(&self) -> Option<u64> {
        let actual = self.records.iter().rev().find(|it| {
            matches!(
                it.event,
                Event::PromptDetected { .. }
                    | Event::PromptAnswered { .. }
                    | Event::PromptGone {}
                    | Event::Input { .. }
            )
        })?;
        matches!(actual.event, Event::PromptDetected { .. }).then_some(actual.offset)
    }

    fn check_ending(
        &self,
        ending: &ostler_model::Termination,
        stopping: Option<&StopReason>,
    ) -> Result<(), String> {
        let code = ending.code.map(WaitStatus::Code);
        let status = code.or(ending.signal.map(WaitStatus::Signal));
        if status.is_some_and(|status| !self.reported.contains(&status)) {
            return Err(format!("an invented exit: {ending:?}"));
        }
        if matches!(
            ending.cause,
            TerminationCause::Exited | TerminationCause::Signaled
        ) && status.is_none()
        {
            return Err("an exit without a status".to_owned());
        }
        let decided = matches!(
            ending.cause,
            TerminationCause::Stopped { .. } | TerminationCause::TimedOut { .. }
        );
        match stopping {
            Some(order) if decided && ending.cause != termination::stop_cause(order) => {
                Err(format!("{ending:?} is not the first decision, {order:?}"))
            }
            Some(_) | None => Ok(()),
        }
    }

    /// In every state, inputs that end the attempt end the execution.
    fn end(&mut self, rng: &mut Rng) -> Result<(), String> {
        let admitted = SupervisorInput::Admitted {
            missing: Vec::new(),
        };
        self.step(admitted)?;
        self.step(stop(rng))?;
        if rng.bool() {
            self.step(SupervisorInput::Spawned)?;
        }
        self.step(if rng.bool() {
            ProcessEvent::Lost.into()
        } else {
            exit(rng, self.spawned)
        })?;
        if !self.supervisor.is_over() {
            return Err("fed an end and not over".to_owned());
        }
        let ends = self
            .records
            .iter()
            .filter(|it| matches!(it.event, Event::Finished { .. }))
            .count();
        if ends == 1 {
            Ok(())
        } else {
            Err(format!("{ends} ends"))
        }
    }

    /// Every prefix of the records can be resumed by another engine, and ended.
    fn resume(&self, rng: &mut Rng) -> Result<(), String> {
        let kept = rng.usize(..=self.records.len());
        let prefix = &self.records[..kept];
        let mut other = Self::new(self.lifetime.clone());
        other.supervisor = Supervisor::resume(self.lifetime.clone(), GRACE, prefix);
        other.records = prefix.to_vec();
        other.now = self.now;
        other.spawned = other.supervisor.state().attempt;
        for record in prefix {
            if let Event::Exited { status, .. } = record.event {
                other.reported.push(status);
            }
        }
        if prefix.is_empty() || other.supervisor.is_over() {
            return Ok(());
        }
        let attempt = other.spawned.max(1);
        let found = match rng.u64(..3) {
            0 => exit(rng, attempt),
            1 => SupervisorInput::Lost {
                reason: LostReason::NoRecord,
                attempt,
            },
            _ => SupervisorInput::Adopted {
                attempt,
                pid: 7,
                started_at: self.now,
            },
        };
        other.spawned = attempt;
        other.step(found)?;
        other.step(stop(rng))?;
        other.step(ProcessEvent::Lost.into())?;
        if other.supervisor.is_over() {
            return Ok(());
        }
        Err(format!("resumed and not over: {:#?}", other.inputs))
    }
}

fn status(rng: &mut Rng) -> WaitStatus {
    if rng.bool() {
        WaitStatus::Code(i32::from(rng.u8(..4)))
    } else {
        WaitStatus::Signal(Signal::try_from(1 + i32::from(rng.u8(..20))).expect("a signal"))
    }
}

fn exit(rng: &mut Rng, attempt: u32) -> SupervisorInput {
    let started_at = Timestamp::from_second(1_700_000_000).expect("a valid second");
    let lived = [1, 100, 100_000][usize::from(rng.u8(..3))];
    let ladder = match rng.u64(..4) {
        0 => Some(KillReason::Requested),
        1 => Some(KillReason::Timeout(TimeoutKind::Wall)),
        _ => None,
    };
    let outcome = if rng.u64(..5) == 0 {
        LeaderOutcome::SpawnFailed {
            step: "exec".to_owned(),
            errno: Some(2),
            message: "no such file".to_owned(),
        }
    } else {
        LeaderOutcome::Ended {
            status: status(rng),
            kill_reason: ladder,
        }
    };
    let record = Box::new(ExitRecord {
        version: 1,
        attempt,
        pid: 7,
        started_at,
        ended_at: started_at + Duration::from_millis(lived),
        lived_ms: lived,
        outcome,
        leftovers: u32::from(rng.u8(..2)),
        survivors: Vec::new(),
        limits_hit: if rng.u64(..6) == 0 {
            vec![limit(rng)]
        } else {
            Vec::new()
        },
        out_of_memory: rng.u64(..6) == 0,
        usage: Usage::default(),
        output_end: rng.u64(..1000),
        journal_error: (rng.u64(..9) == 0).then(|| "disk full".to_owned()),
        lost_bytes: rng.u64(..2),
        autorun: Box::default(),
        lost_capabilities: (rng.u64(..6) == 0).then(lost).into_iter().collect(),
    });
    SupervisorInput::Process(ProcessEvent::Exited {
        record,
        idle: false,
    })
}

fn stop(rng: &mut Rng) -> SupervisorInput {
    let order = match rng.u64(..4) {
        0 => StopReason::SessionEnded,
        1 => StopReason::Shutdown,
        2 => StopReason::Cancelled,
        _ => StopReason::Requested {
            by: Principal::unix(1000),
            reason: rng.bool().then(|| "enough".to_owned()),
            force: rng.bool(),
            interrupt: false,
        },
    };
    let grace = if rng.bool() { GRACE } else { Duration::ZERO };
    if rng.u64(..4) == 0 {
        return SupervisorInput::Interrupt {
            order: StopReason::Requested {
                by: Principal::unix(1000),
                reason: None,
                force: false,
                interrupt: true,
            },
            wait: GRACE,
            grace,
        };
    }
    SupervisorInput::Stop { order, grace }
}

/// Mostly a plausible next input, sometimes an arbitrary one.
fn input(rng: &mut Rng, walk: &Walk) -> SupervisorInput {
    let attempt = match rng.u64(..8) {
        0 => u32::from(rng.u8(..5)),
        _ => walk.spawned,
    };
    match rng.u64(..43) {
        0..=2 => SupervisorInput::Admitted {
            missing: Vec::new(),
        },
        3..=5 => SupervisorInput::Spawned,
        6 => SupervisorInput::SpawnFailed {
            step: "spawn".to_owned(),
            message: "no keeper".to_owned(),
        },
        7 | 8 => SupervisorInput::Process(ProcessEvent::Started {
            at: walk.now,
            pid: 7,
        }),
        9 => SupervisorInput::Process(ProcessEvent::Output {
            end: rng.u64(..1000),
        }),
        10 => SupervisorInput::Process(ProcessEvent::TimedOut {
            kind: TimeoutKind::Idle,
        }),
        11 => SupervisorInput::Process(ProcessEvent::JournalFailed {
            detail: "disk full".to_owned(),
            base: None,
        }),
        12..=14 => exit(rng, attempt),
        15 => ProcessEvent::Lost.into(),
        16 => stop(rng),
        17 => SupervisorInput::Forward(ControlCommand::Signal(Signal::INT)),
        18 => SupervisorInput::InputTaken {
            by: Principal::unix(1000),
            len: 3,
        },
        19 => SupervisorInput::Timer(Timer::Backoff),
        20 => SupervisorInput::Timer(Timer::Interrupt),
        21 => SupervisorInput::PromptDetected {
            text: "name?".to_owned(),
            secret: rng.bool(),
            end: rng.u64(..4),
        },
        22 => SupervisorInput::PromptAnswered {
            by: Principal::unix(1000),
        },
        23 => SupervisorInput::LeaseTaken {
            by: rng.bool().then(|| Principal::unix(1000)),
        },
        24 => SupervisorInput::Resized {
            size: TermSize {
                cols: u16::from(rng.u8(..200)),
                rows: 24,
            },
        },
        25..=27 => SupervisorInput::Freeze { frozen: rng.bool() },
        28..=29 => SupervisorInput::Frozen {
            frozen: rng.bool(),
            by: Principal::unix(1000),
        },
        30 => SupervisorInput::Process(ProcessEvent::LimitHit { limit: limit(rng) }),
        31 => SupervisorInput::Process(ProcessEvent::Degraded { lost: lost() }),
        32 => SupervisorInput::PromptGone {
            prompts: u32::from(rng.u8(..3)),
        },
        33..=41 => of_a_service(rng, walk),
        _ => SupervisorInput::Adopted {
            attempt,
            pid: 7,
            started_at: walk.now,
        },
    }
}

fn lost() -> MissingCapability {
    MissingCapability {
        ability: Capability::Gate,
        reason: "killed".to_owned(),
    }
}

fn of_a_service(rng: &mut Rng, walk: &Walk) -> SupervisorInput {
    match rng.u64(..10) {
        0 => SupervisorInput::Process(ProcessEvent::Detached {
            status: WaitStatus::Code(0),
        }),
        1 | 2 => SupervisorInput::Restart {
            by: Principal::unix(1000),
            reason: "asked".to_owned(),
        },
        _ => SupervisorInput::Observed {
            elapsed: Duration::from_millis(7 * walk.inputs.len() as u64),
            observation: seen(rng),
        },
    }
}

fn seen(rng: &mut Rng) -> ReadinessInput {
    let socket = |rng: &mut Rng| ListeningSocket {
        address: ([127, 0, 0, 1], 3000 + u16::from(rng.u8(..3))).into(),
        inode: 10 + rng.u64(..3),
        pid: 7,
        process: "node".to_owned(),
        stopped: false,
        waiting: 0,
    };
    let lines = ["ready in 5 ms\n", "EADDRINUSE\n", "hello", "\n"];
    match rng.u64(..8) {
        0..=3 => ReadinessInput::Sockets {
            sockets: (0..rng.u64(..3)).map(|_| socket(rng)).collect(),
            unix: Vec::new(),
            members: 1,
        },
        4 => ReadinessInput::Output {
            stream: StreamName::Stdout,
            bytes: lines[usize::from(rng.u8(..4))].into(),
        },
        5 => ReadinessInput::ProbeFinished(ProbeOutcome::Http {
            status: if rng.bool() { 200 } else { 503 },
            tls: false,
            ms: 3,
        }),
        6 => ReadinessInput::ProbeFinished(ProbeOutcome::Failed {
            detail: "connection refused".to_owned(),
        }),
        _ => ReadinessInput::Time,
    }
}

fn limit(rng: &mut Rng) -> LimitKind {
    [LimitKind::Pids, LimitKind::Memory, LimitKind::Disk][usize::from(rng.u8(..3))]
}

fn service(rng: &mut Rng, restart: RestartPolicy) -> Lifetime {
    let whens = [
        ReadyCondition::Auto,
        ReadyCondition::Listening,
        ReadyCondition::Responding,
        ReadyCondition::Log,
    ];
    let ready = ReadyRule {
        when: whens[usize::from(rng.u8(..4))].clone(),
        ready: vec![r"ready in \d".to_owned()],
        ..ReadyRule::default()
    };
    let health = rng.bool().then(|| HealthRule {
        probe: ReadyCondition::Responding,
        interval: Some(Duration::from_millis(10)),
        failures: 1,
        restart: rng.bool(),
    });
    let plan = ServicePlan {
        ready,
        health,
        ..ServicePlan::default()
    };
    Lifetime::Service {
        restart,
        plan: Box::new(plan),
    }
}

fn lifetime(rng: &mut Rng) -> Lifetime {
    let max = u32::from(rng.u8(..3));
    match rng.u64(..5) {
        0 => service(rng, RestartPolicy::Never),
        1 => service(rng, RestartPolicy::OnFailure { max }),
        2 => service(rng, RestartPolicy::Always { max }),
        _ => Lifetime::Finite {
            timeout: None,
            idle: None,
        },
    }
}

fn walk_once(rng: &mut Rng) -> Result<u64, Box<(String, Walk)>> {
    let mut walk = Walk::new(lifetime(rng));
    let mut run = |walk: &mut Walk| -> Result<(), String> {
        for _ in 0..1 + rng.u64(..STEPS_PER_WALK) {
            let input = input(rng, walk);
            walk.step(input)?;
        }
        walk.end(rng)?;
        walk.resume(rng)
    };
    match run(&mut walk) {
        Ok(()) => Ok(walk.inputs.len() as u64),
        Err(why) => Err(Box::new((why, walk))),
    }
}

#[test]
fn random_walks_hold_every_property() {
    walk_at_random(INPUTS / 4);
}

#[test]
fn full_random_walks_hold_every_property() {
    walk_at_random(INPUTS);
}

fn walk_at_random(least: u64) {
    let given = std::env::var("OSTLER_WALK_SEED").ok();
    let seed = given.and_then(|seed| seed.parse().ok()).unwrap_or_else(|| {
        let now = Timestamp::now().as_nanosecond();
        u64::try_from(now & i128::from(u64::MAX)).expect("masked to 64 bits")
    });
    println!("OSTLER_WALK_SEED={seed}");
    let mut rng = Rng::with_seed(seed);
    let (mut inputs, mut walks) = (0, 0_u64);
    while inputs < least {
        match walk_once(&mut rng) {
            Ok(steps) => inputs += steps,
            Err(failed) => {
                let (why, walk) = *failed;
                panic!(
                    "OSTLER_WALK_SEED={seed}, walk {walks}: {why}\n{:?}\ninputs {:#?}\nrecords {:#?}",
                    walk.lifetime, walk.inputs, walk.records
                );
            }
        }
        walks += 1;
    }
    println!("{inputs} inputs in {walks} walks");
}
