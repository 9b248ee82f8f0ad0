//! Commands that must be ended, and what they leave behind: nothing.

use std::time::Duration;

use ostler_model::{Signal, TimeoutKind};
use ostler_process::{Ladder, Order, Outcome, Place, Report};

use crate::support::{Case, Done, World, exit_of, members, next, printed, sh, started, timed};

pub(crate) const CASES: &[Case] = &[
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
    ("places_of_one_process_leave_each_other_alone", two_places),
];

const HARD: &str = "setsid sleep 300 & nohup sleep 300 & (trap '' TERM; sleep 300) & sleep 300";

fn timeout_ends_all() {
    let world = World::new();
    let mut plan = sh(HARD);
    plan.clocks.wall = Some(Duration::from_millis(500));
    plan.clocks.grace = Duration::from_millis(500);
    let id = plan.id;
    let (done, took) = timed(|| world.run(plan));
    assert!(took < Duration::from_millis(2_000), "{took:?}");
    assert!(took >= Duration::from_millis(500), "{took:?}");
    let wall = Some(Ladder::Clock(TimeoutKind::Wall));
    assert!(matches!(&done.record.outcome, Outcome::Ended { ladder, .. } if *ladder == wall));
    assert_eq!(done.signal(), Some(15));
    assert!(members(id).is_empty());
    assert!(done.record.survivors.is_empty());
}

fn idle_timeout() {
    let world = World::new();
    let mut plan = sh("for i in 1 2 3 4; do echo $i; sleep 0.2; done; sleep 300");
    plan.clocks.idle = Some(Duration::from_millis(600));
    let (done, took) = timed(|| world.run(plan));
    assert!(took >= Duration::from_millis(1_200), "{took:?}");
    assert_eq!(done.out(), "1\n2\n3\n4\n");
    let idle = Some(Ladder::Clock(TimeoutKind::Idle));
    assert!(matches!(&done.record.outcome, Outcome::Ended { ladder, .. } if *ladder == idle));
}

fn held_pipe() {
    let world = World::new();
    let (done, took) = timed(|| world.sh("sleep 300 & echo done"));
    assert!(took < Duration::from_millis(1_500), "{took:?}");
    assert_eq!((done.out().as_str(), done.code()), ("done\n", Some(0)));
    assert_eq!(done.record.leftovers, 1);
    assert!(matches!(
        &done.record.outcome,
        Outcome::Ended { ladder: None, .. }
    ));
}

fn short_leftovers() {
    let world = World::new();
    let done = world.sh("(sleep 0.03; echo late) & echo early");
    assert_eq!(
        (done.out().as_str(), done.record.leftovers),
        ("early\nlate\n", 0)
    );
}

fn fifty_daemons() {
    let world = World::new();
    let script = "for i in $(seq 50); do (setsid sh -c 'sleep 300 >/dev/null 2>&1 &' &) ; done; \
                  sleep 0.2; echo started";
    let plan = sh(script);
    let id = plan.id;
    let done = world.run(plan);
    assert_eq!((done.out().as_str(), done.code()), ("started\n", Some(0)));
    assert!(done.record.leftovers >= 50, "{}", done.record.leftovers);
    assert!(members(id).is_empty());
}

fn stopped_process() {
    let world = World::new();
    let mut plan = sh("sh -c 'kill -STOP $$; sleep 300' & wait");
    plan.clocks.wall = Some(Duration::from_millis(300));
    plan.clocks.grace = Duration::from_millis(300);
    let id = plan.id;
    world.run(plan);
    assert!(members(id).is_empty());
}

fn forced_stop() {
    let world = World::new();
    let mut plan = sh("trap '' TERM; echo ready; while :; do sleep 300; done");
    plan.clocks.grace = Duration::from_secs(30);
    let (id, dir) = (plan.id, world.dir(plan.id));
    let record = world.runtime.block_on(async {
        let mut birth = world.place.spawn(plan).await.expect("born");
        printed(&mut birth, &dir, "ready").await;
        birth
            .control
            .send(Order::Stop {
                grace: Duration::from_secs(30),
            })
            .await
            .expect("sent");
        birth
            .control
            .send(Order::Stop {
                grace: Duration::ZERO,
            })
            .await
            .expect("sent");
        exit_of(birth).await
    });
    let done = Done { dir, record };
    assert_eq!(done.signal(), Some(9));
    assert!(matches!(
        &done.record.outcome,
        Outcome::Ended {
            ladder: Some(Ladder::Ordered),
            ..
        }
    ));
    assert!(members(id).is_empty());
}

fn signal_group() {
    let world = World::new();
    let plan = sh("trap 'echo caught; exit 5' USR1; echo ready; while :; do sleep 0.05; done");
    let dir = world.dir(plan.id);
    let record = world.runtime.block_on(async {
        let mut birth = world.place.spawn(plan).await.expect("born");
        printed(&mut birth, &dir, "ready").await;
        let usr1 = Signal::try_from(10).expect("a signal");
        birth.control.send(Order::Signal(usr1)).await.expect("sent");
        exit_of(birth).await
    });
    let done = Done { dir, record };
    // The sleep in the same group dies of it; the shell reports its own trap.
    assert_eq!(done.code(), Some(5));
    assert!(done.out().contains("caught"));
}

fn late_orders() {
    let world = World::new();
    let mut plan = sh("read line");
    plan.report_start = true;
    world.runtime.block_on(async {
        let mut birth = world.place.spawn(plan).await.expect("born");
        started(&mut birth).await;
        let unsupported = birth.control.send(Order::Input(b"x".to_vec())).await;
        assert!(matches!(
            unsupported,
            Err(ostler_process::ControlError::Unsupported(_))
        ));
        next(&mut birth, |report| {
            matches!(report, Report::Exited(_)).then_some(())
        })
        .await;
        let late = birth
            .control
            .send(Order::Stop {
                grace: Duration::ZERO,
            })
            .await;
        assert_eq!(late, Err(ostler_process::ControlError::Ended));
    });
}

fn thread_tree() {
    let world = World::with(ostler_process::Keeper::None);
    let mut plan = sh(HARD);
    plan.clocks.wall = Some(Duration::from_millis(300));
    plan.clocks.grace = Duration::from_millis(300);
    let id = plan.id;
    let done = world.run(plan);
    assert_eq!(done.signal(), Some(15));
    assert!(members(id).is_empty());
}

fn two_places() {
    let worlds = [0; 2].map(|_| World::with(ostler_process::Keeper::None));
    let plans = [0; 2].map(|_| sh("echo ready; read line </dev/null; sleep 0.5; echo done"));
    let dirs = [0, 1].map(|at| worlds[at].dir(plans[at].id));
    let mut births = Vec::new();
    for (world, plan) in worlds.iter().zip(plans) {
        births.push(world.runtime.block_on(async {
            let dir = world.dir(plan.id);
            let mut birth = world.place.spawn(plan).await.expect("born");
            printed(&mut birth, &dir, "ready").await;
            birth
        }));
    }
    let (second, first) = (births.pop().expect("two"), births.pop().expect("two"));
    let grace = Duration::ZERO;
    let ends = worlds[0].runtime.block_on(async {
        first
            .control
            .send(Order::Stop { grace })
            .await
            .expect("sent");
        exit_of(first).await
    });
    let lives = worlds[1].runtime.block_on(exit_of(second));
    let [ended, lived] = dirs;
    let (ended, lived) = (
        Done {
            dir: ended,
            record: ends,
        },
        Done {
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
