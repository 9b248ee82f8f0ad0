//! Leaders that end with 0 and leave a tree that is kept: launchers, daemons, wrappers.

use std::time::Duration;

use ostler_model::ending::WaitStatus;
use ostler_model::{ExecutionId, Leftovers, StreamName, TermSize, TimeoutKind};
use ostler_process::{
    Birth, ExitRecord, Found, Keeper, Ladder, LaunchIo, LaunchPlan, LocalPlace, Order, Outcome,
    Place, Report,
};

use crate::roles::{Daemon, KEPT};
use crate::support::{
    Case, World, exit_of, members, next, output, printed, sh, this_executable, until,
};

pub(crate) const CASES: &[Case] = &[
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

/// A daemon proper: two forks, a session of its own, none of its parent's descriptors but the
/// output. Ends as its argument says when its standard input would.
const DAEMON: &str = "import os,sys,time,signal\n\
    if os.fork(): os._exit(0)\n\
    os.setsid()\n\
    if os.fork(): os._exit(0)\n\
    exec(sys.argv[1])";

fn keep(script: &str) -> LaunchPlan {
    let mut plan = sh(script);
    plan.leftovers = Leftovers::Keep;
    plan.clocks.grace = Duration::from_secs(2);
    plan
}

fn daemon(body: &str) -> LaunchPlan {
    let mut plan = crate::support::argv(&["python3", "-c", DAEMON, body]);
    plan.program = "/usr/bin/env".into();
    plan.argv.insert(0, "env".into());
    plan.leftovers = Leftovers::Keep;
    plan
}

async fn detached(birth: &mut Birth) -> WaitStatus {
    next(birth, |report| match report {
        Report::Detached { status } => Some(*status),
        Report::Exited(record) => panic!("it ended: {record:?}"),
        _ => None,
    })
    .await
}

async fn stop(birth: &Birth, grace: Duration) {
    let sent = birth.control.send(Order::Stop { grace }).await;
    sent.expect("it takes orders");
}

fn status(record: &ExitRecord) -> (WaitStatus, Option<Ladder>) {
    match &record.outcome {
        Outcome::Ended { status, ladder } => (*status, *ladder),
        Outcome::NotBorn { message, .. } => panic!("not born: {message}"),
    }
}

const LAUNCHER: &str = "setsid nohup sh -c 'while :; do echo tick; sleep 0.02; done' & exit 0";

fn goes_on(world: &World) {
    let plan = keep(LAUNCHER);
    let (id, dir) = (plan.id, world.dir(plan.id));
    world.runtime.block_on(async {
        let mut birth = world.place.spawn(plan).await.expect("born");
        assert_eq!(detached(&mut birth).await, WaitStatus::Code(0));
        assert!(!dir.join("exit").exists());
        let before = output(&dir, StreamName::Stdout).len();
        printed(&mut birth, &dir, "tick\n").await;
        until(|| output(&dir, StreamName::Stdout).len() > before + 20);
        let seen = world
            .place
            .observe(id, ostler_model::Observation::default());
        let seen = seen.await.expect("known");
        assert!(seen.members.iter().any(|it| it.name == "sh"), "{seen:?}");
        stop(&birth, Duration::from_secs(2)).await;
        let record = exit_of(birth).await;
        let (status, ladder) = status(&record);
        assert!(matches!(
            status,
            WaitStatus::Code(0) | WaitStatus::Signal(_)
        ));
        assert_eq!(ladder, Some(Ladder::Ordered));
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
    until(|| members(id).is_empty());
    assert_eq!(world.sh("echo next").out(), "next\n");
}

fn launcher() {
    goes_on(&World::new());
}

fn launcher_on_threads() {
    goes_on(&World::with(Keeper::None));
}

fn last_one() {
    for keeper in [this_executable(), Keeper::None] {
        let world = World::with(keeper);
        let plan = daemon("time.sleep(0.5); print('served', flush=True)");
        let dir = world.dir(plan.id);
        let record = world.runtime.block_on(async {
            let mut birth = world.place.spawn(plan).await.expect("born");
            detached(&mut birth).await;
            exit_of(birth).await
        });
        assert_eq!(status(&record), (WaitStatus::Code(0), None));
        assert!(record.lived_ms >= 500, "{}", record.lived_ms);
        assert_eq!(output(&dir, StreamName::Stdout), b"served\n");
    }
}

fn crash_later() {
    let world = World::new();
    for (body, code) in [
        ("time.sleep(0.4); sys.exit(3)", WaitStatus::Code(3)),
        (
            "time.sleep(0.4); os.kill(os.getpid(), signal.SIGSEGV)",
            WaitStatus::Signal(ostler_model::Signal::try_from(11).expect("a signal")),
        ),
        // Before anybody was told.
        ("sys.exit(5)", WaitStatus::Code(5)),
    ] {
        let record = world.run(daemon(body)).record;
        assert_eq!(status(&record), (code, None), "{body}");
    }
}

fn failed_leader() {
    let world = World::new();
    for (end, wanted) in [
        ("exit 4", WaitStatus::Code(4)),
        ("kill -9 $$", WaitStatus::Signal(ostler_model::Signal::KILL)),
    ] {
        let plan = keep(&format!("setsid sleep 300 & sleep 301 & {end}"));
        let id = plan.id;
        let record = world.run(plan).record;
        assert_eq!(status(&record), (wanted, None));
        assert_eq!(record.leftovers, 2);
        assert!(members(id).is_empty());
    }
}

fn ends_at_once() {
    let world = World::new();
    let plan = keep("(sleep 0.01; echo late) & echo early");
    let dir = world.dir(plan.id);
    world.runtime.block_on(async {
        let mut birth = world.place.spawn(plan).await.expect("born");
        loop {
            match birth.reports.recv().await.expect("an end") {
                Report::Detached { .. } => panic!("it was over"),
                Report::Exited(record) => {
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
    let world = World::new();
    for clock in [TimeoutKind::Wall, TimeoutKind::Idle] {
        let mut plan = keep("setsid sleep 300 & exit 0");
        let limit = Some(Duration::from_millis(600));
        match clock {
            TimeoutKind::Wall => plan.clocks.wall = limit,
            TimeoutKind::Idle => plan.clocks.idle = limit,
        }
        let record = world.runtime.block_on(async {
            let mut birth = world.place.spawn(plan).await.expect("born");
            detached(&mut birth).await;
            next(&mut birth, |report| {
                matches!(report, Report::ClockRanOut { clock: it } if *it == clock).then_some(())
            })
            .await;
            exit_of(birth).await
        });
        assert_eq!(status(&record).1, Some(Ladder::Clock(clock)));
    }
}

fn frozen() {
    for keeper in [this_executable(), Keeper::None] {
        let world = World::with(keeper);
        let plan = keep(LAUNCHER);
        let dir = world.dir(plan.id);
        world.runtime.block_on(async {
            let mut birth = world.place.spawn(plan).await.expect("born");
            detached(&mut birth).await;
            for wanted in [true, false] {
                let sent = birth.control.send(Order::Freeze(wanted)).await;
                sent.expect("it takes orders");
                let frozen = next(&mut birth, |report| match report {
                    Report::Frozen { frozen } => Some(*frozen),
                    _ => None,
                })
                .await;
                assert_eq!(frozen, wanted);
            }
            let before = output(&dir, StreamName::Stdout).len();
            until(|| output(&dir, StreamName::Stdout).len() > before);
            stop(&birth, Duration::ZERO).await;
            exit_of(birth).await;
        });
    }
}

fn terminal() {
    let world = World::new();
    let mut plan = keep("trap '' HUP; (while :; do stty size <&1; sleep 0.02; done) & exit 0");
    plan.io = LaunchIo::Pty(TermSize { cols: 80, rows: 24 });
    let dir = world.dir(plan.id);
    world.runtime.block_on(async {
        let mut birth = world.place.spawn(plan).await.expect("born");
        detached(&mut birth).await;
        let size = TermSize { cols: 99, rows: 33 };
        let sent = birth.control.send(Order::Resize(size)).await;
        sent.expect("it takes orders");
        let shown = || String::from_utf8_lossy(&output(&dir, StreamName::Pty)).contains("33 99");
        until(shown);
        stop(&birth, Duration::from_millis(500)).await;
        let record = exit_of(birth).await;
        assert!(record.survivors.is_empty());
    });
}

fn signalled() {
    let world = World::new();
    let body = "signal.signal(signal.SIGHUP, lambda *_: print('hup', flush=True))\n\
        print('up', flush=True)\n\
        while True: signal.pause()";
    let plan = daemon(body);
    let dir = world.dir(plan.id);
    world.runtime.block_on(async {
        let mut birth = world.place.spawn(plan).await.expect("born");
        detached(&mut birth).await;
        until(|| output(&dir, StreamName::Stdout).starts_with(b"up"));
        let hup = ostler_model::Signal::try_from(1).expect("a signal");
        birth.control.send(Order::Signal(hup)).await.expect("sent");
        printed(&mut birth, &dir, "hup").await;
        stop(&birth, Duration::ZERO).await;
        exit_of(birth).await;
    });
}

/// A daemon of ours with a tree that was detached, killed; who runs.
fn orphaned(world: &World, script: &str) -> ExecutionId {
    let script = format!("{KEPT}{script}");
    let daemon = Daemon::start(world.state.path(), &[&script]);
    let (id, _) = daemon.runs[0];
    daemon.kill();
    id
}

fn adopted() {
    let world = World::new();
    let id = orphaned(&world, LAUNCHER);
    let dir = world.dir(id);
    let find = async |place: &LocalPlace| match place.find(id).await {
        Found::Running { birth, .. } => birth,
        found => panic!("it runs: {found:?}"),
    };
    world.runtime.block_on(async {
        let mut birth = find(&world.place).await;
        assert_eq!(detached(&mut birth).await, WaitStatus::Code(0));
        // And once more.
        let second = LocalPlace::open(world.state.path(), this_executable()).await;
        let second = second.expect("opens");
        world.place.close().await;
        let mut birth = find(&second).await;
        assert_eq!(detached(&mut birth).await, WaitStatus::Code(0));
        printed(&mut birth, &dir, "tick").await;
        stop(&birth, Duration::from_millis(500)).await;
        let record = exit_of(birth).await;
        assert_eq!(status(&record).1, Some(Ladder::Ordered));
        second.close().await;
    });
    assert!(members(id).is_empty());
}

fn ended_alone() {
    let world = World::new();
    let script = "setsid sh -c 'sleep 0.8; exit 6' & exit 0";
    let id = orphaned(&world, script);
    until(|| world.dir(id).join("exit").exists());
    let found = world.runtime.block_on(world.place.find(id));
    let Found::Exited(record) = found else {
        panic!("it ended: {found:?}");
    };
    assert_eq!(status(&record), (WaitStatus::Code(6), None));
}

fn stopped_early() {
    let world = World::new();
    let plan = keep("sleep 300 & exit 0");
    let id = plan.id;
    world.runtime.block_on(async {
        let birth = world.place.spawn(plan).await.expect("born");
        stop(&birth, Duration::ZERO).await;
        let record = exit_of(birth).await;
        assert_eq!(status(&record).1, Some(Ladder::Ordered));
    });
    assert!(members(id).is_empty());
}
