//! The status table, row by row, and what must hold for every fold.

use ostler_model::status::{PROCESS_STATUSES, ProcessStatus, StatusNames, status_names};
use ostler_model::termination::{TimeoutKind, WaitStatus};
use ostler_model::{
    Event, EventRecord, Lifetime, LostReason, Phase, Principal, ReadinessSignal, RestartPolicy,
    ServiceStage, Signal, SignalKind, State, StopReason, Termination, TerminationCause, Timestamp,
    Usage,
};
use proptest::prelude::*;

const FINITE: Lifetime = Lifetime::Finite {
    timeout: None,
    idle: None,
};
static SERVICE: std::sync::LazyLock<Lifetime> =
    std::sync::LazyLock::new(|| Lifetime::service(RestartPolicy::OnFailure { max: 2 }));

fn fold(events: Vec<Event>) -> State {
    let records: Vec<EventRecord> = events
        .into_iter()
        .zip(0..)
        .map(|(event, seq)| record(seq, event))
        .collect();
    State::fold(&records)
}

fn record(seq: u64, event: Event) -> EventRecord {
    let second = i64::try_from(seq).expect("a small number") + 1_700_000_000;
    EventRecord {
        seq,
        at: Timestamp::from_second(second).expect("a valid time"),
        offset: 0,
        event,
    }
}

fn created() -> Event {
    Event::Created {
        missing: Vec::new(),
    }
}

fn started() -> Event {
    Event::Started { attempt: 1, pid: 7 }
}

fn stopping(order: StopReason) -> Event {
    Event::Stopping { order }
}

fn finished(ending: Termination) -> Event {
    Event::Finished { ending }
}

fn words(state: &State, lifetime: &Lifetime) -> [&'static str; 6] {
    let StatusNames {
        process,
        session,
        shell,
        service,
        record,
        task,
    } = status_names(state, lifetime);
    [process.as_str(), session, shell, service, record, task]
}

fn ready(unprobed: bool) -> Event {
    Event::Ready {
        attempt: 1,
        evidence: "port 80".to_owned(),
        signs: Vec::new(),
        unprobed,
        warnings: Vec::new(),
    }
}

fn unwell() -> Event {
    Event::Health {
        ok: false,
        detail: "500".to_owned(),
    }
}

fn stage(stage: ServiceStage) -> Event {
    Event::Stage {
        attempt: 1,
        stage,
        sign: ReadinessSignal {
            kind: SignalKind::Socket,
            detail: "127.0.0.1:80 listens".to_owned(),
            at: Timestamp::UNIX_EPOCH,
        },
    }
}

#[test]
fn what_was_seen_of_an_attempt_ends_with_it() {
    let exited = Event::Exited {
        attempt: 1,
        status: WaitStatus::Code(1),
        leftovers: 0,
        out_of_memory: false,
        usage: Usage::default(),
    };
    let events = vec![created(), started(), ready(false)];
    assert!(fold(events.clone()).is_ready());
    let state = fold(events.into_iter().chain([exited]).collect());
    assert_eq!((state.is_ready(), state.stage), (false, None));
    assert_eq!(status_names(&state, &SERVICE).service, "starting");
}

#[test]
fn every_living_row() {
    let paused = Event::Paused {
        by: Principal::unix(0),
    };
    let asks = Event::PromptDetected {
        text: "sure?".to_owned(),
        secret: false,
    };
    let ends = stopping(StopReason::SessionEnded);
    // After `running`: the words for a shell process, a service, a record and an MCP task.
    let rows = [
        (vec![], "starting pending running working"),
        (vec![started()], "running starting running working"),
        (
            vec![started(), stage(ServiceStage::Listening)],
            "running listening running working",
        ),
        (
            vec![started(), stage(ServiceStage::Responding)],
            "running responding running working",
        ),
        (
            vec![started(), ready(true)],
            "running running running working",
        ),
        (
            vec![started(), ready(false)],
            "running ready running working",
        ),
        (
            vec![started(), unwell()],
            "running degraded running working",
        ),
        (
            vec![started(), ready(false), unwell()],
            "running degraded running working",
        ),
        (vec![started(), paused], "running starting paused working"),
        (
            vec![started(), asks],
            "running starting running input_required",
        ),
        (vec![started(), ends], "running stopping running working"),
    ];
    for (events, expected) in rows {
        let state = fold(std::iter::once(created()).chain(events).collect());
        let words = words(&state, &SERVICE).join(" ");
        assert_eq!(words, format!("running running {expected}"), "{state:?}");
    }
}

/// The words of one row, in the order of the columns of [`StatusNames`].
type Words = [&'static str; 6];

fn check(order: Option<StopReason>, ending: Termination, expected: Words) {
    let mut events = vec![created(), started()];
    events.extend(order.map(stopping));
    events.push(finished(ending));
    let state = fold(events);
    assert_eq!(words(&state, &FINITE), expected, "{state:?}");
    assert_eq!(words(&state, &SERVICE), expected, "{state:?}");
}

fn by_term(cause: TerminationCause) -> Termination {
    Termination::new(cause, WaitStatus::Signal(Signal::TERM))
}

const FAILED: Words = [
    "failed",
    "exited",
    "failed",
    "failed",
    "failed",
    "completed",
];
const BROKEN: Words = ["error", "exited", "failed", "failed", "failed", "failed"];

#[test]
fn every_row_that_ended_by_itself() {
    let completed = [
        "completed",
        "exited",
        "finished",
        "stopped",
        "completed",
        "completed",
    ];
    let code = |code| Termination::new(TerminationCause::Exited, WaitStatus::Code(code));
    check(None, code(0), completed);
    check(None, code(1), FAILED);
    check(None, by_term(TerminationCause::Signaled), FAILED);
    let no_memory = ["error", "exited", "failed", "failed", "failed", "completed"];
    check(None, by_term(TerminationCause::OutOfMemory), no_memory);
}

#[test]
fn every_row_that_was_ended() {
    for clock in [TimeoutKind::Wall, TimeoutKind::Idle] {
        let timed_out = [
            "terminated",
            "killed",
            "killed",
            "failed",
            "failed",
            "completed",
        ];
        check(
            None,
            by_term(TerminationCause::TimedOut { clock }),
            timed_out,
        );
    }
    let ask = StopReason::Requested {
        by: Principal::unix(0),
        reason: None,
        force: false,
        interrupt: false,
    };
    let stopped = by_term(TerminationCause::Stopped { reason: None });
    let mut words = [
        "terminated",
        "killed",
        "killed",
        "stopped",
        "cancelled",
        "completed",
    ];
    check(Some(ask), stopped.clone(), words);
    words[5] = "cancelled";
    check(Some(StopReason::Cancelled), stopped, words);
}

#[test]
fn every_row_without_a_status() {
    let not_born = TerminationCause::SpawnFailed {
        step: "exec".to_owned(),
        errno: None,
        message: String::new(),
    };
    check(None, Termination::without_status(not_born), BROKEN);
    for reason in [
        LostReason::Reboot,
        LostReason::ShimKilled,
        LostReason::ContainerGone,
        LostReason::NoRecord,
    ] {
        check(
            None,
            Termination::without_status(TerminationCause::Lost { reason }),
            BROKEN,
        );
    }
}

#[test]
fn too_many_restarts_are_a_crash_loop() {
    let third = Event::Started { attempt: 3, pid: 9 };
    let failed = Termination::new(TerminationCause::Exited, WaitStatus::Code(1));
    let state = fold(vec![
        created(),
        started(),
        third.clone(),
        finished(failed.clone()),
    ]);
    let service = |lifetime: &Lifetime| status_names(&state, lifetime).service;
    assert_eq!(service(&SERVICE), "crash_looping");
    assert_eq!(status_names(&state, &SERVICE).record, "failed");
    let never = Lifetime::service(RestartPolicy::Never);
    assert_eq!(service(&never), "failed");
    let first = fold(vec![created(), started(), finished(failed)]);
    assert_eq!(status_names(&first, &never).service, "failed");
    let well = Termination::new(TerminationCause::Exited, WaitStatus::Code(0));
    let state = fold(vec![created(), third, finished(well)]);
    assert_eq!(status_names(&state, &SERVICE).service, "stopped");
}

#[test]
fn statuses_are_read_as_they_are_spelled() {
    for status in PROCESS_STATUSES {
        assert_eq!(ProcessStatus::parse(status.as_str()), Some(status));
    }
    assert_eq!(ProcessStatus::parse("RUNNING"), None);
}

fn any_event() -> impl Strategy<Value = Event> {
    let order = prop_oneof![
        Just(StopReason::SessionEnded),
        Just(StopReason::Shutdown),
        Just(StopReason::Cancelled),
        Just(StopReason::TimedOut {
            clock: TimeoutKind::Idle
        }),
    ];
    let ending = prop_oneof![
        (0..4).prop_map(|code| Termination::new(TerminationCause::Exited, WaitStatus::Code(code))),
        Just(Termination::without_status(TerminationCause::Lost {
            reason: LostReason::NoRecord
        })),
    ];
    prop_oneof![
        Just(created()),
        (1_u32..5, 1_u32..9).prop_map(|(attempt, pid)| Event::Started { attempt, pid }),
        order.prop_map(stopping),
        (1_u32..5, 0_u32..3).prop_map(|(attempt, leftovers)| Event::Exited {
            attempt,
            status: WaitStatus::Code(0),
            leftovers,
            out_of_memory: false,
            usage: Usage::default(),
        }),
        ending.prop_map(finished),
        (0_u64..50, 50_u64..99).prop_map(|(from, to)| Event::Trimmed {
            from,
            to,
            reason: ostler_model::event::TrimReason::Cleared,
        }),
        Just(Event::Paused {
            by: Principal::unix(1)
        }),
        Just(Event::Adopted { attempt: 1 }),
        Just(Event::PromptDetected {
            text: "?".to_owned(),
            secret: true
        }),
        Just(Event::PromptGone {}),
    ]
}

proptest! {
    #[test]
    fn folds_hold(events in prop::collection::vec(any_event(), 0..40)) {
        let records: Vec<EventRecord> = events.into_iter().zip(0..).map(|(event, seq)| record(seq, event)).collect();
        let mut state = State::default();
        for (done, record) in records.iter().enumerate() {
            let before = state.clone();
            state.apply(record);
            prop_assert_eq!(state.events, record.seq + 1);
            // The end and the first decision stand.
            if before.is_finished() {
                prop_assert!(state.is_finished());
                prop_assert_eq!(&state.ending, &before.ending);
                prop_assert_eq!(state.ended_at, before.ended_at);
            }
            if before.stopping.is_some() {
                prop_assert_eq!(&state.stopping, &before.stopping);
            }
            prop_assert_eq!(state.is_finished(), state.ending.is_some());
            prop_assert_eq!(state.phase == Phase::Finished, state.is_finished());
            prop_assert_eq!(&state, &State::fold(&records[..=done]));
            // Every state has a word for each interface.
            for word in words(&state, &SERVICE) {
                prop_assert!(!word.is_empty());
            }
        }
    }

    #[test]
    fn events_survive_json(event in any_event(), seq: u64, offset: u64) {
        let record = EventRecord { seq, offset, ..record(3, event) };
        let line = serde_json::to_string(&record).expect("spelled");
        prop_assert!(!line.contains('\n'));
        prop_assert_eq!(serde_json::from_str::<EventRecord>(&line).expect("read"), record);
    }
}
