//! Each kind of readiness rule and each way to satisfy it.

use super::*;

const V4: &str = "127.0.0.1:3000";

#[test]
fn unknown_runs_after_two_seconds_and_may_listen_later() {
    let world = play(
        &rule(ServiceKind::Unknown),
        9_000,
        &[(100, Out("hello\n")), (6_000, Open(V4))],
    );
    assert_eq!(world.runnings(), [2_000]);
    assert_eq!(world.readies().len(), 1);
    assert!((6_000..6_150).contains(&world.readies()[0]));
    assert_eq!(world.stages().len(), 2);
    let requested = ReadyRule {
        port: Some(3000),
        ..rule(ServiceKind::Unknown)
    };
    assert_eq!(play(&requested, 60_000, &[]).runnings(), [0; 0]);
}

#[test]
fn server_never_runs_without_a_port() {
    let world = play(
        &server(),
        600_000,
        &[(100, Out("Server ready on http://localhost:3000\n"))],
    );
    assert_eq!(world.found, []);
    assert!(world.scans < 3_000, "{}", world.scans);
}

#[test]
fn watcher() {
    let watcher = rule(ServiceKind::Watcher);
    let lines = [
        (500, Out("Starting compilation in watch mode...\n")),
        (
            1_900,
            Out("src/a.ts(1,1): error TS2304: Cannot find name 'x'.\n"),
        ),
        (4_500, Out("Found 1 error. Watching for file changes.\n")),
    ];
    assert_eq!(play(&watcher, 60_000, &lines).readies(), [4_500]);
    // Silent: running after two seconds alive.
    assert_eq!(play(&watcher, 60_000, &[]).runnings(), [2_000]);
    // Busy: running once it is idle.
    assert_eq!(play(&watcher, 60_000, &lines[..2]).runnings(), [2_900]);
    // Its idle line is known.
    let known = ReadyRule {
        ready: vec!["^Found \\d+ errors?".into()],
        ..watcher
    };
    assert_eq!(play(&known, 60_000, &lines).readies(), [4_500]);
    assert_eq!(play(&known, 60_000, &[]).runnings(), [10_000]);
    let late = [(20_000, Out("Found 1 error\n"))];
    let world = play(&known, 60_000, &late);
    assert_eq!(
        (world.runnings(), world.readies()),
        (vec![10_000], vec![20_000])
    );
    // Ready by a port, if it opens one.
    let world = play(&known, 60_000, &[(300, Open(V4))]);
    assert_eq!(world.readies().len(), 1);
}

#[test]
fn several() {
    let multi = rule(ServiceKind::Multi);
    let world = play(
        &multi,
        60_000,
        &[(300, Open(V4)), (1_100, Open("127.0.0.1:5173"))],
    );
    assert_eq!(world.readies().len(), 1);
    assert!(
        (2_100..2_200).contains(&world.readies()[0]),
        "{:?}",
        world.readies()
    );
    assert_eq!(world.ports().0, [5173, 3000]);
    assert_eq!(play(&multi, 60_000, &[]).runnings(), [10_000]);
    let known = ReadyRule {
        ready: vec!["^ready".into()],
        ..multi
    };
    assert_eq!(
        play(&known, 60_000, &[(300, Out("ready to accept\n"))]).readies(),
        [300]
    );
}

#[test]
fn socket_kind_without_one() {
    let world = play(&rule(ServiceKind::Socket), 60_000, &[]);
    assert_eq!(world.runnings(), [10_000]);
    let world = play(&rule(ServiceKind::Socket), 60_000, &[(300, Open(V4))]);
    assert_eq!(world.readies().len(), 1);
}

#[test]
fn listening() {
    let world = play(&when(ReadyCondition::Listening), 60_000, &[(300, Open(V4))]);
    assert!((300..340).contains(&world.readies()[0]));
    assert_eq!(world.probes, []);
    assert_eq!(world.ready().0, "127.0.0.1:3000 listens (node, pid 42)");
}

#[test]
fn responding() {
    let script = [(300, Open(V4)), (300, Reply(5, http(500)))];
    let world = play(&when(ReadyCondition::Responding), 60_000, &script);
    assert!((300..350).contains(&world.readies()[0]));
    let evidence =
        "127.0.0.1:3000 listens (node, pid 42); GET / at 127.0.0.1:3000 answered 500 in 2 ms";
    assert_eq!(world.ready().0, evidence);
    assert_eq!(world.ready().1, ["GET / answered 500"]);
}

#[test]
fn log() {
    let log = ReadyRule {
        ready: vec!["^up$".into()],
        ..when(ReadyCondition::Log)
    };
    assert_eq!(
        play(&log, 60_000, &[(300, Out("not up\n")), (400, Err("up\n"))]).readies(),
        [400]
    );
    // The last line is not finished.
    assert_eq!(play(&log, 60_000, &[(300, Out("up"))]).readies(), [500]);
    assert_eq!(
        play(&log, 60_000, &[(300, Out("up")), (400, Out("s\n"))]).readies(),
        [0; 0]
    );
    let mut waiting = World::new(Readiness::new(&log, None));
    waiting.play(100, &[]);
    assert_eq!(waiting.machine.waits_for(), "a line matching ^up$");
    // A failure takes precedence; a later ready line counts again.
    let failing = ReadyRule {
        fail: vec!["^down".into()],
        ..log
    };
    let world = play(
        &failing,
        60_000,
        &[(300, Out("down\n")), (900, Out("up\n"))],
    );
    assert_eq!(
        (world.ills(), world.readies()),
        (vec![(300, "down")], vec![900])
    );
}

#[test]
fn http_path() {
    let path = when(ReadyCondition::Http {
        target: "/health".into(),
    });
    let script = [
        (300, Open(V4)),
        (300, Reply(1, http(404))),
        (2_000, Reply(1, http(204))),
    ];
    let world = play(&path, 60_000, &script);
    assert_eq!(world.readies().len(), 1);
    assert!((2_000..3_010).contains(&world.readies()[0]));
    let ProbeRequest::Http { path, .. } = &world.probes[0].1 else {
        panic!("an HTTP probe");
    };
    assert_eq!(path, "/health");
}

#[test]
fn a_health_url_is_tried_every_second_for_two_seconds() {
    let probe_timeout = |rule: &ReadyRule| {
        let world = play(
            rule,
            10_000,
            &[(300, Open(V4)), (300, Reply(60_000, refused()))],
        );
        world.machine.watch_plan(ms(10_000)).probe_timeout
    };
    for target in ["/health", "http://127.0.0.1:3000/health"] {
        let url = when(ReadyCondition::Http {
            target: target.into(),
        });
        assert_eq!(probe_timeout(&url), ms(2_000), "{target}");
        let world = play(&url, 30_000, &[(300, Open(V4)), (300, Reply(7, http(503)))]);
        let times = world.probes.iter().map(|it| it.0);
        let gaps: Vec<u64> = times
            .clone()
            .zip(times.skip(1))
            .map(|it| it.1 - it.0)
            .collect();
        assert!(gaps.iter().all(|gap| *gap <= 1_007), "{gaps:?}");
        assert!(gaps.ends_with(&[1_007; 20]), "{gaps:?}");
    }
    // Ostler's own probe waits for a first page that is compiled.
    assert_eq!(probe_timeout(&server()), ms(30_000));
}

#[test]
fn http_url() {
    let url = |target: &str| {
        when(ReadyCondition::Http {
            target: target.into(),
        })
    };
    // A port of the tree other than the main one.
    let rule = ReadyRule {
        port: Some(3000),
        ..url("http://127.0.0.1:9000/up")
    };
    let world = play(
        &rule,
        60_000,
        &[(300, Open(V4)), (700, Open("127.0.0.1:9000"))],
    );
    assert!(world.readies()[0] >= 700);
    assert_eq!(world.ports().0, [3000, 9000]);
    // Outside the tree, where no server is expected: the port of a container.
    let mut world = World::new(Readiness::new(&url("http://127.0.0.1:9000/up"), None));
    world.sockets.clear();
    world.play(400, &[]);
    assert_eq!(
        world.machine.waits_for(),
        "http://127.0.0.1:9000/up to answer with success (connection refused so far)"
    );
    assert!(world.probes.len() > 1);
}

#[test]
fn tcp() {
    let tcp = when(ReadyCondition::Tcp { port: 5432 });
    let taken = ProbeOutcome::Accepted {
        detail: "connected".into(),
    };
    let script = [
        (100, Open(V4)),
        (100, Reply(1, taken)),
        (500, Open("127.0.0.1:5432")),
    ];
    let world = play(&tcp, 60_000, &script);
    assert!(
        (500..600).contains(&world.readies()[0]),
        "{:?}",
        world.readies()
    );
    assert_eq!(world.machine.waits_for(), "nothing: it is ready");
}

#[test]
fn exec() {
    let exec = when(ReadyCondition::Exec {
        argv: vec!["pg_isready".into()],
    });
    let exited = |code| ProbeOutcome::Exec {
        code,
        output: "no response\n".into(),
    };
    let script = [(0, Reply(20, exited(2))), (900, Reply(20, exited(0)))];
    let mut world = World::new(Readiness::new(&exec, None));
    world.play(800, &script[..1]);
    assert_eq!(
        world.machine.waits_for(),
        "`pg_isready` to exit with 0 (exit code 2: no response so far)"
    );
    world.play(9_000, &script[1..]);
    assert!((900..2_000).contains(&world.readies()[0]));
    assert_eq!(world.ready().0, "`pg_isready` exited with 0");
}

#[test]
fn notify() {
    let word = |ready, status: Option<&str>| NotifyState {
        ready,
        status: status.map(Into::into),
        ..NotifyState::default()
    };
    let script = [
        (100, Notify(word(false, Some("loading")))),
        (700, Notify(word(true, None))),
    ];
    let world = play(&when(ReadyCondition::Notify), 9_000, &script);
    assert_eq!(world.readies(), [700]);
    assert_eq!(world.ready().0, "it said READY=1 (loading)");
    assert!(world.machine.watch_plan(ms(9_000)).notify);
    assert!(!play(&server(), 10, &[]).machine.watch_plan(ms(10)).notify);
}

#[test]
fn quiet() {
    let quiet = when(ReadyCondition::Quiet { ms: 1_500 });
    assert_eq!(play(&quiet, 9_000, &[]).readies(), [1_500]);
    let world = play(&quiet, 9_000, &[(1_000, Out("a")), (2_400, Out("b\n"))]);
    assert_eq!(world.readies(), [3_900]);
    let crashed = [(
        100,
        Out("[nodemon] app crashed - waiting for file changes before starting...\n"),
    )];
    assert_eq!(play(&quiet, 60_000, &crashed).readies(), [0; 0]);
}

#[test]
fn listens_before_ready() {
    let rule = ReadyRule {
        listens_before_ready: true,
        ready: vec!["compiled".into()],
        ..server()
    };
    let world = play(
        &rule,
        60_000,
        &[(300, Open(V4)), (5_000, Out("webpack compiled\n"))],
    );
    assert_eq!(world.readies(), [5_000]);
    let mut waiting = World::new(Readiness::new(&rule, None));
    waiting.play(1_000, &[(300, Open(V4))]);
    assert_eq!(waiting.stages().len(), 2);
    assert_eq!(waiting.machine.waits_for(), "its ready line");
    waiting.play(60_000, &[]);
    assert!((20_300..20_400).contains(&waiting.readies()[0]));
    assert_eq!(
        waiting.ready().1,
        ["its ready line did not come within 20 s"]
    );
    // The line was printed first.
    let world = play(&rule, 60_000, &[(100, Out("compiled\n")), (300, Open(V4))]);
    assert!(world.readies()[0] < 350);
    // No ready line is known.
    let blind = ReadyRule {
        ready: Vec::new(),
        ..rule
    };
    assert!(play(&blind, 60_000, &[(300, Open(V4))]).readies()[0] < 350);
}

#[test]
fn the_requested_port_may_open_second() {
    let requested = ReadyRule {
        port: Some(3000),
        ..server()
    };
    let world = play(
        &requested,
        60_000,
        &[(300, Open("127.0.0.1:9095")), (900, Open(V4))],
    );
    assert!((900..950).contains(&world.readies()[0]));
    assert_eq!(world.ready().1, [""; 0]);
    let world = play(&requested, 60_000, &[(300, Open("127.0.0.1:9095"))]);
    assert!(
        (1_800..1_900).contains(&world.readies()[0]),
        "{:?}",
        world.readies()
    );
    assert_eq!(world.ready().1, ["asked for port 3000, got 9095"]);
}

#[test]
fn what_it_waits_for() {
    for (rule, words) in [
        (server(), "a port to listen"),
        (
            ReadyRule {
                port: Some(3000),
                ..server()
            },
            "port 3000 to listen",
        ),
        (
            rule(ServiceKind::Unknown),
            "a port to listen, or 2 s of life without one",
        ),
        (
            ReadyRule {
                port: Some(3000),
                ..rule(ServiceKind::Unknown)
            },
            "port 3000 to listen",
        ),
        (rule(ServiceKind::Socket), "a unix socket to listen"),
        (rule(ServiceKind::Watcher), "a line that shows it at rest"),
        (when(ReadyCondition::Listening), "a port to listen"),
        (
            when(ReadyCondition::Notify),
            "READY=1 over its notify socket",
        ),
        (
            when(ReadyCondition::Quiet { ms: 5_000 }),
            "5000 ms without output",
        ),
        (
            when(ReadyCondition::Tcp { port: 5432 }),
            "port 5432 to take a connection",
        ),
        (
            when(ReadyCondition::Http {
                target: "/up".into(),
            }),
            "a port to listen",
        ),
    ] {
        assert_eq!(Readiness::new(&rule, None).waits_for(), words);
    }
    let failed = play(&server(), 2_000, &[(10, Err("EADDRINUSE\n"))]);
    assert_eq!(
        failed.machine.waits_for(),
        "a port to listen (it failed: EADDRINUSE)"
    );
}

#[test]
fn one_that_compiles_first_is_not_running_while_it_does() {
    let compiles = ReadyRule {
        compiles: true,
        ..rule(ServiceKind::Unknown)
    };
    let script = [
        (500, Out("   Compiling one v0.1.0\n")),
        (15_000, Out("   Compiling two v0.1.0\n")),
        (30_000, Members(3)),
    ];
    let world = play(&compiles, 49_000, &script);
    assert_eq!(world.runnings(), [0; 0]);
    let world = play(&compiles, 60_000, &script);
    assert_eq!(world.runnings().len(), 1);
    let served = [&script[..], &[(31_000, Open(V4))]].concat();
    let world = play(&compiles, 40_000, &served);
    assert_eq!((world.runnings(), world.readies().len()), (Vec::new(), 1));
}

#[test]
fn a_usual_port_that_was_left_silently_is_reported() {
    let usual = ReadyRule {
        default_port: Some(2_999),
        ..server()
    };
    let world = play(&usual, 5_000, &[(300, Open(V4))]);
    assert_eq!(world.ready().1, ["its usual port is 2999; it took 3000"]);
    // The program's own message is published instead, and a port far from the usual one was chosen
    // on purpose.
    let line = "Port 2999 is in use, trying another one...";
    let world = play(
        &usual,
        5_000,
        &[
            (100, Out("Port 2999 is in use, trying another one...\n")),
            (300, Open(V4)),
        ],
    );
    assert_eq!(world.ready().1, [line]);
    let far = ReadyRule {
        default_port: Some(8_080),
        ..server()
    };
    let world = play(&far, 5_000, &[(300, Open(V4))]);
    assert_eq!(world.ready().1, [""; 0]);
}
