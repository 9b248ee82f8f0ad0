//! Limits, where this host and user support them.

use std::time::Duration;

use ostler_backend::{Backend, ControlCommand, ProcessEvent};
use ostler_model::{Capability, LimitKind, Limits};

use crate::support::{BackendFixture, TestCase, argv, members, next_event, sh};

pub(crate) const CASES: &[TestCase] = &[
    ("what_is_missing_is_said", abilities),
    ("a_fork_bomb_under_a_limit_ends", fork_bomb),
    ("a_limit_on_processes_is_only_the_commands", pids_of_one),
    ("memory_beyond_the_limit_is_told", out_of_memory),
    ("a_hog_among_others_is_no_end_of_the_tree", hog_of_a_tree),
    (
        "a_kill_by_somebody_else_is_no_lack_of_memory",
        killed_otherwise,
    ),
    ("a_limit_is_reported_while_it_runs", reported_at_once),
    ("a_file_beyond_the_limit_is_told", file_size),
    ("processor_time_is_throttled", throttled),
    ("limits_of_a_process_are_lowered", lowered),
    ("limits_do_not_stay_with_the_shim", not_sticky),
];

fn abilities() {
    let abilities = BackendFixture::new().backend.capabilities();
    assert!(abilities.has(Capability::TreeKill) && abilities.has(Capability::Durable));
    for missing in &abilities.missing {
        assert!(!abilities.has(missing.ability));
        assert!(!missing.reason.is_empty());
    }
    // Capabilities an ordinary user does not need.
    let roots = [Capability::SpareIds, Capability::MappedWorkspace];
    let requested = Capability::ALL.into_iter();
    for ability in requested.filter(|it| abilities.root || !roots.contains(it)) {
        let missing = abilities.missing.iter().any(|it| it.ability == ability);
        assert!(
            abilities.has(ability) != missing,
            "{ability:?}: {abilities:?}"
        );
    }
}

fn fork_bomb() {
    let fixture = BackendFixture::new();
    if !fixture.backend.capabilities().has(Capability::PidsLimit) {
        return;
    }
    let mut plan = argv(&[
        "/bin/bash",
        "-c",
        "bomb() { bomb | bomb & }; bomb; sleep 300",
    ]);
    plan.limits.pids = Some(64);
    plan.timeouts.wall = Some(Duration::from_millis(500));
    plan.timeouts.grace = Duration::from_millis(200);
    let id = plan.id;
    let done = fixture.run(plan);
    assert!(done.record.survivors.is_empty());
    assert_eq!(done.record.limits_hit, [LimitKind::Pids]);
    assert!(members(id).is_empty());
    assert_eq!(fixture.sh("echo on").out(), "on\n");
}

fn pids_of_one() {
    let fixture = BackendFixture::new();
    if !fixture.backend.capabilities().has(Capability::PidsLimit) {
        return;
    }
    // The shell, one sleep for each but the last, and the limit is reached.
    let script = "for i in 1 2 3 4 5 6; do sleep 5 & done; wait";
    let mut plan = argv(&["/bin/bash", "-c", script]);
    plan.limits.pids = Some(4);
    plan.timeouts.wall = Some(Duration::from_millis(700));
    plan.timeouts.grace = Duration::from_millis(100);
    let done = fixture.run(plan);
    assert!(
        done.err().contains("Resource temporarily unavailable"),
        "{}",
        done.err()
    );
    let mut plan = sh("true & true & wait; echo enough");
    plan.limits.pids = Some(4);
    let done = fixture.run(plan);
    assert_eq!(done.out(), "enough\n", "{}", done.err());
}

fn out_of_memory() {
    let fixture = BackendFixture::new();
    if !fixture.backend.capabilities().has(Capability::MemoryLimit) {
        return;
    }
    let limit = Limits {
        memory_bytes: Some(48 << 20),
        ..Limits::default()
    };
    let mut plan = argv(&[
        "/usr/bin/python3",
        "-c",
        "x = b'x' * (200 << 20); print(len(x))",
    ]);
    plan.limits = limit;
    let done = fixture.run(plan);
    assert_eq!((done.signal(), done.record.out_of_memory), (Some(9), true));
    assert_eq!(done.record.limits_hit, [LimitKind::Memory]);
    let mut plan = sh("echo small");
    plan.limits = limit;
    let done = fixture.run(plan);
    assert_eq!(
        (done.out().as_str(), done.record.out_of_memory),
        ("small\n", false)
    );
}

const HOG: &str = "python3 -c \"x = b'x' * (200 << 20)\"";

fn memory(script: &str) -> Option<(BackendFixture, ostler_backend::LaunchPlan)> {
    let fixture = BackendFixture::new();
    if !fixture.backend.capabilities().has(Capability::MemoryLimit) {
        return None;
    }
    let mut plan = sh(script);
    plan.limits.memory_bytes = Some(48 << 20);
    Some((fixture, plan))
}

fn hog_of_a_tree() {
    let Some((fixture, plan)) = memory(&format!("{HOG}; echo it was $?; exit 0")) else {
        return;
    };
    let together = fixture.backend.capabilities().backend == ostler_model::LimitBackend::CgroupV2;
    let done = fixture.run(plan);
    assert_eq!(done.record.limits_hit, [LimitKind::Memory]);
    if together {
        // The kernel kills the group as one.
        assert_eq!((done.signal(), done.record.out_of_memory), (Some(9), true));
    } else {
        assert_eq!(done.out(), "it was 137\n");
        assert_eq!((done.code(), done.record.out_of_memory), (Some(0), false));
    }
}

fn killed_otherwise() {
    let Some((fixture, plan)) = memory("kill -9 $$") else {
        return;
    };
    let done = fixture.run(plan);
    assert_eq!((done.signal(), done.record.out_of_memory), (Some(9), false));
    assert!(done.record.limits_hit.is_empty());
}

fn reported_at_once() {
    let fixture = BackendFixture::new();
    let has = |ability| fixture.backend.capabilities().has(ability);
    let mut plans = Vec::new();
    if has(Capability::PidsLimit) {
        let script = "for i in 1 2 3 4 5 6 7 8; do sleep 300 & done; wait";
        let mut plan = argv(&["/bin/bash", "-c", script]);
        plan.limits.pids = Some(4);
        plans.push((plan, LimitKind::Pids));
    }
    if has(Capability::MemoryLimit) {
        let mut plan = sh(&format!("{HOG}; sleep 300"));
        plan.limits.memory_bytes = Some(48 << 20);
        plans.push((plan, LimitKind::Memory));
    }
    for (plan, expected) in plans {
        fixture.runtime.block_on(async {
            let mut handle = fixture.backend.spawn(plan).await.expect("it spawns");
            let hit = next_event(&mut handle, |report| match report {
                ProcessEvent::LimitHit { limit } => Some(*limit),
                ProcessEvent::Exited { record, .. } => record.limits_hit.first().copied(),
                _ => None,
            });
            assert_eq!(hit.await, expected);
            let grace = Duration::ZERO;
            // On version 2, the memory limit has killed it as a whole.
            let _ended = handle.control.send(ControlCommand::Stop { grace }).await;
        });
    }
}

fn file_size() {
    let fixture = BackendFixture::new();
    let mut plan = sh("cat /dev/zero > big");
    plan.cwd = ostler_model::ByteString::from(fixture.state.path());
    plan.limits.file_bytes = Some(64 << 10);
    let done = fixture.run(plan);
    assert_eq!(done.record.limits_hit, [LimitKind::FileSize]);
}

fn throttled() {
    let fixture = BackendFixture::new();
    if !fixture.backend.capabilities().has(Capability::CpuLimit) {
        return;
    }
    let mut plan = sh("while :; do :; done");
    plan.limits.cpu_millis = Some(100);
    plan.timeouts.wall = Some(Duration::from_millis(1_500));
    plan.timeouts.grace = Duration::from_millis(200);
    let usage = fixture.run(plan).record.usage;
    assert!(usage.user_us + usage.system_us < 500_000, "{usage:?}");
}

fn lowered() {
    let fixture = BackendFixture::new();
    let mut plan = sh("ulimit -n; ulimit -Hn; head -c 100000 /dev/zero > big; wc -c < big");
    plan.cwd = ostler_model::ByteString::from(fixture.state.path());
    plan.limits = Limits {
        open_files: Some(33),
        file_bytes: Some(1024),
        ..Limits::default()
    };
    let out = fixture.run(plan).out();
    assert_eq!(out, "33\n33\n1024\n");
}

fn not_sticky() {
    let fixture = BackendFixture::new();
    let mut plan = sh("true");
    plan.limits = Limits {
        pids: Some(2),
        memory_bytes: Some(32 << 20),
        ..Limits::default()
    };
    fixture.run(plan);
    let script = "for i in 1 2 3 4 5 6 7 8; do sleep 0.01 & done; wait; echo all";
    for _ in 0..4 {
        assert_eq!(fixture.sh(script).out(), "all\n");
    }
}
