use std::time::Duration;

use ostler_model::termination::WaitStatus;
use ostler_model::{Capability, MissingCapability};
use ostler_model::{ControlCommand, ExitRecord, KillReason, LeaderOutcome};
use ostler_model::{
    Event, EventRecord, Lifetime, LostReason, Principal, ProcessEvent, RestartPolicy, Signal,
    StopReason, Termination, TerminationCause, TimeoutKind, Timestamp, Usage,
};

use super::{
    BACKOFF_FIRST_MS, BACKOFF_MAX_MS, RESTART_STABLE_MS, Supervisor, SupervisorEffect,
    SupervisorInput, Timer,
};

const GRACE: Duration = Duration::from_secs(5);
const FINITE: Lifetime = Lifetime::Finite {
    timeout: None,
    idle: None,
};

fn at(millis: i64) -> Timestamp {
    Timestamp::from_millisecond(1_700_000_000_000 + millis).expect("a valid time")
}

fn exit(attempt: u32, status: WaitStatus, ladder: Option<KillReason>) -> ExitRecord {
    ExitRecord {
        version: 1,
        attempt,
        pid: 42,
        started_at: at(1),
        ended_at: at(20),
        lived_ms: 19,
        outcome: LeaderOutcome::Ended {
            status,
            kill_reason: ladder,
        },
        leftovers: 0,
        survivors: Vec::new(),
        limits_hit: Vec::new(),
        out_of_memory: false,
        usage: Usage::default(),
        output_end: 0,
        journal_error: None,
        lost_bytes: 0,
        autorun: Box::default(),
        lost_capabilities: Vec::new(),
    }
}

fn exited(record: impl Into<Box<ExitRecord>>) -> SupervisorInput {
    SupervisorInput::Process(ProcessEvent::Exited {
        record: record.into(),
        idle: false,
    })
}

fn requested(force: bool) -> StopReason {
    StopReason::Requested {
        by: Principal::unix(0),
        reason: Some("enough".to_owned()),
        force,
        interrupt: false,
    }
}

fn stop() -> SupervisorInput {
    SupervisorInput::Stop {
        order: requested(false),
        grace: GRACE,
    }
}

fn first_start(lifetime: Lifetime) -> Supervisor {
    let mut supervisor = Supervisor::new(lifetime, GRACE);
    let missing = Vec::new();
    let effects = supervisor.handle(at(0), SupervisorInput::Admitted { missing });
    assert_eq!(
        effects.last(),
        Some(&SupervisorEffect::Spawn { attempt: 1 })
    );
    assert_eq!(supervisor.handle(at(1), SupervisorInput::Spawned), []);
    supervisor
}

fn ending(supervisor: &Supervisor) -> Termination {
    supervisor.state().ending.clone().expect("it ended")
}

fn ended(
    lifetime: Lifetime,
    before: Option<SupervisorInput>,
    status: WaitStatus,
    ladder: Option<KillReason>,
) -> Termination {
    let mut supervisor = first_start(lifetime);
    if let Some(input) = before {
        supervisor.handle(at(5), input);
    }
    let record = Box::new(exit(1, status, ladder));
    supervisor.handle(at(20), exited(record));
    ending(&supervisor)
}

#[test]
fn a_one_shot_records_everything_from_its_exit_record() {
    let mut supervisor = first_start(FINITE);
    let record = Box::new(exit(1, WaitStatus::Code(3), None));
    let effects = supervisor.handle(at(21), exited(record));
    let events: Vec<Event> = effects
        .into_iter()
        .map(|effect| {
            let SupervisorEffect::Record(record) = effect else {
                panic!("{effect:?}");
            };
            record.event
        })
        .collect();
    assert!(matches!(
        events[0],
        Event::Started {
            attempt: 1,
            pid: 42
        }
    ));
    assert!(matches!(events[1], Event::Exited { attempt: 1, .. }));
    assert!(matches!(events[2], Event::Finished { .. }));
    assert_eq!(supervisor.state().started_at, Some(at(1)));
    assert_eq!(supervisor.state().ended_at, Some(at(20)));
    assert_eq!(ending(&supervisor).code, Some(3));
}

#[test]
fn endings_follow_the_evidence() {
    let code = WaitStatus::Code(0);
    let term = WaitStatus::Signal(Signal::TERM);
    let cause = |before, status, ladder| ended(FINITE, before, status, ladder).cause;
    let wall = KillReason::Timeout(TimeoutKind::Wall);
    let stopped = TerminationCause::Stopped {
        reason: Some("enough".to_owned()),
    };
    let timed_out = TerminationCause::TimedOut {
        clock: TimeoutKind::Wall,
    };
    assert_eq!(cause(None, code, None), TerminationCause::Exited);
    assert_eq!(cause(None, term, None), TerminationCause::Signaled);
    assert_eq!(cause(None, term, Some(wall)), timed_out);
    assert_eq!(
        cause(Some(stop()), term, Some(KillReason::Requested)),
        stopped
    );
    // The first decision stands, whichever timeout expires later.
    assert_eq!(cause(Some(stop()), term, Some(wall)), stopped);
    let clock = ProcessEvent::TimedOut {
        kind: TimeoutKind::Wall,
    };
    assert_eq!(cause(Some(clock.into()), code, Some(wall)), timed_out);
    // It ended by itself before the kill escalation began.
    assert_eq!(cause(Some(stop()), code, None), TerminationCause::Exited);
    assert_eq!(
        cause(Some(ProcessEvent::Lost.into()), code, None),
        TerminationCause::Lost {
            reason: LostReason::ShimKilled
        }
    );
}

#[test]
fn a_stop_before_the_spawn_is_sent_after_it() {
    let mut supervisor = Supervisor::new(FINITE, GRACE);
    let missing = Vec::new();
    supervisor.handle(at(0), SupervisorInput::Admitted { missing });
    let effects = supervisor.handle(at(1), stop());
    assert!(matches!(&effects[..], [SupervisorEffect::Record(_)]));
    let effects = supervisor.handle(at(2), SupervisorInput::Spawned);
    assert_eq!(
        effects,
        [SupervisorEffect::Send(ControlCommand::Stop {
            grace: GRACE
        })]
    );
}

#[test]
fn a_second_stop_only_hastens() {
    let mut supervisor = first_start(FINITE);
    assert_eq!(supervisor.handle(at(2), stop()).len(), 2);
    assert_eq!(supervisor.handle(at(3), stop()), []);
    let forced = SupervisorInput::Stop {
        order: requested(true),
        grace: Duration::ZERO,
    };
    let hastened = SupervisorEffect::Send(ControlCommand::Stop {
        grace: Duration::ZERO,
    });
    assert_eq!(supervisor.handle(at(4), forced), [hastened]);
    assert_eq!(supervisor.state().stopping, Some(requested(false)));
}

#[test]
fn a_service_comes_back_until_its_limit() {
    let mut supervisor = first_start(Lifetime::service(RestartPolicy::OnFailure { max: 2 }));
    for attempt in 1..=2 {
        let record = Box::new(exit(attempt, WaitStatus::Code(1), None));
        let effects = supervisor.handle(at(30), exited(record));
        assert!(
            matches!(
                effects.last(),
                Some(SupervisorEffect::SetTimer {
                    timer: Timer::Backoff,
                    ..
                })
            ),
            "{effects:?}"
        );
        let effects = supervisor.handle(at(40), SupervisorInput::Timer(Timer::Backoff));
        assert_eq!(
            effects,
            [SupervisorEffect::Spawn {
                attempt: attempt + 1
            }]
        );
        supervisor.handle(at(41), SupervisorInput::Spawned);
    }
    let record = Box::new(exit(3, WaitStatus::Code(1), None));
    supervisor.handle(at(50), exited(record));
    assert!(supervisor.is_over());
    let projected = ostler_model::status::status_names(
        supervisor.state(),
        &Lifetime::service(RestartPolicy::OnFailure { max: 2 }),
    );
    assert_eq!(projected.service, "crash_looping");
}

#[test]
fn a_service_that_succeeds_stays_down_unless_it_should_always_be_up() {
    let down = Lifetime::service(RestartPolicy::OnFailure { max: 2 });
    assert!(ended(down, None, WaitStatus::Code(0), None).is_success());
    let mut supervisor = first_start(Lifetime::service(RestartPolicy::Always { max: 1 }));
    let record = Box::new(exit(1, WaitStatus::Code(0), None));
    supervisor.handle(at(30), exited(record));
    assert!(!supervisor.is_over());
}

fn interrupt() -> SupervisorInput {
    SupervisorInput::Interrupt {
        order: StopReason::Requested {
            by: Principal::unix(0),
            reason: Some("enough".to_owned()),
            force: false,
            interrupt: true,
        },
        wait: GRACE,
        grace: GRACE,
    }
}

#[test]
fn an_interrupt_is_a_stop_however_the_command_ends_and_escalates_once() {
    let reason = Some("enough".to_owned());
    for status in [WaitStatus::Signal(Signal::INT), WaitStatus::Code(130)] {
        let ending = ended(FINITE, Some(interrupt()), status, None);
        let reason = reason.clone();
        assert_eq!(ending.cause, TerminationCause::Stopped { reason });
    }
    let mut supervisor = first_start(FINITE);
    let effects = supervisor.handle(at(5), interrupt());
    let signal = ControlCommand::Signal(Signal::INT);
    assert_eq!(effects[1], SupervisorEffect::Send(signal));
    let (timer, after) = (Timer::Interrupt, GRACE);
    assert_eq!(effects[2], SupervisorEffect::SetTimer { timer, after });
    let elapsed = || SupervisorInput::Timer(Timer::Interrupt);
    let stop = SupervisorEffect::Send(ControlCommand::Stop { grace: GRACE });
    assert_eq!(supervisor.handle(at(9), elapsed()), [stop]);
    assert_eq!(supervisor.handle(at(10), elapsed()), []);
    // A second one leaves the first one its time.
    let mut supervisor = first_start(FINITE);
    supervisor.handle(at(5), interrupt());
    assert_eq!(supervisor.handle(at(6), interrupt()), []);
    // Who is paused goes on.
    let mut supervisor = first_start(FINITE);
    let (frozen, by) = (true, Principal::unix(0));
    supervisor.handle(at(4), SupervisorInput::Frozen { frozen, by });
    let effects = supervisor.handle(at(5), interrupt());
    let thaw = SupervisorEffect::Send(ControlCommand::Freeze(false));
    assert_eq!(effects[1], thaw);
    // A stop that comes meanwhile takes its place.
    let mut supervisor = first_start(FINITE);
    supervisor.handle(at(5), interrupt());
    let stop = SupervisorInput::Stop {
        order: requested(true),
        grace: Duration::ZERO,
    };
    assert_eq!(supervisor.handle(at(6), stop).len(), 1);
    assert_eq!(supervisor.handle(at(9), elapsed()), []);
}

#[test]
fn a_stop_between_two_attempts_ends_it_without_a_status() {
    let mut supervisor = first_start(Lifetime::service(RestartPolicy::Always { max: 9 }));
    let record = Box::new(exit(1, WaitStatus::Code(1), None));
    supervisor.handle(at(30), exited(record));
    let effects = supervisor.handle(at(31), stop());
    assert!(effects.contains(&SupervisorEffect::ClearTimer(Timer::Backoff)));
    assert_eq!(ending(&supervisor).code, None);
    assert_eq!(
        supervisor.handle(at(600), SupervisorInput::Timer(Timer::Backoff)),
        []
    );
}

#[test]
fn the_backoff_doubles_and_has_an_end() {
    let mut supervisor = first_start(Lifetime::service(RestartPolicy::Always { max: 50 }));
    let mut waits = Vec::new();
    for attempt in 1..=10 {
        let record = Box::new(exit(attempt, WaitStatus::Code(1), None));
        for effect in supervisor.handle(at(20), exited(record)) {
            if let SupervisorEffect::SetTimer { after, .. } = effect {
                waits.push(after.as_millis());
            }
        }
        supervisor.handle(at(20), SupervisorInput::Timer(Timer::Backoff));
        supervisor.handle(at(20), SupervisorInput::Spawned);
    }
    let first = u128::from(BACKOFF_FIRST_MS);
    assert_eq!(waits[..3], [first, first * 2, first * 4]);
    assert_eq!(waits.last(), Some(&u128::from(BACKOFF_MAX_MS)));
}

#[test]
fn recovery_finishes_what_was_recorded_and_not_finished() {
    let mut first = first_start(FINITE);
    let record = exit(1, WaitStatus::Code(7), None);
    let mut records = Vec::new();
    for effect in Supervisor::new(FINITE, GRACE).handle(
        at(0),
        SupervisorInput::Admitted {
            missing: Vec::new(),
        },
    ) {
        if let SupervisorEffect::Record(record) = effect {
            records.push(record);
        }
    }
    for effect in first.handle(at(20), exited(record.clone())) {
        if let SupervisorEffect::Record(record) = effect {
            records.push(record);
        }
    }
    let whole = records.len();
    for kept in 1..=whole {
        let mut again = Supervisor::resume(FINITE, GRACE, &records[..kept]);
        again.handle(at(99), exited(record.clone()));
        assert_eq!(again.state(), first.state(), "from {kept} records");
    }
}

#[test]
fn nothing_found_is_lost_and_never_an_exit() {
    let mut supervisor = first_start(FINITE);
    let mut records = Vec::new();
    let created = Supervisor::new(FINITE, GRACE).handle(
        at(0),
        SupervisorInput::Admitted {
            missing: Vec::new(),
        },
    );
    for effect in created
        .into_iter()
        .chain(supervisor.handle(at(1), ProcessEvent::Started { at: at(1), pid: 9 }.into()))
    {
        if let SupervisorEffect::Record(record) = effect {
            records.push(record);
        }
    }
    let mut again = Supervisor::resume(FINITE, GRACE, &records);
    let reason = LostReason::Reboot;
    again.handle(at(9), SupervisorInput::Lost { reason, attempt: 1 });
    assert_eq!(
        ending(&again),
        Termination::without_status(TerminationCause::Lost { reason })
    );
}

#[test]
fn a_stop_decided_before_the_engine_was_killed_is_carried_out_by_the_next() {
    let mut first = first_start(FINITE);
    let created = Supervisor::new(FINITE, GRACE).handle(
        at(0),
        SupervisorInput::Admitted {
            missing: Vec::new(),
        },
    );
    let mut records = Vec::new();
    for effect in created.into_iter().chain(first.handle(at(1), stop())) {
        if let SupervisorEffect::Record(record) = effect {
            records.push(record);
        }
    }
    let mut again = Supervisor::resume(FINITE, GRACE, &records);
    let effects = again.handle(
        at(9),
        SupervisorInput::Adopted {
            attempt: 1,
            pid: 42,
            started_at: at(1),
        },
    );
    assert_eq!(
        effects.last(),
        Some(&SupervisorEffect::Send(ControlCommand::Stop {
            grace: GRACE
        }))
    );
}

#[test]
fn a_clock_that_is_set_back_or_forward_does_not_disturb_the_backoff() {
    for step in [-3_600_000, 3_600_000] {
        let mut supervisor = first_start(Lifetime::service(RestartPolicy::Always { max: 50 }));
        let mut record = exit(1, WaitStatus::Code(1), None);
        (record.ended_at, record.lived_ms) = (at(20 + step), 19);
        let effects = supervisor.handle(at(30 + step), exited(record));
        let expected = SupervisorEffect::SetTimer {
            timer: Timer::Backoff,
            after: Duration::from_millis(BACKOFF_FIRST_MS),
        };
        assert_eq!(effects.last(), Some(&expected));
        supervisor.handle(at(600), SupervisorInput::Timer(Timer::Backoff));
        supervisor.handle(at(600), SupervisorInput::Spawned);
        let mut record = exit(2, WaitStatus::Code(1), None);
        (record.started_at, record.ended_at) = (at(601), at(700_000));
        record.lived_ms = 20;
        let effects = supervisor.handle(at(700_000), exited(record));
        let expected = SupervisorEffect::SetTimer {
            timer: Timer::Backoff,
            after: Duration::from_millis(BACKOFF_FIRST_MS * 2),
        };
        assert_eq!(
            effects.last(),
            Some(&expected),
            "it did not live for minutes"
        );
    }
}

#[test]
fn an_attempt_that_lived_long_enough_resets_the_backoff() {
    let lifetime = Lifetime::service(RestartPolicy::Always { max: 3 });
    let mut supervisor = Supervisor::new(lifetime.clone(), GRACE);
    let admitted = SupervisorInput::Admitted {
        missing: Vec::new(),
    };
    let mut effects = supervisor.handle(at(0), admitted);
    supervisor.handle(at(1), SupervisorInput::Spawned);
    let mut records = Vec::new();
    for (attempt, lived_ms, factor) in [
        (1, 20, 1),
        (2, 20, 2),
        (3, RESTART_STABLE_MS - 1, 4),
        (4, RESTART_STABLE_MS, 1),
        (5, 20, 2),
        (6, 20, 4),
    ] {
        let mut record = exit(attempt, WaitStatus::Code(1), None);
        record.lived_ms = lived_ms;
        effects.extend(supervisor.handle(at(600), exited(record)));
        let expected = SupervisorEffect::SetTimer {
            timer: Timer::Backoff,
            after: Duration::from_millis(BACKOFF_FIRST_MS * factor),
        };
        assert_eq!(effects.last(), Some(&expected), "after attempt {attempt}");
        records.extend(effects.drain(..).filter_map(|effect| match effect {
            SupervisorEffect::Record(record) => Some(record),
            SupervisorEffect::Spawn { .. }
            | SupervisorEffect::Send(_)
            | SupervisorEffect::SetTimer { .. }
            | SupervisorEffect::ClearTimer(_) => None,
        }));
        // The next engine counts on.
        let resumed = Supervisor::resume(lifetime.clone(), GRACE, &records);
        assert_eq!(resumed.tries, supervisor.tries, "after attempt {attempt}");
        supervisor.handle(at(600), SupervisorInput::Timer(Timer::Backoff));
        supervisor.handle(at(600), SupervisorInput::Spawned);
    }
}

#[test]
fn a_requested_restart_begins_at_once_and_resets_the_count() {
    let mut supervisor = first_start(Lifetime::service(RestartPolicy::Never));
    let restart = SupervisorInput::Restart {
        by: Principal::unix(1000),
        reason: "asked".to_owned(),
    };
    let effects = supervisor.handle(at(25), restart.clone());
    let actual = |it: &SupervisorEffect| matches!(it, SupervisorEffect::Record(record) if matches!(record.event, Event::Restarting { .. }));
    assert!(effects.iter().any(actual), "{effects:?}");
    assert!(
        effects.contains(&SupervisorEffect::Send(ControlCommand::Stop {
            grace: GRACE
        }))
    );
    assert_eq!(supervisor.handle(at(26), restart), []);
    let ladder = Some(KillReason::Requested);
    let record = exit(1, WaitStatus::Signal(Signal::TERM), ladder);
    let effects = supervisor.handle(at(30), exited(record));
    assert_eq!(
        effects.last(),
        Some(&SupervisorEffect::Spawn { attempt: 2 })
    );
}

#[test]
fn a_stop_wins_over_a_restart() {
    let mut supervisor = first_start(Lifetime::service(RestartPolicy::Always { max: 9 }));
    let restart = SupervisorInput::Restart {
        by: Principal::unix(1000),
        reason: "asked".to_owned(),
    };
    supervisor.handle(at(25), restart);
    supervisor.handle(at(26), stop());
    let record = exit(
        1,
        WaitStatus::Signal(Signal::TERM),
        Some(KillReason::Requested),
    );
    supervisor.handle(at(30), exited(record));
    assert!(supervisor.is_over());
    assert!(matches!(
        ending(&supervisor).cause,
        TerminationCause::Stopped { .. }
    ));
}

#[test]
fn a_service_whose_supervisor_process_is_killed_begins_again() {
    let mut supervisor = first_start(Lifetime::service(RestartPolicy::OnFailure { max: 1 }));
    supervisor.handle(at(2), ProcessEvent::Started { at: at(1), pid: 9 }.into());
    let effects = supervisor.handle(at(5), ProcessEvent::Lost.into());
    let backoff = effects.iter().find_map(|effect| match effect {
        SupervisorEffect::Record(record) => {
            if let Event::Backoff { attempt, lost, .. } = record.event {
                Some((attempt, lost))
            } else {
                None
            }
        }
        SupervisorEffect::Spawn { .. }
        | SupervisorEffect::Send(_)
        | SupervisorEffect::SetTimer { .. }
        | SupervisorEffect::ClearTimer(_) => None,
    });
    assert_eq!(backoff, Some((2, Some(LostReason::ShimKilled))));
    let actual = supervisor.state().last_end.clone().unwrap_or_default();
    assert!(actual.contains("supervisor process was killed"), "{actual}");
    assert_eq!(
        supervisor.handle(at(600), SupervisorInput::Timer(Timer::Backoff)),
        [SupervisorEffect::Spawn { attempt: 2 }]
    );
    supervisor.handle(at(601), SupervisorInput::Spawned);
    supervisor.handle(at(700), ProcessEvent::Lost.into());
    let reason = LostReason::ShimKilled;
    assert_eq!(ending(&supervisor).cause, TerminationCause::Lost { reason });
}

#[test]
fn what_is_lost_does_not_come_back_unless_its_supervisor_process_alone_is_gone() {
    let lost = |lifetime, stopped: bool, reason| {
        let mut supervisor = first_start(lifetime);
        let mut records = recorded(&mut supervisor);
        if stopped {
            records.extend(records_of(supervisor.handle(at(3), stop())));
        }
        let always = supervisor.lifetime.clone();
        let mut again = Supervisor::resume(always, GRACE, &records);
        again.handle(at(9), SupervisorInput::Lost { reason, attempt: 1 });
        again.is_over()
    };
    let always = || Lifetime::service(RestartPolicy::Always { max: 9 });
    assert!(!lost(always(), false, LostReason::ShimKilled));
    assert!(!lost(always(), false, LostReason::NoRecord));
    assert!(lost(always(), true, LostReason::ShimKilled));
    assert!(lost(always(), false, LostReason::Reboot));
    assert!(lost(always(), false, LostReason::FilesDamaged));
    assert!(lost(FINITE, false, LostReason::ShimKilled));
    let never = Lifetime::service(RestartPolicy::Never);
    assert!(lost(never, false, LostReason::ShimKilled));
}

fn lost(reason: &str) -> MissingCapability {
    MissingCapability {
        ability: Capability::Gate,
        reason: reason.to_owned(),
    }
}

fn degradations(records: &[EventRecord]) -> Vec<String> {
    let details = records.iter().filter_map(|record| {
        let Event::Degraded { detail, .. } = &record.event else {
            return None;
        };
        Some(detail.clone())
    });
    details.collect()
}

#[test]
fn what_an_attempt_loses_is_recorded_once_however_it_is_reported() {
    let lifetime = Lifetime::service(RestartPolicy::Always { max: 3 });
    let mut supervisor = Supervisor::new(lifetime.clone(), GRACE);
    let missing = Vec::new();
    let mut effects = supervisor.handle(at(0), SupervisorInput::Admitted { missing });
    let started = |millis| ProcessEvent::Started {
        pid: 7,
        at: at(millis),
    };
    let degraded = |reason| ProcessEvent::Degraded { lost: lost(reason) };
    effects.extend(supervisor.handle(at(1), SupervisorInput::Spawned));
    effects.extend(supervisor.handle(at(1), started(1).into()));
    effects.extend(supervisor.handle(at(2), degraded("first").into()));
    effects.extend(supervisor.handle(at(3), degraded("first").into()));
    let mut records = records_of(effects);
    assert_eq!(degradations(&records), ["first"]);
    assert_eq!(supervisor.state().lost_capabilities, [lost("first")]);

    // The next engine is told of it again, and reads it in the record of the end.
    let mut supervisor = Supervisor::resume(lifetime, GRACE, &records);
    let adopted = SupervisorInput::Adopted {
        attempt: 1,
        pid: 7,
        started_at: at(1),
    };
    let mut effects = supervisor.handle(at(4), adopted);
    effects.extend(supervisor.handle(at(4), degraded("first").into()));
    let mut record = exit(1, WaitStatus::Code(1), None);
    record.lost_capabilities.push(lost("first"));
    effects.extend(supervisor.handle(at(20), exited(record)));
    assert!(degradations(&records_of(effects)).is_empty());
    assert_eq!(supervisor.state().lost_capabilities, [lost("first")]);

    // The next attempt has what the one before lost, until it loses it.
    let mut effects = supervisor.handle(at(600), SupervisorInput::Timer(Timer::Backoff));
    effects.extend(supervisor.handle(at(601), SupervisorInput::Spawned));
    effects.extend(supervisor.handle(at(602), started(602).into()));
    assert_eq!(supervisor.state().lost_capabilities, []);
    effects.extend(supervisor.handle(at(603), degraded("second").into()));
    records = records_of(effects);
    assert_eq!(degradations(&records), ["second"]);
    assert_eq!(supervisor.state().lost_capabilities, [lost("second")]);
}

#[test]
fn a_loss_without_an_engine_is_in_the_record_of_the_end() {
    let mut supervisor = first_start(FINITE);
    let mut record = exit(1, WaitStatus::Code(0), None);
    record.lost_capabilities.push(lost("killed"));
    let records = records_of(supervisor.handle(at(20), exited(record)));
    assert_eq!(degradations(&records), ["killed"]);
    let texts: Vec<&String> = supervisor.state().degradations().collect();
    assert_eq!(texts, ["killed"]);
    // It says nothing about output.
    assert!(supervisor.state().degraded.is_empty());
}

/// The records of a first attempt.
fn recorded(supervisor: &mut Supervisor) -> Vec<EventRecord> {
    let lifetime = supervisor.lifetime.clone();
    let missing = Vec::new();
    let created =
        Supervisor::new(lifetime, GRACE).handle(at(0), SupervisorInput::Admitted { missing });
    let started = supervisor.handle(at(1), ProcessEvent::Started { at: at(1), pid: 9 }.into());
    records_of(created.into_iter().chain(started))
}

fn records_of(effects: impl IntoIterator<Item = SupervisorEffect>) -> Vec<EventRecord> {
    let record = |effect| match effect {
        SupervisorEffect::Record(record) => Some(record),
        SupervisorEffect::Spawn { .. }
        | SupervisorEffect::Send(_)
        | SupervisorEffect::SetTimer { .. }
        | SupervisorEffect::ClearTimer(_) => None,
    };
    effects.into_iter().filter_map(record).collect()
}

/// Attempts that could not be spawned leave no record: the newest one that is found is of an earlier
/// attempt.
#[test]
fn a_failed_spawn_of_a_later_attempt_is_no_dead_end_for_the_next_engine() {
    let lifetime = |max| Lifetime::service(RestartPolicy::Always { max });
    let resumed = |max, stopped: bool| {
        let mut supervisor = Supervisor::new(lifetime(9), GRACE);
        let first = exit(1, WaitStatus::Code(1), None);
        let failed = SupervisorInput::SpawnFailed {
            step: "shim".to_owned(),
            message: "no space".to_owned(),
        };
        let mut records = Vec::new();
        let mut inputs = vec![
            SupervisorInput::Admitted {
                missing: Vec::new(),
            },
            SupervisorInput::Spawned,
            exited(first.clone()),
            SupervisorInput::Timer(Timer::Backoff),
            failed,
        ];
        if stopped {
            inputs.insert(4, stop());
            inputs.pop();
        }
        for (time, input) in (0..).zip(inputs) {
            records.extend(records_of(supervisor.handle(at(time * 600), input)));
        }
        let mut next = Supervisor::resume(lifetime(max), GRACE, &records);
        let effects = next.handle(at(9_000), exited(first));
        (next, effects)
    };
    let (mut next, effects) = resumed(9, false);
    let backoff = effects.iter().any(|effect| {
        matches!(effect, SupervisorEffect::SetTimer { timer, .. } if *timer == Timer::Backoff)
    });
    assert!(backoff, "{effects:?}");
    let spawned = next.handle(at(20_000), SupervisorInput::Timer(Timer::Backoff));
    assert!(
        spawned.contains(&SupervisorEffect::Spawn { attempt: 3 }),
        "{spawned:?}"
    );
    let (mut next, _) = resumed(9, false);
    next.handle(at(10_000), stop());
    assert!(next.is_over());
    let (next, _) = resumed(0, false);
    let cause = ending(&next).cause;
    assert!(
        matches!(cause, TerminationCause::SpawnFailed { .. }),
        "{cause:?}"
    );
    assert!(resumed(9, true).0.is_over());
}
