//! Standing still and going on.

use std::time::Duration;

use ostler_model::{StreamName, TimeoutKind};
use ostler_process::{Birth, Found, Keeper, Ladder, LaunchIo, Order, Outcome, Place, Report};

use crate::support::{Case, LONG, World, argv, exit_of, next, output, printed, sh};

pub(crate) const CASES: &[Case] = &[
    ("a_frozen_tree_prints_nothing_and_goes_on", frozen),
    ("a_frozen_tree_on_threads", frozen_on_threads),
    ("clocks_stand_still_with_the_tree", clocks),
    ("a_stop_thaws_first", stopped),
    ("a_freeze_is_for_one_command_only", next_command),
    ("a_new_daemon_finds_it_frozen", adopted),
];

async fn freeze(birth: &mut Birth, wanted: bool) -> bool {
    let sent = birth.control.send(Order::Freeze(wanted)).await;
    sent.expect("it takes orders");
    next(birth, |report| match report {
        Report::Frozen { frozen } => Some(*frozen),
        _ => None,
    })
    .await
}

/// Counts up as long as it runs, a child of it too.
const COUNTERS: &str = "(while :; do echo child; sleep 0.005; done) & \
    while :; do echo parent; sleep 0.005; done";

fn stands_still(world: &World) {
    let mut plan = sh(COUNTERS);
    plan.clocks.grace = Duration::ZERO;
    let dir = world.dir(plan.id);
    world.runtime.block_on(async {
        let mut birth = world.place.spawn(plan).await.expect("born");
        printed(&mut birth, &dir, "child").await;
        printed(&mut birth, &dir, "parent").await;
        assert!(freeze(&mut birth, true).await);
        // What was printed before is on its way; after that nothing may come.
        let quiet = async {
            loop {
                let report = birth.reports.recv().await.expect("a report");
                let late = matches!(report, Report::Output { .. } | Report::Started { .. });
                assert!(late, "{report:?}");
            }
        };
        let half = Duration::from_millis(150);
        assert!(tokio::time::timeout(half, quiet).await.is_err());
        let before = output(&dir, StreamName::Stdout);
        let silence = birth.reports.recv();
        assert!(tokio::time::timeout(half, silence).await.is_err());
        assert_eq!(output(&dir, StreamName::Stdout), before);
        assert!(!freeze(&mut birth, false).await);
        next(&mut birth, |report| {
            matches!(report, Report::Output { .. }).then_some(())
        })
        .await;
        let grace = Duration::ZERO;
        let stop = Order::Stop { grace };
        birth.control.send(stop).await.expect("sent");
        let record = exit_of(birth).await;
        assert!(record.survivors.is_empty());
    });
}

fn frozen() {
    stands_still(&World::new());
}

fn frozen_on_threads() {
    stands_still(&World::with(Keeper::None));
}

fn clocks() {
    let world = World::new();
    let mut plan = sh("echo up; sleep 0.3; echo done");
    plan.clocks.wall = Some(Duration::from_millis(1_000));
    plan.clocks.idle = Some(Duration::from_millis(900));
    let dir = world.dir(plan.id);
    world.runtime.block_on(async {
        let mut birth = world.place.spawn(plan).await.expect("born");
        printed(&mut birth, &dir, "up").await;
        assert!(freeze(&mut birth, true).await);
        let longer_than_both = Duration::from_millis(1_300);
        let clock = next(&mut birth, |report| {
            matches!(report, Report::ClockRanOut { .. }).then_some(())
        });
        assert!(tokio::time::timeout(longer_than_both, clock).await.is_err());
        assert!(!freeze(&mut birth, false).await);
        let record = exit_of(birth).await;
        let Outcome::Ended { ladder, .. } = record.outcome else {
            panic!("{:?}", record.outcome);
        };
        assert_eq!(ladder, None);
        assert!(String::from_utf8_lossy(&output(&dir, StreamName::Stdout)).contains("done"));
    });
    // And a clock that did not stand still runs out.
    let mut plan = sh("sleep 60");
    plan.clocks.wall = Some(Duration::from_millis(50));
    plan.clocks.grace = Duration::ZERO;
    let record = world.run(plan).record;
    let Outcome::Ended { ladder, .. } = record.outcome else {
        panic!("{:?}", record.outcome);
    };
    assert_eq!(ladder, Some(Ladder::Clock(TimeoutKind::Wall)));
}

fn stopped() {
    let world = World::new();
    // Says farewell, which a frozen one could not.
    let mut plan = sh("trap 'echo farewell; exit 3' TERM; echo up; while :; do sleep 0.01; done");
    plan.clocks.grace = LONG;
    let dir = world.dir(plan.id);
    world.runtime.block_on(async {
        let mut birth = world.place.spawn(plan).await.expect("born");
        printed(&mut birth, &dir, "up").await;
        assert!(freeze(&mut birth, true).await);
        let stop = Order::Stop { grace: LONG };
        birth.control.send(stop).await.expect("sent");
        exit_of(birth).await;
        assert!(String::from_utf8_lossy(&output(&dir, StreamName::Stdout)).contains("farewell"));
    });
}

fn next_command() {
    let world = World::new();
    let plan = argv(&["/bin/sleep", "300"]);
    world.runtime.block_on(async {
        let mut birth = world.place.spawn(plan).await.expect("born");
        assert!(freeze(&mut birth, true).await);
        let grace = Duration::ZERO;
        let stop = Order::Stop { grace };
        birth.control.send(stop).await.expect("sent");
        exit_of(birth).await;
    });
    for _ in 0..4 {
        assert_eq!(world.sh("echo on").out(), "on\n");
    }
}

fn adopted() {
    let world = World::new();
    let mut plan = sh("cat; sleep 300");
    plan.io = LaunchIo::Open;
    let id = plan.id;
    world.runtime.block_on(async {
        let mut birth = world.place.spawn(plan).await.expect("born");
        assert!(freeze(&mut birth, true).await);
        world.place.close().await;
    });
    let keeper = crate::support::this_executable();
    let again = ostler_process::LocalPlace::open(world.state.path(), keeper);
    world.runtime.block_on(async {
        let place = again.await.expect("opens again");
        let Found::Running { mut birth, .. } = place.find(id).await else {
            panic!("it runs");
        };
        let told = next(&mut birth, |report| match report {
            Report::Frozen { frozen } => Some(*frozen),
            _ => None,
        });
        assert!(told.await, "the first words say so");
        assert!(!freeze(&mut birth, false).await);
        let grace = Duration::ZERO;
        let stop = Order::Stop { grace };
        birth.control.send(stop).await.expect("sent");
        exit_of(birth).await;
        place.close().await;
    });
}
