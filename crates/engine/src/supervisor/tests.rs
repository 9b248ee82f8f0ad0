use std::time::Duration;

use ostler_model::ending::WaitStatus;
use ostler_model::{
    Cause, Ending, Event, EventRecord, Lifetime, LostReason, Principal, Restart, Signal, StopOrder,
    TimeoutKind, Timestamp, Usage,
};
use ostler_process::{ExitRecord, Ladder, Order, Outcome};

use super::{BACKOFF_FIRST_MS, BACKOFF_MAX_MS, Effect, Input, Supervisor, Timer};

const GRACE: Duration = Duration::from_secs(5);
const FINITE: Lifetime = Lifetime::Finite {
    timeout: None,
    idle: None,
};

fn at(millis: i64) -> Timestamp {
    Timestamp::from_millisecond(1_700_000_000_000 + millis).expect("a valid time")
}

fn exit(attempt: u32, status: WaitStatus, ladder: Option<Ladder>) -> ExitRecord {
    ExitRecord {
        version: 1,
        attempt,
        pid: 42,
        started_at: at(1),
        ended_at: at(20),
        lived_ms: 19,
        outcome: Outcome::Ended { status, ladder },
        leftovers: 0,
        survivors: Vec::new(),
        limits_hit: Vec::new(),
        out_of_memory: false,
        usage: Usage::default(),
        output_end: 0,
        journal_error: None,
        lost_bytes: 0,
        autorun: Box::default(),
    }
}

fn requested(force: bool) -> StopOrder {
    StopOrder::Requested {
        by: Principal::unix(0),
        reason: Some("enough".to_owned()),
        force,
    }
}

fn stop() -> Input {
    Input::Stop {
        order: requested(false),
        grace: GRACE,
    }
}

fn begun(lifetime: Lifetime) -> Supervisor {
    let mut supervisor = Supervisor::new(lifetime, GRACE);
    let missing = Vec::new();
    let effects = supervisor.handle(at(0), Input::Admitted { missing });
    assert_eq!(effects.last(), Some(&Effect::Spawn { attempt: 1 }));
    assert_eq!(supervisor.handle(at(1), Input::Born), []);
    supervisor
}

fn ending(supervisor: &Supervisor) -> Ending {
    supervisor.state().ending.clone().expect("it ended")
}

fn ended(
    lifetime: Lifetime,
    before: Option<Input>,
    status: WaitStatus,
    ladder: Option<Ladder>,
) -> Ending {
    let mut supervisor = begun(lifetime);
    if let Some(input) = before {
        supervisor.handle(at(5), input);
    }
    let record = Box::new(exit(1, status, ladder));
    supervisor.handle(at(20), Input::Exited(record));
    ending(&supervisor)
}

#[test]
fn a_one_shot_records_everything_from_its_exit_record() {
    let mut supervisor = begun(FINITE);
    let record = Box::new(exit(1, WaitStatus::Code(3), None));
    let effects = supervisor.handle(at(21), Input::Exited(record));
    let events: Vec<Event> = effects
        .into_iter()
        .map(|effect| {
            let Effect::Record(record) = effect else {
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
    let wall = Ladder::Clock(TimeoutKind::Wall);
    let stopped = Cause::Stopped {
        reason: Some("enough".to_owned()),
    };
    let timed_out = Cause::TimedOut {
        clock: TimeoutKind::Wall,
    };
    assert_eq!(cause(None, code, None), Cause::Exited);
    assert_eq!(cause(None, term, None), Cause::Signaled);
    assert_eq!(cause(None, term, Some(wall)), timed_out);
    assert_eq!(cause(Some(stop()), term, Some(Ladder::Ordered)), stopped);
    // The first decision stands, whichever clock runs out later.
    assert_eq!(cause(Some(stop()), term, Some(wall)), stopped);
    let clock = Input::ClockRanOut {
        clock: TimeoutKind::Wall,
    };
    assert_eq!(cause(Some(clock), code, Some(wall)), timed_out);
    // It ended by itself before the ladder began.
    assert_eq!(cause(Some(stop()), code, None), Cause::Exited);
    assert_eq!(
        cause(Some(Input::Gone), code, None),
        Cause::Lost {
            reason: LostReason::ShimKilled
        }
    );
}

#[test]
fn a_stop_before_the_birth_is_handed_over_after_it() {
    let mut supervisor = Supervisor::new(FINITE, GRACE);
    let missing = Vec::new();
    supervisor.handle(at(0), Input::Admitted { missing });
    let effects = supervisor.handle(at(1), stop());
    assert!(matches!(&effects[..], [Effect::Record(_)]));
    let effects = supervisor.handle(at(2), Input::Born);
    assert_eq!(effects, [Effect::Send(Order::Stop { grace: GRACE })]);
}

#[test]
fn a_second_stop_only_hastens() {
    let mut supervisor = begun(FINITE);
    assert_eq!(supervisor.handle(at(2), stop()).len(), 2);
    assert_eq!(supervisor.handle(at(3), stop()), []);
    let forced = Input::Stop {
        order: requested(true),
        grace: Duration::ZERO,
    };
    let hastened = Effect::Send(Order::Stop {
        grace: Duration::ZERO,
    });
    assert_eq!(supervisor.handle(at(4), forced), [hastened]);
    assert_eq!(supervisor.state().stopping, Some(requested(false)));
}

#[test]
fn a_service_comes_back_until_its_limit() {
    let mut supervisor = begun(Lifetime::service(Restart::OnFailure { max: 2 }));
    for attempt in 1..=2 {
        let record = Box::new(exit(attempt, WaitStatus::Code(1), None));
        let effects = supervisor.handle(at(30), Input::Exited(record));
        assert!(
            matches!(
                effects.last(),
                Some(Effect::SetTimer {
                    timer: Timer::Backoff,
                    ..
                })
            ),
            "{effects:?}"
        );
        let effects = supervisor.handle(at(40), Input::Timer(Timer::Backoff));
        assert_eq!(
            effects,
            [Effect::Spawn {
                attempt: attempt + 1
            }]
        );
        supervisor.handle(at(41), Input::Born);
    }
    let record = Box::new(exit(3, WaitStatus::Code(1), None));
    supervisor.handle(at(50), Input::Exited(record));
    assert!(supervisor.is_over());
    let projected = ostler_model::status::project(
        supervisor.state(),
        &Lifetime::service(Restart::OnFailure { max: 2 }),
    );
    assert_eq!(projected.service, "crash_looping");
}

#[test]
fn a_service_that_succeeds_stays_down_unless_it_should_always_be_up() {
    let down = Lifetime::service(Restart::OnFailure { max: 2 });
    assert!(ended(down, None, WaitStatus::Code(0), None).is_success());
    let mut supervisor = begun(Lifetime::service(Restart::Always { max: 1 }));
    let record = Box::new(exit(1, WaitStatus::Code(0), None));
    supervisor.handle(at(30), Input::Exited(record));
    assert!(!supervisor.is_over());
}

#[test]
fn a_stop_between_two_attempts_ends_it_without_a_status() {
    let mut supervisor = begun(Lifetime::service(Restart::Always { max: 9 }));
    let record = Box::new(exit(1, WaitStatus::Code(1), None));
    supervisor.handle(at(30), Input::Exited(record));
    let effects = supervisor.handle(at(31), stop());
    assert!(effects.contains(&Effect::ClearTimer(Timer::Backoff)));
    assert_eq!(ending(&supervisor).code, None);
    assert_eq!(supervisor.handle(at(600), Input::Timer(Timer::Backoff)), []);
}

#[test]
fn the_backoff_doubles_and_has_an_end() {
    let mut supervisor = begun(Lifetime::service(Restart::Always { max: 50 }));
    let mut waits = Vec::new();
    for attempt in 1..=10 {
        let record = Box::new(exit(attempt, WaitStatus::Code(1), None));
        for effect in supervisor.handle(at(20), Input::Exited(record)) {
            if let Effect::SetTimer { after, .. } = effect {
                waits.push(after.as_millis());
            }
        }
        supervisor.handle(at(20), Input::Timer(Timer::Backoff));
        supervisor.handle(at(20), Input::Born);
    }
    let first = u128::from(BACKOFF_FIRST_MS);
    assert_eq!(waits[..3], [first, first * 2, first * 4]);
    assert_eq!(waits.last(), Some(&u128::from(BACKOFF_MAX_MS)));
}

#[test]
fn recovery_finishes_what_was_recorded_and_not_finished() {
    let mut first = begun(FINITE);
    let record = exit(1, WaitStatus::Code(7), None);
    let mut records = Vec::new();
    for effect in Supervisor::new(FINITE, GRACE).handle(
        at(0),
        Input::Admitted {
            missing: Vec::new(),
        },
    ) {
        if let Effect::Record(record) = effect {
            records.push(record);
        }
    }
    for effect in first.handle(at(20), Input::Exited(Box::new(record.clone()))) {
        if let Effect::Record(record) = effect {
            records.push(record);
        }
    }
    let whole = records.len();
    for kept in 1..=whole {
        let mut again = Supervisor::resume(FINITE, GRACE, &records[..kept]);
        again.handle(at(99), Input::Exited(Box::new(record.clone())));
        assert_eq!(again.state(), first.state(), "from {kept} records");
    }
}

#[test]
fn nothing_found_is_lost_and_never_an_exit() {
    let mut supervisor = begun(FINITE);
    let mut records = Vec::new();
    let created = Supervisor::new(FINITE, GRACE).handle(
        at(0),
        Input::Admitted {
            missing: Vec::new(),
        },
    );
    for effect in created
        .into_iter()
        .chain(supervisor.handle(at(1), Input::Started { at: at(1), pid: 9 }))
    {
        if let Effect::Record(record) = effect {
            records.push(record);
        }
    }
    let mut again = Supervisor::resume(FINITE, GRACE, &records);
    let reason = LostReason::Reboot;
    again.handle(at(9), Input::Lost { reason, attempt: 1 });
    assert_eq!(
        ending(&again),
        Ending::without_status(Cause::Lost { reason })
    );
}

#[test]
fn a_stop_decided_before_the_engine_was_killed_is_carried_out_by_the_next() {
    let mut first = begun(FINITE);
    let created = Supervisor::new(FINITE, GRACE).handle(
        at(0),
        Input::Admitted {
            missing: Vec::new(),
        },
    );
    let mut records = Vec::new();
    for effect in created.into_iter().chain(first.handle(at(1), stop())) {
        if let Effect::Record(record) = effect {
            records.push(record);
        }
    }
    let mut again = Supervisor::resume(FINITE, GRACE, &records);
    let effects = again.handle(
        at(9),
        Input::Adopted {
            attempt: 1,
            pid: 42,
            started_at: at(1),
        },
    );
    assert_eq!(
        effects.last(),
        Some(&Effect::Send(Order::Stop { grace: GRACE }))
    );
}

#[test]
fn a_clock_that_is_set_back_or_forward_does_not_disturb_the_backoff() {
    for step in [-3_600_000, 3_600_000] {
        let mut supervisor = begun(Lifetime::service(Restart::Always { max: 50 }));
        let mut record = exit(1, WaitStatus::Code(1), None);
        (record.ended_at, record.lived_ms) = (at(20 + step), 19);
        let effects = supervisor.handle(at(30 + step), Input::Exited(Box::new(record)));
        let expected = Effect::SetTimer {
            timer: Timer::Backoff,
            after: Duration::from_millis(BACKOFF_FIRST_MS),
        };
        assert_eq!(effects.last(), Some(&expected));
        supervisor.handle(at(600), Input::Timer(Timer::Backoff));
        supervisor.handle(at(600), Input::Born);
        let mut record = exit(2, WaitStatus::Code(1), None);
        (record.started_at, record.ended_at) = (at(601), at(700_000));
        record.lived_ms = 20;
        let effects = supervisor.handle(at(700_000), Input::Exited(Box::new(record)));
        let expected = Effect::SetTimer {
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
fn a_restart_that_is_asked_for_begins_at_once_and_counts_anew() {
    let mut supervisor = begun(Lifetime::service(Restart::Never));
    let asked = Input::Restart {
        by: Principal::unix(1000),
        reason: "asked".to_owned(),
    };
    let effects = supervisor.handle(at(25), asked.clone());
    let told = |it: &Effect| matches!(it, Effect::Record(record) if matches!(record.event, Event::Restarting { .. }));
    assert!(effects.iter().any(told), "{effects:?}");
    assert!(effects.contains(&Effect::Send(Order::Stop { grace: GRACE })));
    assert_eq!(supervisor.handle(at(26), asked), []);
    let ladder = Some(Ladder::Ordered);
    let record = exit(1, WaitStatus::Signal(Signal::TERM), ladder);
    let effects = supervisor.handle(at(30), Input::Exited(Box::new(record)));
    assert_eq!(effects.last(), Some(&Effect::Spawn { attempt: 2 }));
}

#[test]
fn a_stop_wins_over_a_restart() {
    let mut supervisor = begun(Lifetime::service(Restart::Always { max: 9 }));
    let asked = Input::Restart {
        by: Principal::unix(1000),
        reason: "asked".to_owned(),
    };
    supervisor.handle(at(25), asked);
    supervisor.handle(at(26), stop());
    let record = exit(1, WaitStatus::Signal(Signal::TERM), Some(Ladder::Ordered));
    supervisor.handle(at(30), Input::Exited(Box::new(record)));
    assert!(supervisor.is_over());
    assert!(matches!(ending(&supervisor).cause, Cause::Stopped { .. }));
}

#[test]
fn a_service_whose_supervisor_process_is_killed_begins_again() {
    let mut supervisor = begun(Lifetime::service(Restart::OnFailure { max: 1 }));
    supervisor.handle(at(2), Input::Started { at: at(1), pid: 9 });
    let effects = supervisor.handle(at(5), Input::Gone);
    let backoff = effects.iter().find_map(|effect| match effect {
        Effect::Record(record) => {
            if let Event::Backoff { attempt, lost, .. } = record.event {
                Some((attempt, lost))
            } else {
                None
            }
        }
        Effect::Spawn { .. }
        | Effect::Send(_)
        | Effect::SetTimer { .. }
        | Effect::ClearTimer(_) => None,
    });
    assert_eq!(backoff, Some((2, Some(LostReason::ShimKilled))));
    let told = supervisor.state().last_end.clone().unwrap_or_default();
    assert!(told.contains("supervisor process was killed"), "{told}");
    assert_eq!(
        supervisor.handle(at(600), Input::Timer(Timer::Backoff)),
        [Effect::Spawn { attempt: 2 }]
    );
    supervisor.handle(at(601), Input::Born);
    supervisor.handle(at(700), Input::Gone);
    let reason = LostReason::ShimKilled;
    assert_eq!(ending(&supervisor).cause, Cause::Lost { reason });
}

#[test]
fn what_is_lost_does_not_come_back_unless_its_supervisor_process_alone_is_gone() {
    let lost = |lifetime, stopped: bool, reason| {
        let mut supervisor = begun(lifetime);
        let mut records = recorded(&mut supervisor);
        if stopped {
            records.extend(records_of(supervisor.handle(at(3), stop())));
        }
        let always = supervisor.lifetime.clone();
        let mut again = Supervisor::resume(always, GRACE, &records);
        again.handle(at(9), Input::Lost { reason, attempt: 1 });
        again.is_over()
    };
    let always = || Lifetime::service(Restart::Always { max: 9 });
    assert!(!lost(always(), false, LostReason::ShimKilled));
    assert!(!lost(always(), false, LostReason::NoRecord));
    assert!(lost(always(), true, LostReason::ShimKilled));
    assert!(lost(always(), false, LostReason::Reboot));
    assert!(lost(always(), false, LostReason::FilesDamaged));
    assert!(lost(FINITE, false, LostReason::ShimKilled));
    let never = Lifetime::service(Restart::Never);
    assert!(lost(never, false, LostReason::ShimKilled));
}

/// The records of a first attempt that was begun.
fn recorded(supervisor: &mut Supervisor) -> Vec<EventRecord> {
    let lifetime = supervisor.lifetime.clone();
    let missing = Vec::new();
    let created = Supervisor::new(lifetime, GRACE).handle(at(0), Input::Admitted { missing });
    let started = supervisor.handle(at(1), Input::Started { at: at(1), pid: 9 });
    records_of(created.into_iter().chain(started))
}

fn records_of(effects: impl IntoIterator<Item = Effect>) -> Vec<EventRecord> {
    let record = |effect| match effect {
        Effect::Record(record) => Some(record),
        Effect::Spawn { .. }
        | Effect::Send(_)
        | Effect::SetTimer { .. }
        | Effect::ClearTimer(_) => None,
    };
    effects.into_iter().filter_map(record).collect()
}
