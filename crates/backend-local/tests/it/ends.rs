//! Commands that must be killed, with no process left.

use std::time::Duration;

use ostler_backend::{Backend, ControlCommand, KillReason, LeaderOutcome, ProcessEvent};
use ostler_model::{Signal, TimeoutKind};

use crate::support::{
    BackendFixture, FinishedRun, TestCase, members, next_event, sh, timed, wait_exit, wait_output,
    wait_started,
};

pub(crate) const CASES: &[TestCase] = &[
    ("a_timeout_ends_the_whole_tree", timeout_ends_all),
    ("no_output_is_a_timeout_too", idle_timeout),
    (
        "a_background_child_holding_the_pipe_does_not_block",
        held_pipe,
    ),
    ("leftovers_that_end_soon_are_waited_for", short_leftovers),
    ("fifty_daemons", fifty_daemons),
    ("a_stopped_process_ends_too", stopped_process),
    ("a_forced_stop_is_at_once", forced_stop),
    ("a_signal_reaches_the_group", signal_group),
    ("orders_after_the_end_are_refused", late_orders),
    ("the_tree_of_a_thread_ends_too", thread_tree),
    (
        "backends_of_one_process_leave_each_other_alone",
        two_backends,
    ),
];

const HARD: &str = "setsid sleep 300 & nohup sleep 300 & (trap '' TERM; sleep 300) & sleep 300";

fn timeout_ends_all() {
    let fixture = BackendFixture::new();
    let mut plan = sh(HARD);
    plan.timeouts.wall = Some(Duration::from_millis(500));
    plan.timeouts.grace = Duration::from_millis(500);
    let id = plan.id;
    let (done, took) = timed(|| fixture.run(plan));
    assert!(took < Duration::from_millis(2_000), "{took:?}");
    assert!(took >= Duration::from_millis(500), "{took:?}");
    let wall = Some(KillReason::Timeout(TimeoutKind::Wall));
    assert!(
        matches!(&done.record.outcome, LeaderOutcome::Ended { kill_reason, .. } if *kill_reason == wall)
    );
    assert_eq!(done.signal(), Some(15));
    assert!(members(id).is_empty());
    assert!(done.record.survivors.is_empty());
}

fn idle_timeout() {
    let fixture = BackendFixture::new();
    let mut plan = sh("for i in 1 2 3 4; do echo $i; sleep 0.2; done; sleep 300");
    plan.timeouts.idle = Some(Duration::from_millis(600));
    let (done, took) = timed(|| fixture.run(plan));
    assert!(took >= Duration::from_millis(1_200), "{took:?}");
    assert_eq!(done.out(), "1\n2\n3\n4\n");
    let idle = Some(KillReason::Timeout(TimeoutKind::Idle));
    assert!(
        matches!(&done.record.outcome, LeaderOutcome::Ended { kill_reason, .. } if *kill_reason == idle)
    );
}

fn held_pipe() {
    let fixture = BackendFixture::new();
    let (done, took) = timed(|| fixture.sh("sleep 300 & echo done"));
    assert!(took < Duration::from_millis(1_500), "{took:?}");
    assert_eq!((done.out().as_str(), done.code()), ("done\n", Some(0)));
    assert_eq!(done.record.leftovers, 1);
    assert!(matches!(
        &done.record.outcome,
        LeaderOutcome::Ended {
            kill_reason: None,
            ..
        }
    ));
}

fn short_leftovers() {
    let fixture = BackendFixture::new();
    let done = fixture.sh("(sleep 0.03; echo late) & echo early");
    assert_eq!(
        (done.out().as_str(), done.record.leftovers),
        ("early\nlate\n", 0)
    );
}

fn fifty_daemons() {
    let fixture = BackendFixture::new();
    let script = "for i in $(seq 50); do (setsid sh -c 'sleep 300 >/dev/null 2>&1 &' &) ; done; \
                  sleep 0.2; echo started";
    let plan = sh(script);
    let id = plan.id;
    let done = fixture.run(plan);
    assert_eq!((done.out().as_str(), done.code()), ("started\n", Some(0)));
    assert!(done.record.leftovers >= 50, "{}", done.record.leftovers);
    assert!(members(id).is_empty());
}

fn stopped_process() {
    let fixture = BackendFixture::new();
    let mut plan = sh("sh -c 'kill -STOP $$; sleep 300' & wait");
    plan.timeouts.wall = Some(Duration::from_millis(300));
    plan.timeouts.grace = Duration::from_millis(300);
    let id = plan.id;
    fixture.run(plan);
    assert!(members(id).is_empty());
}

fn forced_stop() {
    let fixture = BackendFixture::new();
    let mut plan = sh("trap '' TERM; echo ready; while :; do sleep 300; done");
    plan.timeouts.grace = Duration::from_secs(30);
    let (id, dir) = (plan.id, fixture.dir(plan.id));
    let record = fixture.runtime.block_on(async {
        let mut handle = fixture.backend.spawn(plan).await.expect("it spawns");
        wait_output(&mut handle, &dir, "ready").await;
        handle
            .control
            .send(ControlCommand::Stop {
                grace: Duration::from_secs(30),
            })
            .await
            .expect("sent");
        handle
            .control
            .send(ControlCommand::Stop {
                grace: Duration::ZERO,
            })
            .await
            .expect("sent");
        wait_exit(handle).await
    });
    let done = FinishedRun { dir, record };
    assert_eq!(done.signal(), Some(9));
    assert!(matches!(
        &done.record.outcome,
        LeaderOutcome::Ended {
            kill_reason: Some(KillReason::Requested),
            ..
        }
    ));
    assert!(members(id).is_empty());
}

fn signal_group() {
    let fixture = BackendFixture::new();
    let plan = sh("trap 'echo caught; exit 5' USR1; echo ready; while :; do sleep 0.05; done");
    let dir = fixture.dir(plan.id);
    let record = fixture.runtime.block_on(async {
        let mut handle = fixture.backend.spawn(plan).await.expect("it spawns");
        wait_output(&mut handle, &dir, "ready").await;
        let usr1 = Signal::try_from(10).expect("a signal");
        handle
            .control
            .send(ControlCommand::Signal(usr1))
            .await
            .expect("sent");
        wait_exit(handle).await
    });
    let done = FinishedRun { dir, record };
    // The sleep in the same group is killed by it; the shell reports its own trap.
    assert_eq!(done.code(), Some(5));
    assert!(done.out().contains("caught"));
}

fn late_orders() {
    let fixture = BackendFixture::new();
    let mut plan = sh("read line");
    plan.report_start = true;
    fixture.runtime.block_on(async {
        let mut handle = fixture.backend.spawn(plan).await.expect("it spawns");
        wait_started(&mut handle).await;
        let unsupported = handle
            .control
            .send(ControlCommand::Input(b"x".to_vec()))
            .await;
        assert!(matches!(
            unsupported,
            Err(ostler_backend::ControlError::Unsupported(_))
        ));
        next_event(&mut handle, |report| {
            matches!(report, ProcessEvent::Exited { .. }).then_some(())
        })
        .await;
        let late = handle
            .control
            .send(ControlCommand::Stop {
                grace: Duration::ZERO,
            })
            .await;
        assert_eq!(late, Err(ostler_backend::ControlError::Ended));
    });
}

fn thread_tree() {
    let fixture = BackendFixture::with(ostler_backend_local::ZygoteConfig::InProcess);
    let mut plan = sh(HARD);
    plan.timeouts.wall = Some(Duration::from_millis(300));
    plan.timeouts.grace = Duration::from_millis(300);
    let id = plan.id;
    let done = fixture.run(plan);
    assert_eq!(done.signal(), Some(15));
    assert!(members(id).is_empty());
}

fn two_backends() {
    let worlds =
        [0; 2].map(|_| BackendFixture::with(ostler_backend_local::ZygoteConfig::InProcess));
    let plans = [0; 2].map(|_| sh("echo ready; read line </dev/null; sleep 0.5; echo done"));
    let dirs = [0, 1].map(|at| worlds[at].dir(plans[at].id));
    let mut handles = Vec::new();
    for (fixture, plan) in worlds.iter().zip(plans) {
        handles.push(fixture.runtime.block_on(async {
            let dir = fixture.dir(plan.id);
            let mut handle = fixture.backend.spawn(plan).await.expect("it spawns");
            wait_output(&mut handle, &dir, "ready").await;
            handle
        }));
    }
    let (second, first) = (handles.pop().expect("two"), handles.pop().expect("two"));
    let grace = Duration::ZERO;
    let ends = worlds[0].runtime.block_on(async {
        first
            .control
            .send(ControlCommand::Stop { grace })
            .await
            .expect("sent");
        wait_exit(first).await
    });
    let lives = worlds[1].runtime.block_on(wait_exit(second));
    let [ended, lived] = dirs;
    let (ended, lived) = (
        FinishedRun {
            dir: ended,
            record: ends,
        },
        FinishedRun {
            dir: lived,
            record: lives,
        },
    );
    assert_eq!(ended.signal(), Some(9));
    assert_eq!(
        (lived.code(), lived.out().as_str()),
        (Some(0), "ready\ndone\n")
    );
}
