//! Killed daemons, zygotes and shims.

use ostler_backend::{Backend, ControlCommand, ProcessEvent, RecoveryOutcome};
use ostler_backend_local::LocalBackend;
use ostler_model::LostReason;
use ostler_model::{ExecutionId, StreamName};
use rustix::process::Signal;

use crate::support::{
    BackendFixture, FinishedRun, TestCase, is_alive, kill, members, next_event, output, sh,
    wait_exit, wait_output, wait_started, wait_until,
};
use crate::test_daemon::TestDaemon;

pub(crate) const CASES: &[TestCase] = &[
    ("commands_outlive_their_daemon", daemon_killed),
    ("commands_end_while_no_daemon_lives", ended_alone),
    ("a_shim_killed_while_no_daemon_lives", shim_killed_alone),
    ("commands_outlive_their_keeper", keeper_killed),
    ("a_stopped_keeper_is_replaced", keeper_stopped),
    ("the_tree_of_a_killed_shim_dies", shim_killed),
    (
        "an_idle_shim_that_is_killed_is_not_missed",
        idle_shim_killed,
    ),
    ("shim_and_keeper_killed", both_killed),
    (
        "without_a_keeper_commands_end_with_the_engine",
        engine_killed,
    ),
    ("what_was_never_there_is_lost", never_there),
    ("another_boot_is_lost_to_it", other_boot),
    ("damaged_files_are_told", damaged),
    ("closing_leaves_commands_running", closed),
    ("long_paths_do_not_matter", long_path),
];

fn shim_of(fixture: &BackendFixture, id: ExecutionId) -> i32 {
    let bytes = std::fs::read(fixture.dir(id).join("spec.json")).expect("a spec");
    let spec: serde_json::Value = serde_json::from_slice(&bytes).expect("JSON");
    i32::try_from(spec["boot"]["shim_pid"].as_i64().expect("a pid")).expect("a pid")
}

fn parent_of(pid: i32) -> i32 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).expect("it lives");
    let rest = stat.rsplit(')').next().expect("fields");
    rest.split_whitespace()
        .nth(1)
        .expect("a parent")
        .parse()
        .expect("a pid")
}

fn numbered(count: u32) -> String {
    (1..=count)
        .map(|number| format!("line {number}\n"))
        .collect()
}

const NUMBERS: &str =
    "i=0; while [ $i -lt 40 ]; do i=$((i+1)); echo line $i; sleep 0.02; done; exit 7";

fn daemon_killed() {
    let fixture = BackendFixture::new();
    let daemon = TestDaemon::start(fixture.state.path(), &[NUMBERS, NUMBERS]);
    let runs = daemon.runs.clone();
    daemon.kill();
    let find = |(id, pid): (ExecutionId, i32)| {
        let found = fixture.runtime.block_on(fixture.backend.recover(id));
        let RecoveryOutcome::Running {
            attempt: 1,
            pid: same,
            handle,
            ..
        } = found
        else {
            panic!("it runs: {found:?}");
        };
        assert_eq!(same, pid.unsigned_abs());
        (id, handle)
    };
    let found: Vec<_> = runs.into_iter().map(find).collect();
    for (number, (id, mut handle)) in found.into_iter().enumerate() {
        fixture.runtime.block_on(async {
            if number == 0 {
                wait_output(&mut handle, &fixture.dir(id), "line 30\n").await;
            }
            assert!(!fixture.dir(id).join("ctl.sock").exists());
            let done = FinishedRun {
                dir: fixture.dir(id),
                record: wait_exit(handle).await,
            };
            assert_eq!(done.code(), Some(7));
            assert_eq!(done.out(), numbered(40));
        });
    }
    assert_eq!(fixture.sh("echo on").out(), "on\n");
}

fn ended_alone() {
    let fixture = BackendFixture::new();
    let daemon = TestDaemon::start(fixture.state.path(), &["sleep 0.3; echo bye; exit 9"]);
    let (id, _) = daemon.runs[0];
    daemon.kill();
    wait_until(|| fixture.dir(id).join("exit").exists());
    let found = fixture.runtime.block_on(fixture.backend.recover(id));
    let RecoveryOutcome::Exited(record) = found else {
        panic!("it ended: {found:?}");
    };
    let done = FinishedRun {
        dir: fixture.dir(id),
        record: *record,
    };
    assert_eq!((done.code(), done.out().as_str()), (Some(9), "bye\n"));
    wait_until(|| !fixture.dir(id).join("ctl.sock").exists());
}

fn shim_killed_alone() {
    let fixture = BackendFixture::new();
    let script = "setsid sleep 300 & sleep 300";
    let daemon = TestDaemon::start(fixture.state.path(), &[script]);
    let (id, _) = daemon.runs[0];
    let zygote = parent_of(shim_of(&fixture, id));
    daemon.kill();
    wait_until(|| fixture.dir(id).join("ctl.sock").exists() && !is_alive(zygote));
    wait_until(|| members(id).len() == 3);
    kill(shim_of(&fixture, id), Signal::KILL);
    let found = fixture.runtime.block_on(fixture.backend.recover(id));
    let RecoveryOutcome::Lost {
        reason: LostReason::ShimKilled,
        attempt: 1,
        swept,
    } = found
    else {
        panic!("it is lost: {found:?}");
    };
    assert!(swept >= 2, "{swept}");
    assert!(members(id).is_empty());
    let again = fixture.runtime.block_on(fixture.backend.recover(id));
    assert!(matches!(
        again,
        RecoveryOutcome::Lost {
            reason: LostReason::NoRecord,
            swept: 0,
            ..
        }
    ));
}

fn keeper_killed() {
    let fixture = BackendFixture::new();
    let mut plan = sh(NUMBERS);
    plan.report_start = true;
    let id = plan.id;
    fixture.runtime.block_on(async {
        let mut handle = fixture.backend.spawn(plan).await.expect("it spawns");
        wait_started(&mut handle).await;
        kill(parent_of(shim_of(&fixture, id)), Signal::KILL);
        let mut others = tokio::task::JoinSet::new();
        for _ in 0..20 {
            let other = fixture
                .backend
                .spawn(sh("exit 3"))
                .await
                .expect("it spawns");
            others.spawn(wait_exit(other));
        }
        for record in others.join_all().await {
            let done = FinishedRun {
                dir: fixture.dir(id),
                record,
            };
            assert_eq!(done.code(), Some(3));
        }
        let done = FinishedRun {
            dir: fixture.dir(id),
            record: wait_exit(handle).await,
        };
        assert_eq!((done.code(), done.out()), (Some(7), numbered(40)));
    });
}

fn keeper_stopped() {
    let fixture = BackendFixture::new();
    let mut plan = sh("sleep 300");
    plan.report_start = true;
    let id = plan.id;
    fixture.runtime.block_on(async {
        let mut handles = Vec::new();
        handles.push(fixture.backend.spawn(plan).await.expect("it spawns"));
        wait_started(&mut handles[0]).await;
        kill(parent_of(shim_of(&fixture, id)), Signal::STOP);
        for _ in 0..10 {
            let handle = fixture
                .backend
                .spawn(sh("exec sleep 300"))
                .await
                .expect("it spawns");
            handle
                .control
                .send(ControlCommand::Watch(true))
                .await
                .expect("sent");
            handles.push(handle);
        }
        for handle in &handles {
            let grace = std::time::Duration::ZERO;
            handle
                .control
                .send(ControlCommand::Stop { grace })
                .await
                .expect("sent");
        }
        for handle in handles {
            wait_exit(handle).await;
        }
    });
}

async fn gone(handle: &mut ostler_backend::SpawnHandle) {
    next_event(handle, |report| match report {
        ProcessEvent::Lost => Some(()),
        ProcessEvent::Exited { record, .. } => panic!("nobody can know: {record:?}"),
        _ => None,
    })
    .await;
}

fn shim_killed() {
    let fixture = BackendFixture::new();
    let mut plan = sh(
        "setsid sleep 300 & (trap '' TERM; sleep 300) & env -i setsid sleep 300 & \
                       echo ready; sleep 300",
    );
    plan.report_start = true;
    let (id, dir) = (plan.id, fixture.dir(plan.id));
    fixture.runtime.block_on(async {
        let mut handle = fixture.backend.spawn(plan).await.expect("it spawns");
        let pid = wait_started(&mut handle).await;
        wait_output(&mut handle, &dir, "ready").await;
        kill(shim_of(&fixture, id), Signal::KILL);
        gone(&mut handle).await;
        assert!(members(id).is_empty());
        assert!(!is_alive(i32::try_from(pid).expect("a pid")));
    });
    assert_eq!(fixture.sh("echo on").out(), "on\n");
}

fn idle_shim_killed() {
    let fixture = BackendFixture::new();
    let shim: i32 = fixture
        .sh("echo $PPID")
        .out()
        .trim()
        .parse()
        .expect("a pid");
    kill(shim, Signal::KILL);
    wait_until(|| !is_alive(shim));
    for _ in 0..8 {
        let done = fixture.sh("echo on; exit 2");
        assert_eq!((done.out().as_str(), done.code()), ("on\n", Some(2)));
    }
}

fn both_killed() {
    let fixture = BackendFixture::new();
    let plan = sh("setsid sleep 300 & echo ready; sleep 300");
    let (id, dir) = (plan.id, fixture.dir(plan.id));
    fixture.runtime.block_on(async {
        let mut handle = fixture.backend.spawn(plan).await.expect("it spawns");
        wait_output(&mut handle, &dir, "ready").await;
        let shim = shim_of(&fixture, id);
        kill(parent_of(shim), Signal::KILL);
        kill(shim, Signal::KILL);
        gone(&mut handle).await;
        assert!(members(id).is_empty());
    });
}

fn engine_killed() {
    let fixture = BackendFixture::new();
    let state = format!(
        "{}{}",
        crate::test_daemon::THREADS,
        fixture.state.path().display()
    );
    let daemon = TestDaemon::start(state.as_ref(), &["setsid sleep 300 & sleep 300"]);
    let (id, _) = daemon.runs[0];
    wait_until(|| members(id).len() == 3);
    daemon.kill();
    let found = fixture.runtime.block_on(fixture.backend.recover(id));
    let RecoveryOutcome::Lost {
        reason: LostReason::EngineKilled,
        attempt: 1,
        // Of three; the leader was killed with the thread that spawned it.
        swept: 2,
    } = found
    else {
        panic!("it is lost: {found:?}");
    };
    assert!(members(id).is_empty());
}

fn never_there() {
    let fixture = BackendFixture::new();
    let find = |id| fixture.runtime.block_on(fixture.backend.recover(id));
    let found = find(ExecutionId::mint());
    assert!(matches!(
        found,
        RecoveryOutcome::Lost {
            reason: LostReason::FilesDamaged,
            attempt: 0,
            ..
        }
    ));
    let id = ExecutionId::mint();
    std::fs::create_dir(fixture.dir(id)).expect("made");
    let found = find(id);
    assert!(matches!(
        found,
        RecoveryOutcome::Lost {
            reason: LostReason::NoRecord,
            attempt: 0,
            ..
        }
    ));
}

fn rewrite(fixture: &BackendFixture, id: ExecutionId, change: impl Fn(String) -> String) {
    let path = fixture.dir(id).join("spec.json");
    let text = std::fs::read_to_string(&path).expect("a spec");
    std::fs::write(path, change(text)).expect("written");
}

fn finished(fixture: &BackendFixture) -> ExecutionId {
    let done = fixture.sh("true");
    let name = done
        .dir
        .file_name()
        .and_then(|name| name.to_str())
        .expect("named");
    name.parse().expect("an id")
}

fn other_boot() {
    let fixture = BackendFixture::new();
    let id = finished(&fixture);
    let find = || fixture.runtime.block_on(fixture.backend.recover(id));
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").expect("a boot");
    rewrite(&fixture, id, |text| text.replace(boot.trim(), "another"));
    assert!(
        matches!(find(), RecoveryOutcome::Exited(_)),
        "a record is a record"
    );
    std::fs::remove_file(fixture.dir(id).join("exit")).expect("removed");
    assert!(matches!(
        find(),
        RecoveryOutcome::Lost {
            reason: LostReason::Reboot,
            attempt: 1,
            ..
        }
    ));
}

fn damaged() {
    let fixture = BackendFixture::new();
    let id = finished(&fixture);
    let find = || fixture.runtime.block_on(fixture.backend.recover(id));
    std::fs::write(fixture.dir(id).join("exit"), b"{\"version\":1,").expect("written");
    assert!(matches!(
        find(),
        RecoveryOutcome::Lost {
            reason: LostReason::FilesDamaged,
            ..
        }
    ));
    std::fs::remove_file(fixture.dir(id).join("exit")).expect("removed");
    rewrite(&fixture, id, |text| text[..text.len() / 2].to_owned());
    assert!(matches!(
        find(),
        RecoveryOutcome::Lost {
            reason: LostReason::FilesDamaged,
            ..
        }
    ));
}

fn closed() {
    let fixture = BackendFixture::new();
    let mut plan = sh(NUMBERS);
    plan.report_start = true;
    let id = plan.id;
    fixture.runtime.block_on(async {
        let first =
            LocalBackend::open(fixture.state.path(), crate::support::this_executable()).await;
        let first = first.expect("it opens");
        let mut handle = first.spawn(plan).await.expect("it spawns");
        wait_started(&mut handle).await;
        first.close().await;
        drop(first);
        let RecoveryOutcome::Running { handle, .. } = fixture.backend.recover(id).await else {
            panic!("it runs");
        };
        let done = FinishedRun {
            dir: fixture.dir(id),
            record: wait_exit(handle).await,
        };
        assert_eq!((done.code(), done.out()), (Some(7), numbered(40)));
    });
}

fn long_path() {
    let fixture = BackendFixture::new();
    let deep = (0..8).fold(fixture.state.path().to_owned(), |path, _| {
        path.join("d".repeat(100))
    });
    std::fs::create_dir_all(&deep).expect("made");
    let daemon = TestDaemon::start(&deep, &[NUMBERS]);
    let (id, _) = daemon.runs[0];
    daemon.kill();
    fixture.runtime.block_on(async {
        let opened = LocalBackend::open(&deep, crate::support::this_executable()).await;
        let backend = opened.expect("it opens");
        let RecoveryOutcome::Running { handle, .. } = backend.recover(id).await else {
            panic!("it runs");
        };
        wait_exit(handle).await;
        backend.close().await;
    });
    let out = output(
        &deep.join("executions").join(id.to_string()),
        StreamName::Stdout,
    );
    assert_eq!(String::from_utf8_lossy(&out), numbered(40));
}
