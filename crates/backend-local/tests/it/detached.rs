//! Leaders that exit with 0 and leave a tree that is kept: launchers, daemons, wrappers.

use std::time::Duration;

use ostler_backend::{
    Backend, ControlCommand, ExitRecord, KillReason, LaunchIo, LaunchPlan, LeaderOutcome,
    ProcessEvent, RecoveryOutcome, SpawnHandle,
};
use ostler_backend_local::{LocalBackend, ZygoteConfig};
use ostler_model::termination::WaitStatus;
use ostler_model::{ExecutionId, OrphanPolicy, StreamName, TermSize, TimeoutKind};

use crate::support::{
    BackendFixture, TestCase, members, next_event, output, sh, this_executable, wait_exit,
    wait_output, wait_until,
};
use crate::test_daemon::{KEPT, TestDaemon};

pub(crate) const CASES: &[TestCase] = &[
    ("what_a_launcher_leaves_goes_on_in_its_place", launcher),
    ("the_same_on_threads", launcher_on_threads),
    ("it_ends_with_the_last_one", last_one),
    ("a_daemon_that_fails_later_is_the_failure", crash_later),
    ("a_leader_that_fails_takes_all_with_it", failed_leader),
    ("what_ends_at_once_was_never_detached", ends_at_once),
    ("clocks_run_on", clocks),
    ("it_can_be_frozen", frozen),
    ("on_a_terminal", terminal),
    ("signals_reach_who_is_left", signalled),
    ("a_new_daemon_is_told", adopted),
    ("it_may_end_while_no_daemon_lives", ended_alone),
    ("it_is_stopped_before_it_was_told", stopped_early),
];

/// A classic daemon: two forks, its own session, none of its parent's descriptors but the output.
/// Exits when its standard input ends, with the status in its argument.
const DAEMON: &str = "import os,sys,time,signal\n\
    if os.fork(): os._exit(0)\n\
    os.setsid()\n\
    if os.fork(): os._exit(0)\n\
    exec(sys.argv[1])";

fn durable_plan(script: &str) -> LaunchPlan {
    let mut plan = sh(script);
    plan.orphan_policy = OrphanPolicy::Keep;
    plan.timeouts.grace = Duration::from_secs(2);
    plan
}

fn daemon(body: &str) -> LaunchPlan {
    let mut plan = crate::support::argv(&["python3", "-c", DAEMON, body]);
    plan.program = "/usr/bin/env".into();
    plan.argv.insert(0, "env".into());
    plan.orphan_policy = OrphanPolicy::Keep;
    plan
}

async fn wait_detached(handle: &mut SpawnHandle) -> WaitStatus {
    next_event(handle, |report| match report {
        ProcessEvent::Detached { status } => Some(*status),
        ProcessEvent::Exited { record, .. } => panic!("it ended: {record:?}"),
        _ => None,
    })
    .await
}

async fn stop(handle: &SpawnHandle, grace: Duration) {
    let sent = handle.control.send(ControlCommand::Stop { grace }).await;
    sent.expect("it takes orders");
}

fn status(record: &ExitRecord) -> (WaitStatus, Option<KillReason>) {
    match &record.outcome {
        LeaderOutcome::Ended {
            status,
            kill_reason: ladder,
        } => (*status, *ladder),
        LeaderOutcome::SpawnFailed { message, .. } => panic!("not spawned: {message}"),
        LeaderOutcome::ContainerLost => panic!("not in a container"),
    }
}

const LAUNCHER: &str = "setsid nohup sh -c 'while :; do echo tick; sleep 0.02; done' & exit 0";

fn check_survives(fixture: &BackendFixture) {
    let plan = durable_plan(LAUNCHER);
    let (id, dir) = (plan.id, fixture.dir(plan.id));
    fixture.runtime.block_on(async {
        let mut handle = fixture.backend.spawn(plan).await.expect("it spawns");
        assert_eq!(wait_detached(&mut handle).await, WaitStatus::Code(0));
        assert!(!dir.join("exit").exists());
        let before = output(&dir, StreamName::Stdout).len();
        wait_output(&mut handle, &dir, "tick\n").await;
        wait_until(|| output(&dir, StreamName::Stdout).len() > before + 20);
        let seen = fixture
            .backend
            .snapshot(id, ostler_model::SnapshotRequest::default());
        let seen = seen.await.expect("known");
        assert!(seen.members.iter().any(|it| it.name == "sh"), "{seen:?}");
        stop(&handle, Duration::from_secs(2)).await;
        let record = wait_exit(handle).await;
        let (status, ladder) = status(&record);
        assert!(matches!(
            status,
            WaitStatus::Code(0) | WaitStatus::Signal(_)
        ));
        assert_eq!(ladder, Some(KillReason::Requested));
        assert_eq!(record.leftovers, 0, "it was the attempt itself");
        assert!(record.survivors.is_empty());
        let wall = record
            .ended_at
            .duration_since(record.started_at)
            .as_millis();
        let lived = i128::from(record.lived_ms);
        assert!(
            lived >= 100 && (wall - lived).abs() < 1_000,
            "{wall} {lived}"
        );
    });
    wait_until(|| members(id).is_empty());
    assert_eq!(fixture.sh("echo next").out(), "next\n");
}

fn launcher() {
    check_survives(&BackendFixture::new());
}

fn launcher_on_threads() {
    check_survives(&BackendFixture::with(ZygoteConfig::InProcess));
}

fn last_one() {
    for zygote in [this_executable(), ZygoteConfig::InProcess] {
        let fixture = BackendFixture::with(zygote);
        let plan = daemon("time.sleep(1.5); print('served', flush=True)");
        let dir = fixture.dir(plan.id);
        let record = fixture.runtime.block_on(async {
            let mut handle = fixture.backend.spawn(plan).await.expect("it spawns");
            wait_detached(&mut handle).await;
            wait_exit(handle).await
        });
        assert_eq!(status(&record), (WaitStatus::Code(0), None));
        assert!(record.lived_ms >= 1_500, "{}", record.lived_ms);
        assert_eq!(output(&dir, StreamName::Stdout), b"served\n");
    }
}

fn crash_later() {
    let fixture = BackendFixture::new();
    for (body, code) in [
        ("time.sleep(0.4); sys.exit(3)", WaitStatus::Code(3)),
        (
            "time.sleep(0.4); os.kill(os.getpid(), signal.SIGSEGV)",
            WaitStatus::Signal(ostler_model::Signal::try_from(11).expect("a signal")),
        ),
        // Before the detachment was reported.
        ("sys.exit(5)", WaitStatus::Code(5)),
    ] {
        let record = fixture.run(daemon(body)).record;
        assert_eq!(status(&record), (code, None), "{body}");
    }
}

fn failed_leader() {
    let fixture = BackendFixture::new();
    for (end, wanted) in [
        ("exit 4", WaitStatus::Code(4)),
        ("kill -9 $$", WaitStatus::Signal(ostler_model::Signal::KILL)),
    ] {
        let plan = durable_plan(&format!("setsid sleep 300 & sleep 301 & {end}"));
        let id = plan.id;
        let record = fixture.run(plan).record;
        assert_eq!(status(&record), (wanted, None));
        assert_eq!(record.leftovers, 2);
        assert!(members(id).is_empty());
    }
}

fn ends_at_once() {
    let fixture = BackendFixture::new();
    let plan = durable_plan("(sleep 0.01; echo late) & echo early");
    let dir = fixture.dir(plan.id);
    fixture.runtime.block_on(async {
        let mut handle = fixture.backend.spawn(plan).await.expect("it spawns");
        loop {
            match handle.events.recv().await.expect("an end").event {
                ProcessEvent::Detached { .. } => panic!("it was over"),
                ProcessEvent::Exited { record, .. } => {
                    assert_eq!(status(&record), (WaitStatus::Code(0), None));
                    break;
                }
                _ => {}
            }
        }
    });
    assert_eq!(output(&dir, StreamName::Stdout), b"early\nlate\n");
}

fn clocks() {
    let fixture = BackendFixture::new();
    for clock in [TimeoutKind::Wall, TimeoutKind::Idle] {
        let mut plan = durable_plan("setsid sleep 300 & exit 0");
        let limit = Some(Duration::from_millis(600));
        match clock {
            TimeoutKind::Wall => plan.timeouts.wall = limit,
            TimeoutKind::Idle => plan.timeouts.idle = limit,
        }
        let record = fixture.runtime.block_on(async {
            let mut handle = fixture.backend.spawn(plan).await.expect("it spawns");
            wait_detached(&mut handle).await;
            next_event(&mut handle, |report| {
                matches!(report, ProcessEvent::TimedOut { kind: it } if *it == clock).then_some(())
            })
            .await;
            wait_exit(handle).await
        });
        assert_eq!(status(&record).1, Some(KillReason::Timeout(clock)));
    }
}

fn frozen() {
    for zygote in [this_executable(), ZygoteConfig::InProcess] {
        let fixture = BackendFixture::with(zygote);
        let plan = durable_plan(LAUNCHER);
        let dir = fixture.dir(plan.id);
        fixture.runtime.block_on(async {
            let mut handle = fixture.backend.spawn(plan).await.expect("it spawns");
            wait_detached(&mut handle).await;
            for wanted in [true, false] {
                let sent = handle.control.send(ControlCommand::Freeze(wanted)).await;
                sent.expect("it takes orders");
                let frozen = next_event(&mut handle, |report| match report {
                    ProcessEvent::Frozen { frozen } => Some(*frozen),
                    _ => None,
                })
                .await;
                assert_eq!(frozen, wanted);
            }
            let before = output(&dir, StreamName::Stdout).len();
            wait_until(|| output(&dir, StreamName::Stdout).len() > before);
            stop(&handle, Duration::ZERO).await;
            wait_exit(handle).await;
        });
    }
}

fn terminal() {
    let fixture = BackendFixture::new();
    let mut plan =
        durable_plan("trap '' HUP; (while :; do stty size <&1; sleep 0.02; done) & exit 0");
    plan.io = LaunchIo::Pty(TermSize { cols: 80, rows: 24 });
    let dir = fixture.dir(plan.id);
    fixture.runtime.block_on(async {
        let mut handle = fixture.backend.spawn(plan).await.expect("it spawns");
        wait_detached(&mut handle).await;
        let size = TermSize { cols: 99, rows: 33 };
        let sent = handle.control.send(ControlCommand::Resize(size)).await;
        sent.expect("it takes orders");
        let shown = || String::from_utf8_lossy(&output(&dir, StreamName::Pty)).contains("33 99");
        wait_until(shown);
        stop(&handle, Duration::from_millis(500)).await;
        let record = wait_exit(handle).await;
        assert!(record.survivors.is_empty());
    });
}

fn signalled() {
    let fixture = BackendFixture::new();
    let body = "signal.signal(signal.SIGHUP, lambda *_: print('hup', flush=True))\n\
        print('up', flush=True)\n\
        while True: signal.pause()";
    let plan = daemon(body);
    let dir = fixture.dir(plan.id);
    fixture.runtime.block_on(async {
        let mut handle = fixture.backend.spawn(plan).await.expect("it spawns");
        wait_detached(&mut handle).await;
        wait_until(|| output(&dir, StreamName::Stdout).starts_with(b"up"));
        let hup = ostler_model::Signal::try_from(1).expect("a signal");
        handle
            .control
            .send(ControlCommand::Signal(hup))
            .await
            .expect("sent");
        wait_output(&mut handle, &dir, "hup").await;
        stop(&handle, Duration::ZERO).await;
        wait_exit(handle).await;
    });
}

/// Starts a daemon with a tree that detached, and kills the daemon; returns the running execution.
fn start_orphan(fixture: &BackendFixture, script: &str) -> ExecutionId {
    let script = format!("{KEPT}{script}");
    let daemon = TestDaemon::start(fixture.state.path(), &[&script]);
    let (id, _) = daemon.runs[0];
    daemon.kill();
    id
}

fn adopted() {
    let fixture = BackendFixture::new();
    let id = start_orphan(&fixture, LAUNCHER);
    let dir = fixture.dir(id);
    let find = async |backend: &LocalBackend| match backend.recover(id).await {
        RecoveryOutcome::Running { handle, .. } => handle,
        found => panic!("it runs: {found:?}"),
    };
    fixture.runtime.block_on(async {
        let mut handle = find(&fixture.backend.local).await;
        assert_eq!(wait_detached(&mut handle).await, WaitStatus::Code(0));
        // A second recovery.
        let second = LocalBackend::open(fixture.state.path(), this_executable()).await;
        let second = second.expect("opens");
        fixture.backend.close().await;
        let mut handle = find(&second).await;
        assert_eq!(wait_detached(&mut handle).await, WaitStatus::Code(0));
        wait_output(&mut handle, &dir, "tick").await;
        stop(&handle, Duration::from_millis(500)).await;
        let record = wait_exit(handle).await;
        assert_eq!(status(&record).1, Some(KillReason::Requested));
        second.close().await;
    });
    assert!(members(id).is_empty());
}

fn ended_alone() {
    let fixture = BackendFixture::new();
    let script = "setsid sh -c 'sleep 0.8; exit 6' & exit 0";
    let id = start_orphan(&fixture, script);
    wait_until(|| fixture.dir(id).join("exit").exists());
    let found = fixture.runtime.block_on(fixture.backend.recover(id));
    let RecoveryOutcome::Exited(record) = found else {
        panic!("it ended: {found:?}");
    };
    assert_eq!(status(&record), (WaitStatus::Code(6), None));
}

fn stopped_early() {
    let fixture = BackendFixture::new();
    let plan = durable_plan("sleep 300 & exit 0");
    let id = plan.id;
    fixture.runtime.block_on(async {
        let handle = fixture.backend.spawn(plan).await.expect("it spawns");
        stop(&handle, Duration::ZERO).await;
        let record = wait_exit(handle).await;
        assert_eq!(status(&record).1, Some(KillReason::Requested));
    });
    assert!(members(id).is_empty());
}
