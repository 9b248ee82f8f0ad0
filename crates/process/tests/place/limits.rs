//! Limits, where this host and user can have them.

use std::time::Duration;

use ostler_model::{Ability, Limits};
use ostler_process::Place;

use crate::support::{Case, World, argv, members, sh};

pub(crate) const CASES: &[Case] = &[
    ("what_is_missing_is_said", abilities),
    ("a_fork_bomb_under_a_limit_ends", fork_bomb),
    ("a_limit_on_processes_is_only_the_commands", pids_of_one),
    ("memory_beyond_the_limit_is_told", out_of_memory),
    ("processor_time_is_throttled", throttled),
    ("limits_of_a_process_are_lowered", lowered),
    ("limits_do_not_stay_with_the_shim", not_sticky),
];

fn abilities() {
    let abilities = World::new().place.abilities();
    assert!(abilities.has(Ability::TreeKill) && abilities.has(Ability::Durable));
    for missing in &abilities.missing {
        assert!(!abilities.has(missing.ability));
        assert!(!missing.reason.is_empty());
    }
    let all = abilities.present.len() + abilities.missing.len();
    assert_eq!(all, 9, "every ability is present or missing: {abilities:?}");
}

fn fork_bomb() {
    let world = World::new();
    if !world.place.abilities().has(Ability::PidsLimit) {
        return;
    }
    let mut plan = argv(&[
        "/bin/bash",
        "-c",
        "bomb() { bomb | bomb & }; bomb; sleep 300",
    ]);
    plan.limits.pids = Some(64);
    plan.clocks.wall = Some(Duration::from_millis(500));
    plan.clocks.grace = Duration::from_millis(200);
    let id = plan.id;
    let done = world.run(plan);
    assert!(done.record.survivors.is_empty());
    assert!(members(id).is_empty());
    assert_eq!(world.sh("echo on").out(), "on\n");
}

fn pids_of_one() {
    let world = World::new();
    if !world.place.abilities().has(Ability::PidsLimit) {
        return;
    }
    // The shell, one sleep for each but the last, and the limit is reached.
    let script = "for i in 1 2 3 4 5 6; do sleep 5 & done; wait";
    let mut plan = argv(&["/bin/bash", "-c", script]);
    plan.limits.pids = Some(4);
    plan.clocks.wall = Some(Duration::from_millis(700));
    plan.clocks.grace = Duration::from_millis(100);
    let done = world.run(plan);
    assert!(
        done.err().contains("Resource temporarily unavailable"),
        "{}",
        done.err()
    );
    let mut plan = sh("true & true & wait; echo enough");
    plan.limits.pids = Some(4);
    let done = world.run(plan);
    assert_eq!(done.out(), "enough\n", "{}", done.err());
}

fn out_of_memory() {
    let world = World::new();
    if !world.place.abilities().has(Ability::MemoryLimit) {
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
    let done = world.run(plan);
    assert_eq!((done.signal(), done.record.out_of_memory), (Some(9), true));
    let mut plan = sh("echo small");
    plan.limits = limit;
    let done = world.run(plan);
    assert_eq!(
        (done.out().as_str(), done.record.out_of_memory),
        ("small\n", false)
    );
}

fn throttled() {
    let world = World::new();
    if !world.place.abilities().has(Ability::CpuLimit) {
        return;
    }
    let mut plan = sh("while :; do :; done");
    plan.limits.cpu_millis = Some(100);
    plan.clocks.wall = Some(Duration::from_millis(1_500));
    plan.clocks.grace = Duration::from_millis(200);
    let usage = world.run(plan).record.usage;
    assert!(usage.user_us + usage.system_us < 500_000, "{usage:?}");
}

fn lowered() {
    let world = World::new();
    let mut plan = sh("ulimit -n; ulimit -Hn; head -c 100000 /dev/zero > big; wc -c < big");
    plan.cwd = ostler_model::Text::from(world.state.path());
    plan.limits = Limits {
        open_files: Some(33),
        file_bytes: Some(1024),
        ..Limits::default()
    };
    let out = world.run(plan).out();
    assert_eq!(out, "33\n33\n1024\n");
}

fn not_sticky() {
    let world = World::new();
    let mut plan = sh("true");
    plan.limits = Limits {
        pids: Some(2),
        memory_bytes: Some(32 << 20),
        ..Limits::default()
    };
    world.run(plan);
    let script = "for i in 1 2 3 4 5 6 7 8; do sleep 0.01 & done; wait; echo all";
    for _ in 0..4 {
        assert_eq!(world.sh(script).out(), "all\n");
    }
}
