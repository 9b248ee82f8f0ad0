//! Freezing and thawing.

use std::time::Duration;

use ostler_backend::{
    Backend, ControlCommand, KillReason, LaunchIo, LeaderOutcome, ProcessEvent, RecoveryOutcome,
    SpawnHandle,
};
use ostler_backend_local::ZygoteConfig;
use ostler_model::{StreamName, TimeoutKind};

use crate::support::{
    BackendFixture, LONG, TestCase, argv, next_event, output, sh, wait_exit, wait_output,
};

pub(crate) const CASES: &[TestCase] = &[
    ("a_frozen_tree_prints_nothing_and_goes_on", frozen),
    ("a_frozen_tree_on_threads", frozen_on_threads),
    ("clocks_stand_still_with_the_tree", clocks),
    ("a_stop_thaws_first", stopped),
    ("a_freeze_is_for_one_command_only", next_command),
    ("a_new_daemon_finds_it_frozen", adopted),
];

async fn freeze(handle: &mut SpawnHandle, wanted: bool) -> bool {
    let sent = handle.control.send(ControlCommand::Freeze(wanted)).await;
    sent.expect("it takes orders");
    next_event(handle, |report| match report {
        ProcessEvent::Frozen { frozen } => Some(*frozen),
        _ => None,
    })
    .await
}

/// Counts up as long as it runs, as does a child of it.
const COUNTERS: &str = "(while :; do echo child; sleep 0.005; done) & \
    while :; do echo parent; sleep 0.005; done";

fn stands_still(fixture: &BackendFixture) {
    let mut plan = sh(COUNTERS);
    plan.timeouts.grace = Duration::ZERO;
    let dir = fixture.dir(plan.id);
    fixture.runtime.block_on(async {
        let mut handle = fixture.backend.spawn(plan).await.expect("it spawns");
        wait_output(&mut handle, &dir, "child").await;
        wait_output(&mut handle, &dir, "parent").await;
        assert!(freeze(&mut handle, true).await);
        // Earlier output may still arrive; after that nothing may.
        let quiet = async {
            loop {
                let report = handle.events.recv().await.expect("a report");
                let late = matches!(
                    report.event,
                    ProcessEvent::Output { .. } | ProcessEvent::Started { .. }
                );
                assert!(late, "{report:?}");
            }
        };
        let half = Duration::from_millis(150);
        assert!(tokio::time::timeout(half, quiet).await.is_err());
        let before = output(&dir, StreamName::Stdout);
        let silence = handle.events.recv();
        assert!(tokio::time::timeout(half, silence).await.is_err());
        assert_eq!(output(&dir, StreamName::Stdout), before);
        assert!(!freeze(&mut handle, false).await);
        next_event(&mut handle, |report| {
            matches!(report, ProcessEvent::Output { .. }).then_some(())
        })
        .await;
        let grace = Duration::ZERO;
        let stop = ControlCommand::Stop { grace };
        handle.control.send(stop).await.expect("sent");
        let record = wait_exit(handle).await;
        assert!(record.survivors.is_empty());
    });
}

fn frozen() {
    stands_still(&BackendFixture::new());
}

fn frozen_on_threads() {
    stands_still(&BackendFixture::with(ZygoteConfig::InProcess));
}

fn clocks() {
    let fixture = BackendFixture::new();
    let mut plan = sh("echo up; sleep 0.3; echo done");
    plan.timeouts.wall = Some(Duration::from_millis(1_000));
    plan.timeouts.idle = Some(Duration::from_millis(900));
    let dir = fixture.dir(plan.id);
    fixture.runtime.block_on(async {
        let mut handle = fixture.backend.spawn(plan).await.expect("it spawns");
        wait_output(&mut handle, &dir, "up").await;
        assert!(freeze(&mut handle, true).await);
        let longer_than_both = Duration::from_millis(1_300);
        let clock = next_event(&mut handle, |report| {
            matches!(report, ProcessEvent::TimedOut { .. }).then_some(())
        });
        assert!(tokio::time::timeout(longer_than_both, clock).await.is_err());
        assert!(!freeze(&mut handle, false).await);
        let record = wait_exit(handle).await;
        let LeaderOutcome::Ended {
            kill_reason: ladder,
            ..
        } = record.outcome
        else {
            panic!("{:?}", record.outcome);
        };
        assert_eq!(ladder, None);
        assert!(String::from_utf8_lossy(&output(&dir, StreamName::Stdout)).contains("done"));
    });
    // A timeout that was not suspended still expires.
    let mut plan = sh("sleep 60");
    plan.timeouts.wall = Some(Duration::from_millis(50));
    plan.timeouts.grace = Duration::ZERO;
    let record = fixture.run(plan).record;
    let LeaderOutcome::Ended {
        kill_reason: ladder,
        ..
    } = record.outcome
    else {
        panic!("{:?}", record.outcome);
    };
    assert_eq!(ladder, Some(KillReason::Timeout(TimeoutKind::Wall)));
}

fn stopped() {
    let fixture = BackendFixture::new();
    // Prints on SIGTERM, which a frozen process could not.
    let mut plan = sh("trap 'echo farewell; exit 3' TERM; echo up; while :; do sleep 0.01; done");
    plan.timeouts.grace = LONG;
    let dir = fixture.dir(plan.id);
    fixture.runtime.block_on(async {
        let mut handle = fixture.backend.spawn(plan).await.expect("it spawns");
        wait_output(&mut handle, &dir, "up").await;
        assert!(freeze(&mut handle, true).await);
        let stop = ControlCommand::Stop { grace: LONG };
        handle.control.send(stop).await.expect("sent");
        wait_exit(handle).await;
        assert!(String::from_utf8_lossy(&output(&dir, StreamName::Stdout)).contains("farewell"));
    });
}

fn next_command() {
    let fixture = BackendFixture::new();
    let plan = argv(&["/bin/sleep", "300"]);
    fixture.runtime.block_on(async {
        let mut handle = fixture.backend.spawn(plan).await.expect("it spawns");
        assert!(freeze(&mut handle, true).await);
        let grace = Duration::ZERO;
        let stop = ControlCommand::Stop { grace };
        handle.control.send(stop).await.expect("sent");
        wait_exit(handle).await;
    });
    for _ in 0..4 {
        assert_eq!(fixture.sh("echo on").out(), "on\n");
    }
}

fn adopted() {
    let fixture = BackendFixture::new();
    let mut plan = sh("cat; sleep 300");
    plan.io = LaunchIo::Piped;
    let id = plan.id;
    fixture.runtime.block_on(async {
        let mut handle = fixture.backend.spawn(plan).await.expect("it spawns");
        assert!(freeze(&mut handle, true).await);
        fixture.backend.close().await;
    });
    let keeper = crate::support::this_executable();
    let again = ostler_backend_local::LocalBackend::open(fixture.state.path(), keeper);
    fixture.runtime.block_on(async {
        let backend = again.await.expect("opens again");
        let RecoveryOutcome::Running { mut handle, .. } = backend.recover(id).await else {
            panic!("it runs");
        };
        let actual = next_event(&mut handle, |report| match report {
            ProcessEvent::Frozen { frozen } => Some(*frozen),
            _ => None,
        });
        assert!(actual.await, "the first words say so");
        assert!(!freeze(&mut handle, false).await);
        let grace = Duration::ZERO;
        let stop = ControlCommand::Stop { grace };
        handle.control.send(stop).await.expect("sent");
        wait_exit(handle).await;
        backend.close().await;
    });
}
