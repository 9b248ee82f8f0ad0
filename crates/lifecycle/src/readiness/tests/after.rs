//! Health and changes after ready.

use super::*;

const V4: &str = "127.0.0.1:3000";

fn health(probe: ReadyCondition, failures: u32, restart: bool) -> HealthRule {
    HealthRule {
        probe,
        interval: Some(ms(1_000)),
        failures,
        restart,
    }
}

#[test]
fn the_main_port_goes_and_comes_back() {
    let script = [
        (300, Open(V4)),
        (9_000, Out("Error: boom\n")),
        (9_000, Close(V4)),
        (20_000, Open(V4)),
    ];
    let world = play(&server(), 40_000, &script);
    assert_eq!(world.readies().len(), 1);
    let ills = world.ills();
    assert_eq!(ills.len(), 1);
    assert_eq!(
        ills[0].1,
        "port 3000 is no longer listening; last line: Error: boom"
    );
    assert!((10_000..11_500).contains(&ills[0].0), "{ills:?}");
    assert!((20_000..22_100).contains(&world.wells()[0]));
    assert!(world.scans < 60, "{}", world.scans);
}

#[test]
fn a_reload_is_no_crash() {
    let script = [
        (300, Open(V4)),
        (9_000, Out("Reloading\n")),
        (9_000, Close(V4)),
        (9_700, Open(V4)),
    ];
    let world = play(&server(), 40_000, &script);
    assert_eq!((world.ills(), world.wells()), (vec![], vec![]));
}

#[test]
fn errors_in_the_log_of_a_ready_server_do_no_harm() {
    let script = [
        (300, Open(V4)),
        (
            1_000,
            Err("Error: database is away\nTraceback (most recent call last):\n"),
        ),
        (
            1_001,
            Err("[nodemon] app crashed - waiting for file changes before starting...\n"),
        ),
        (1_002, Err("EADDRINUSE\n")),
    ];
    assert_eq!(play(&server(), 40_000, &script).ills(), []);
}

#[test]
fn more_ports_change_neither_the_main_one_nor_readiness() {
    let script = [
        (300, Open(V4)),
        (9_000, Open("127.0.0.1:40123")),
        (19_000, Close("127.0.0.1:40123")),
    ];
    let world = play(&server(), 40_000, &script);
    assert_eq!(world.readies().len(), 1);
    assert_eq!(world.ills(), []);
    assert_eq!(world.ports(), (vec![3000], Some("http://localhost:3000/")));
    let actual = world
        .found
        .iter()
        .filter(|it| matches!(it.1, ReadinessEvent::Ports { .. }))
        .count();
    // The URL is published with the response.
    assert_eq!(actual, 4);
}

#[test]
fn a_url_printed_after_ready_is_taken() {
    let line = "  http://127.0.0.1:3000/tree?token=5f1\n";
    let world = play(&server(), 40_000, &[(300, Open(V4)), (2_000, Out(line))]);
    assert_eq!(
        world.ports().1,
        Some("http://127.0.0.1:3000/tree?token=5f1")
    );
    // A line that names this machine differently changes nothing published.
    let same = "Serving on http://127.0.0.1:3000/\n";
    let world = play(&server(), 40_000, &[(300, Open(V4)), (2_000, Out(same))]);
    assert_eq!(world.ports().1, Some("http://localhost:3000/"));
    // Lines about another program's requests, much later, are ignored.
    let world = play(&server(), 40_000, &[(300, Open(V4)), (20_000, Out(line))]);
    assert_eq!(world.ports().1, Some("http://localhost:3000/"));
}

#[test]
fn health_rule() {
    let rule = health(
        ReadyCondition::Http {
            target: "/up".into(),
        },
        2,
        false,
    );
    let mut world = World::with_health(&server(), &rule);
    world.play(9_500, &[(300, Open(V4)), (5_000, Reply(1, http(500)))]);
    assert_eq!(world.ills().len(), 1);
    assert_eq!(world.ills()[0].1, "health: 500 (2 times in a row)");
    assert!(
        (6_000..7_500).contains(&world.ills()[0].0),
        "{:?}",
        world.ills()
    );
    world.play(20_000, &[(10_000, Reply(1, http(200)))]);
    assert!((10_000..11_100).contains(&world.wells()[0]));
    assert!(
        (19..=21).contains(&world.probes.len()),
        "{}",
        world.probes.len()
    );
}

#[test]
fn one_failure_is_none() {
    let rule = health(ReadyCondition::Responding, 0, true);
    let mut world = World::with_health(&server(), &rule);
    let flaky = [
        (300, Open(V4)),
        (4_000, Reply(1, http(503))),
        (5_900, Reply(1, http(200))),
    ];
    world.play(20_000, &flaky);
    assert_eq!(world.ills(), []);
}

#[test]
fn health_wants_a_restart() {
    for probe in [
        ReadyCondition::Responding,
        ReadyCondition::Listening,
        ReadyCondition::Tcp { port: 3000 },
    ] {
        let mut world = World::with_health(&server(), &health(probe.clone(), 3, true));
        let taken = ProbeOutcome::Accepted {
            detail: "connected".into(),
        };
        world.play(
            30_000,
            &[(300, Open(V4)), (300, Reply(1, taken)), (9_000, Close(V4))],
        );
        let restarts: Vec<bool> = world
            .found
            .iter()
            .filter_map(|(_, it)| match it {
                ReadinessEvent::Unhealthy { restart, .. } => Some(*restart),
                ReadinessEvent::Ports { .. }
                | ReadinessEvent::Stage { .. }
                | ReadinessEvent::Ready { .. }
                | ReadinessEvent::Healthy { .. } => None,
            })
            .collect();
        assert_eq!(restarts, [false, true], "{probe:?}");
    }
    let exec = health(
        ReadyCondition::Exec {
            argv: vec!["check".into()],
        },
        1,
        true,
    );
    let mut world = World::with_health(&rule(ServiceKind::Unknown), &exec);
    world.play(
        9_000,
        &[(
            0,
            Reply(
                5,
                ProbeOutcome::Exec {
                    code: 1,
                    output: String::new(),
                },
            ),
        )],
    );
    assert_eq!(world.runnings(), [2_000]);
    assert_eq!(world.ills().len(), 1);
}

#[test]
fn it_says_that_it_stops() {
    let word = |ready, stopping| NotifyState {
        ready,
        stopping,
        ..NotifyState::default()
    };
    let script = [
        (100, Notify(word(true, false))),
        (500, Notify(word(false, true))),
        (900, Notify(word(true, false))),
    ];
    let world = play(&when(ReadyCondition::Notify), 9_000, &script);
    assert_eq!(world.ills(), [(500, "it says that it is stopping")]);
    assert_eq!(world.wells(), [900]);
}

#[test]
fn a_running_one_crashes_under_its_watcher() {
    let crash = "[nodemon] app crashed - waiting for file changes before starting...";
    let script = [
        (
            5_000,
            Out("[nodemon] app crashed - waiting for file changes before starting...\n"),
        ),
        (9_000, Out("[nodemon] starting `node worker.js`\n")),
    ];
    let world = play(&rule(ServiceKind::Unknown), 30_000, &script);
    assert_eq!(world.ills(), [(5_000, crash)]);
    assert_eq!(world.runnings(), [2_000, 11_000]);
}

#[test]
fn unix_socket_goes() {
    let script = [
        (100, Unix("/run/a.sock")),
        (9_000, NoUnix),
        (20_000, Unix("/run/a.sock")),
    ];
    let world = play(&rule(ServiceKind::Socket), 40_000, &script);
    assert_eq!(world.ills()[0].1, "unix /run/a.sock is no longer listening");
    assert_eq!(world.wells().len(), 1);
}

#[test]
fn a_reloader_holds_the_port_of_its_dead_child() {
    let silent = ProbeOutcome::Failed {
        detail: "no answer within 30 s".into(),
    };
    let script = [
        (100, Members(2)),
        (300, Open(V4)),
        (9_000, Members(1)),
        (9_000, Reply(30_000, silent)),
        (60_000, Members(2)),
        (60_000, Reply(2, http(200))),
    ];
    let world = play(&server(), 120_000, &script);
    assert_eq!(world.ills().len(), 1);
    assert_eq!(
        world.ills()[0].1,
        "port 3000 no longer answers (no answer within 30 s)"
    );
    assert!((39_000..43_000).contains(&world.ills()[0].0));
    assert_eq!(world.wells().len(), 1);
    // Workers come and go: at most one recheck in half a minute.
    let mut busy = vec![(300, Open(V4))];
    busy.extend((1..30).map(|at| (2_000 * at, Members(u32::try_from(at % 2).expect("small")))));
    let world = play(&server(), 60_000, &busy);
    assert!(world.probes.len() <= 3, "{}", world.probes.len());
    assert_eq!(world.ills(), []);
}

#[test]
fn another_port_does_not_take_its_place() {
    let script = [
        (300, Open("127.0.0.1:9095")),
        (300, Open(V4)),
        (9_000, Close(V4)),
        (30_000, Open("127.0.0.1:3001")),
    ];
    let mut world = World::new(Readiness::new(&server(), None));
    world.play(20_000, &script[..3]);
    assert_eq!(world.ills().len(), 1);
    assert_eq!(world.ports(), (vec![9095], None));
    // A port that was opened since then does.
    world.play(40_000, &script[3..]);
    assert_eq!(world.wells().len(), 1);
    assert_eq!(
        world.ports(),
        (vec![3001, 9095], Some("http://localhost:3001/"))
    );
}
