//! Races over a fake backend: stop, clean, exit and list on the same execution, thousands of times,
//! and recovery from every state that an engine can leave.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use crate::{CleanOutcome, Engine, ListFilter, Settings, StartRequest, StopRequest, WaitFor};
use ostler_backend::{ControlCommand, SpawnError};
use ostler_journal::{Ledger, LedgerCursor, LedgerEntry};
use ostler_model::termination::WaitStatus;
use ostler_model::{
    Caller, Capability, CapabilitySet, ErrorCode, Event, ExecutionId, LimitBackend, LostReason,
    Owner, Principal, Scope, StopReason, Termination, TerminationCause, Timestamp,
};
use ostler_testkit::fake_backend::{FakeBackend, SpawnBehavior};
use tempfile::TempDir;
use tokio::task::JoinSet;

const PATIENCE: Duration = Duration::from_secs(30);
const ROUNDS: u32 = 500;

fn caller() -> Caller {
    Caller {
        owner: Owner {
            principal: Principal::unix(0),
            project: None,
            session: None,
            task: None,
            channel: ostler_model::RequestChannel::Local,
        },
        scope: Scope::Principal,
        projects: ostler_model::ProjectView::default(),
    }
}

fn request() -> StartRequest {
    let mut request = StartRequest::argv(["true"], "/");
    request.base_env = vec![("PATH".into(), "/usr/bin:/bin".into())];
    request
}

fn service(restart: ostler_model::RestartPolicy) -> StartRequest {
    let mut request = request();
    request.lifetime = Some(ostler_model::Lifetime::service(restart));
    request
}

async fn open(state: &TempDir, backend: &Arc<FakeBackend>) -> Engine {
    let backend: Arc<dyn ostler_backend::Backend> = Arc::clone(backend) as _;
    Engine::open(Settings::new(state.path()), backend)
        .await
        .expect("an engine")
}

async fn fixture(act: SpawnBehavior) -> (TempDir, Arc<FakeBackend>, Engine) {
    let state = TempDir::new().expect("a directory");
    let backend = Arc::new(FakeBackend::new(state.path(), move |_| act.clone()));
    let engine = open(&state, &backend).await;
    (state, backend, engine)
}

async fn wait_exit(engine: &Engine, id: &str) -> crate::ExecutionInfo {
    engine
        .wait(&caller(), id, &WaitFor::Exit, Some(PATIENCE))
        .await
        .expect("known")
        .info
}

async fn one_round(engine: &Engine, backend: &Arc<FakeBackend>, round: u32) {
    let info = engine.start(&caller(), request()).await.expect("started");
    let (id, text) = (info.id, info.id.to_string());
    let reason = |who: &str| StopRequest {
        force: round.is_multiple_of(3),
        reason: Some(who.to_owned()),
        ..StopRequest::default()
    };
    let caller = caller();
    let ids = [text.clone()];
    let first = engine.stop(&caller, &text, reason("first"));
    let second = engine.stop(&caller, &text, reason("second"));
    let clean = engine.clean(&caller, &ids);
    let exit = async { backend.end(id, WaitStatus::Code(0)) };
    let list = async { engine.list(&caller, &ListFilter::default()) };
    let (first, second, cleaned, exited, listed) = match round % 4 {
        0 => tokio::join!(first, second, clean, exit, list),
        1 => {
            let (e, a, c, b, l) = tokio::join!(exit, first, clean, second, list);
            (a, b, c, e, l)
        }
        2 => {
            let (c, e, l, b, a) = tokio::join!(clean, exit, list, second, first);
            (a, b, c, e, l)
        }
        _ => {
            let (a, e, c, l, b) = tokio::join!(first, exit, clean, list, second);
            (a, b, c, e, l)
        }
    };
    for info in listed.iter().filter(|it| it.id == id) {
        let process = info.status().process.as_str();
        assert!(["running", "completed", "terminated"].contains(&process));
    }
    let mut causes = Vec::new();
    for stopped in [first, second] {
        match stopped {
            Ok(info) => causes.push(info.state.ending.expect("a stop answers at the end").cause),
            // Cleaned before the request arrived.
            Err(error) => assert_eq!(error.code(), ErrorCode::ProcessNotFound, "{error}"),
        }
    }
    for cause in &causes {
        match cause {
            TerminationCause::Exited => assert!(exited, "an exit nobody made"),
            TerminationCause::Stopped { reason } => {
                assert!(!exited, "stopped ({reason:?}) and exited");
            }
            other @ (TerminationCause::Signaled
            | TerminationCause::TimedOut { .. }
            | TerminationCause::OutOfMemory
            | TerminationCause::SpawnFailed { .. }
            | TerminationCause::Lost { .. }) => panic!("{other:?}"),
        }
    }
    assert!(
        causes.windows(2).all(|pair| pair[0] == pair[1]),
        "{causes:?}"
    );
    match &cleaned.expect("a list")[0].1 {
        CleanOutcome::Cleaned | CleanOutcome::Discarded => {}
        CleanOutcome::Running => {
            let outcome = engine.clean(&caller, &ids).await.expect("a list");
            assert_eq!(outcome[0].1, CleanOutcome::Cleaned);
        }
        other @ (CleanOutcome::NotFound | CleanOutcome::Failed(_)) => panic!("{other:?}"),
    }
    assert!(engine.info(&caller, &text).is_err());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn stop_clean_exit_and_list_never_race_into_a_wrong_state() {
    race(ROUNDS).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn full_stop_clean_exit_and_list_never_race_into_a_wrong_state() {
    race(10 * ROUNDS).await;
}

async fn race(rounds: u32) {
    let (state, backend, engine) = fixture(SpawnBehavior::Run).await;
    let mut lanes = tokio::task::JoinSet::new();
    for lane in 0..4_u32 {
        let (engine, backend) = (engine.clone(), Arc::clone(&backend));
        lanes.spawn(async move {
            for round in 0..rounds / 4 {
                one_round(&engine, &backend, round * 4 + lane).await;
            }
        });
    }
    while let Some(lane) = lanes.join_next().await {
        lane.expect("no lane panics");
    }
    assert_eq!(*engine.running_count_watch().borrow(), 0);
    assert_eq!(backend.running(), 0);
    assert!(engine.list(&caller(), &ListFilter::default()).is_empty());
    let left = std::fs::read_dir(state.path().join("executions")).expect("readable");
    assert_eq!(left.count(), 0, "directories are left");
    tokio::time::timeout(PATIENCE, engine.shutdown())
        .await
        .expect("no task is left");
}

#[tokio::test(flavor = "multi_thread")]
async fn stops_that_come_together_share_the_first_reason() {
    let (_state, backend, engine) = fixture(SpawnBehavior::Run).await;
    let id = engine
        .start(&caller(), request())
        .await
        .expect("started")
        .id;
    let caller = caller();
    let text = id.to_string();
    let stops = (0..20).map(|number| {
        let request = StopRequest {
            reason: Some(format!("number {number}")),
            ..StopRequest::default()
        };
        engine.stop(&caller, &text, request)
    });
    let stopped = futures_util::future::join_all(stops).await;
    let causes: Vec<_> = stopped
        .into_iter()
        .map(|info| info.expect("stopped").state.ending.expect("ended").cause)
        .collect();
    assert!(
        causes.windows(2).all(|pair| pair[0] == pair[1]),
        "{causes:?}"
    );
    let stops = |order: &ControlCommand| matches!(order, ControlCommand::Stop { .. });
    assert_eq!(
        backend.commands(id).iter().filter(|it| stops(it)).count(),
        1
    );
    engine.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dropped_begin_or_run_leaves_nothing() {
    let (_state, backend, engine) = fixture(SpawnBehavior::Run).await;
    let mut activity = engine.running_count_watch();
    for _ in 0..200 {
        drop(
            engine
                .start_guarded(&caller(), request())
                .await
                .expect("started"),
        );
        let caller = caller();
        let run = engine.run(&caller, request(), None);
        let gone = tokio::time::timeout(Duration::from_micros(200), run).await;
        assert!(gone.is_err(), "it does not end by itself");
    }
    let none = activity.wait_for(|running| *running == 0);
    tokio::time::timeout(PATIENCE, none)
        .await
        .expect("all end")
        .expect("counted");
    assert_eq!(backend.running(), 0);
    let kept = engine
        .start_guarded(&caller(), request())
        .await
        .expect("started")
        .commit()
        .expect("open");
    assert!(
        !engine
            .info(&caller(), &kept.id.short())
            .expect("known")
            .state
            .is_finished()
    );
    engine.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn durable_executions_go_on_without_the_engine_and_are_adopted() {
    let (state, backend, engine) = fixture(SpawnBehavior::Run).await;
    let id = engine
        .start(&caller(), request())
        .await
        .expect("started")
        .id;
    let guard = engine
        .start_guarded(&caller(), request())
        .await
        .expect("started");
    engine.shutdown().await;
    assert_eq!(backend.running(), 1, "what nobody knows is ended");
    drop(guard);
    drop(engine);
    let engine = open(&state, &backend).await;
    let info = engine.info(&caller(), &id.short()).expect("known");
    assert_eq!(info.state.adoptions, 1);
    assert_eq!(*engine.running_count_watch().borrow(), 1);
    backend.end(id, WaitStatus::Code(5));
    let info = wait_exit(&engine, &id.short()).await;
    assert_eq!(info.state.ending.expect("ended").code, Some(5));
    engine.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_ledger_gets_the_end_of_everything_that_an_earlier_engine_left_without_one() {
    let (state, backend, engine) = fixture(SpawnBehavior::Run).await;
    let mut ids = Vec::new();
    for _ in 0..2 {
        let started = engine.start(&caller(), request()).await;
        ids.push(started.expect("started").id);
    }
    let [ended, running] = ids[..] else {
        panic!("two were started");
    };
    backend.end(ended, WaitStatus::Code(3));
    wait_exit(&engine, &ended.to_string()).await;
    engine.shutdown().await;
    drop(engine);
    let [never_started, removed] = [ExecutionId::mint(), ExecutionId::mint()];
    let mut ledger = Ledger::open(&state.path().join("ledger")).expect("opened");
    let mut append = |id, event| {
        let appended = ledger.append(&LedgerEntry {
            at: Timestamp::now(),
            execution: Some(id),
            by: caller().owner,
            event,
            detail: BTreeMap::new(),
        });
        appended.expect("appended");
    };
    // As if the end of `ended` had not been written.
    for id in [never_started, removed, ended] {
        let missing = Vec::new();
        append(id, Event::Created { missing });
    }
    append(removed, Event::Started { attempt: 1, pid: 7 });
    let before = ledger.end();
    drop(ledger);
    let mut found = Vec::new();
    for _ in 0..2 {
        let engine = open(&state, &backend).await;
        let reader = engine.ledger().expect("open");
        let page = reader.read(LedgerCursor(before), 1_000).expect("readable");
        found = page.records;
        engine.shutdown().await;
    }
    let ends = found.into_iter().filter_map(|it| {
        let Event::Finished { ending } = it.entry.event else {
            return None;
        };
        Some((it.entry.execution?, ending))
    });
    let ends: BTreeMap<ExecutionId, Termination> = ends.collect();
    assert_eq!(ends.len(), 3, "{running} runs: {ends:?}");
    assert_eq!(ends[&ended].code, Some(3));
    let reason = LostReason::FilesDamaged;
    assert_eq!(ends[&removed].cause, TerminationCause::Lost { reason });
    let cause = ends[&never_started].cause.kind();
    assert_eq!(cause, "spawn_failed");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn what_a_shutdown_stops_was_answered_as_refused() {
    const STARTS: usize = 16;
    let (state, backend, mut engine) = fixture(SpawnBehavior::Run).await;
    for _ in 0..50 {
        let starts: JoinSet<_> = (0..STARTS)
            .map(|_| {
                let engine = engine.clone();
                async move { engine.start(&caller(), request()).await }
            })
            .collect();
        tokio::task::yield_now().await;
        engine.shutdown().await;
        let results = starts.join_all().await;
        drop(engine);
        engine = open(&state, &backend).await;
        let mut kept = 0;
        for result in results {
            match result {
                Ok(info) => {
                    let found = engine.info(&caller(), &info.id.to_string());
                    let state = found.expect("known").state;
                    assert!(!state.is_finished(), "{:?}", state.ending);
                    kept += 1;
                    assert!(backend.end(info.id, WaitStatus::Code(0)));
                }
                Err(error) => assert!(matches!(error, crate::Error::Closing), "{error}"),
            }
        }
        assert_eq!(backend.running(), 0, "{kept} were answered");
    }
    engine.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_end_between_two_engines_is_reported_with_its_own_times() {
    let (state, backend, engine) = fixture(SpawnBehavior::Run).await;
    let ended = engine
        .start(&caller(), request())
        .await
        .expect("started")
        .id;
    let lost = engine
        .start(&caller(), request())
        .await
        .expect("started")
        .id;
    engine.shutdown().await;
    drop(engine);
    backend.end(ended, WaitStatus::Code(0));
    backend.kill_shim(lost);
    let after = ostler_model::Timestamp::now();
    let engine = open(&state, &backend).await;
    let info = engine.info(&caller(), &ended.short()).expect("known");
    assert!(info.state.ending.as_ref().expect("ended").is_success());
    assert!(info.state.ended_at.expect("a time") <= after);
    let info = engine.info(&caller(), &lost.short()).expect("known");
    let ending = info.state.ending.expect("ended");
    let reason = LostReason::NoRecord;
    assert_eq!(
        (ending.cause, ending.code),
        (TerminationCause::Lost { reason }, None)
    );
    assert_eq!(*engine.running_count_watch().borrow(), 0);
    engine.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_shim_is_a_loss_and_never_an_exit() {
    let (_state, backend, engine) = fixture(SpawnBehavior::Run).await;
    let id = engine
        .start(&caller(), request())
        .await
        .expect("started")
        .id;
    backend.kill_shim(id);
    let info = wait_exit(&engine, &id.short()).await;
    let reason = LostReason::ShimKilled;
    assert_eq!(
        info.state.ending.as_ref().expect("ended").cause,
        TerminationCause::Lost { reason }
    );
    assert_eq!(info.status().process.as_str(), "error");
    engine.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_durable_is_stopped_at_shutdown() {
    let state = TempDir::new().expect("a directory");
    let abilities = CapabilitySet {
        present: vec![Capability::TreeKill],
        missing: Vec::new(),
        backend: LimitBackend::None,
        root: false,
    };
    let backend =
        FakeBackend::new(state.path(), |_| SpawnBehavior::Run).with_capabilities(abilities);
    let backend = Arc::new(backend);
    let engine = open(&state, &backend).await;
    let id = engine
        .start(&caller(), request())
        .await
        .expect("started")
        .id;
    engine.shutdown().await;
    assert_eq!(backend.running(), 0);
    let info = engine.info(&caller(), &id.short()).expect("known");
    assert_eq!(info.state.stopping, Some(StopReason::Shutdown));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_spawn_that_fails_is_reported_and_frees_its_slot() {
    let refusal = SpawnError::Zygote("gone".to_owned());
    let (_state, _place, engine) = fixture(SpawnBehavior::Refuse(refusal)).await;
    let error = engine
        .start(&caller(), request())
        .await
        .expect_err("nothing spawns");
    assert_eq!(error.code(), ErrorCode::CommandExecution);
    assert_eq!(*engine.running_count_watch().borrow(), 0);
    engine.shutdown().await;
    let full = SpawnError::Storage("no space left on device".to_owned());
    let (_state, _place, engine) = fixture(SpawnBehavior::Refuse(full)).await;
    let error = engine.run(&caller(), request(), None).await;
    let error = error.expect_err("no room");
    assert_eq!(error.code(), ErrorCode::Storage, "{error}");
    engine.shutdown().await;
    let (_state, _place, engine) = fixture(SpawnBehavior::SpawnFailed { errno: 13 }).await;
    let error = engine
        .run(&caller(), request(), None)
        .await
        .expect_err("nothing spawns");
    assert_eq!(error.code(), ErrorCode::Permission);
    engine.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_comes_back_after_its_backoff_also_in_the_next_engine() {
    let (state, backend, engine) = fixture(SpawnBehavior::Run).await;
    let restart = ostler_model::RestartPolicy::OnFailure { max: 3 };
    let id = engine
        .start(&caller(), service(restart))
        .await
        .expect("started")
        .id;
    let mut notices = engine.subscribe();
    let backoff = |record: &ostler_model::EventRecord| {
        matches!(record.event, ostler_model::Event::Backoff { .. })
    };
    backend.end(id, WaitStatus::Code(1));
    let seen = async {
        loop {
            if backoff(&notices.recv().await.expect("the engine lives").record) {
                return;
            }
        }
    };
    tokio::time::timeout(PATIENCE, seen)
        .await
        .expect("it backs off");
    engine.shutdown().await;
    drop(engine);
    let engine = open(&state, &backend).await;
    let mut notices = engine.subscribe();
    let started = async {
        loop {
            let notice = notices.recv().await.expect("the engine lives");
            if let ostler_model::Event::Started { attempt, .. } = notice.record.event {
                return attempt;
            }
        }
    };
    let attempt = tokio::time::timeout(PATIENCE, started)
        .await
        .expect("it comes back");
    assert_eq!(attempt, 2);
    let info = engine
        .stop(&caller(), &id.short(), StopRequest::default())
        .await
        .expect("stopped");
    assert_eq!(info.status().service, "stopped");
    engine.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn output_is_watched_only_while_there_is_a_reader() {
    let (_state, backend, engine) = fixture(SpawnBehavior::Run).await;
    let id = engine
        .start(&caller(), request())
        .await
        .expect("started")
        .id;
    let watches = |backend: &FakeBackend| -> Vec<bool> {
        backend
            .commands(id)
            .into_iter()
            .filter_map(|order| {
                if let ControlCommand::Watch(on) = order {
                    return Some(on);
                }
                None
            })
            .collect()
    };
    assert_eq!(watches(&backend), Vec::<bool>::new());
    let quiet = WaitFor::Idle(Duration::from_millis(20));
    engine
        .wait(&caller(), &id.short(), &quiet, Some(PATIENCE))
        .await
        .expect("known");
    let follower = engine
        .follow(&caller(), &id.short(), ostler_model::Cursor::START)
        .expect("known");
    drop(follower);
    engine
        .stop(&caller(), &id.short(), StopRequest::default())
        .await
        .expect("stopped");
    let seen = watches(&backend);
    assert_eq!(seen.first(), Some(&true));
    assert!(seen.windows(2).all(|pair| pair[0] != pair[1]), "{seen:?}");
    engine.shutdown().await;
}

/// An entry is in the file before its position is published.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn pages_of_events_meet_without_overlap_while_entries_are_written() {
    const ENTRIES: u64 = 3_000;
    const READERS: usize = 3;
    let (_state, _backend, engine) = fixture(SpawnBehavior::Run).await;
    let mut readers = JoinSet::new();
    for _ in 0..READERS {
        let engine = engine.clone();
        readers.spawn(async move {
            let mut query = crate::EventFeedQuery {
                start: Some(LedgerCursor(0)),
                ..Default::default()
            };
            let mut expected = 0;
            while expected < ENTRIES {
                let page = engine.poll_events(&caller(), query, PATIENCE).await;
                let page = page.expect("a page");
                for record in &page.records {
                    assert_eq!(record.seq, expected);
                    expected += 1;
                }
                assert_eq!(page.next.0, expected);
                query.start = Some(page.next);
            }
        });
    }
    for _ in 0..ENTRIES {
        let refused = StartRequest::argv(["/no/such/program"], "/");
        engine.start(&caller(), refused).await.expect_err("refused");
    }
    while let Some(reader) = readers.join_next().await {
        reader.expect("each entry once");
    }
    engine.shutdown().await;
}
