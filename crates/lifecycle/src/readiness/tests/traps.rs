//! Misleading output of real programs, as transcripts.

use super::*;

const V4: &str = "127.0.0.1:3000";
const ANY: &str = "0.0.0.0:3000";

/// Ready within 50 ms of listening, in the worst case of the schedule.
fn soon(world: &World, opened: u64) {
    let readies = world.readies();
    assert_eq!(readies.len(), 1, "{:?}", world.found);
    assert!((opened..opened + 50).contains(&readies[0]), "{readies:?}");
}

#[test]
fn listening_to_ready_within_50_ms() {
    for opened in [1, 24, 25, 26, 333, 1_990, 2_010, 9_000] {
        let world = play(&server(), 20_000, &[(opened, Open(V4))]);
        if opened < 2_000 {
            soon(&world, opened);
        }
        assert!(world.readies()[0] < opened + 65, "{:?}", world.readies());
        assert_eq!(world.ports(), (vec![3000], Some("http://localhost:3000/")));
        assert_eq!(world.probes.len(), 1, "no probe after success");
    }
    // Late, but with a message.
    soon(
        &play(
            &server(),
            90_000,
            &[(80_001, Out("up\n")), (80_001, Open(V4))],
        ),
        80_001,
    );
}

#[test]
fn address_in_use_never_counts_as_ready() {
    for line in [
        "Error: listen EADDRINUSE: address already in use :::3000\n",
        "OSError: [Errno 98] Address already in use\n",
        "Port 3000 is already in use\n",
    ] {
        // A plausible pattern: `alREADY IN use` contains `ready in`.
        for kind in [
            ServiceKind::Server,
            ServiceKind::Unknown,
            ServiceKind::Watcher,
            ServiceKind::Multi,
        ] {
            for when in [ReadyCondition::Auto, ReadyCondition::Log] {
                let ready =
                    vec!["(?i)Local:.*http://localhost|ready in|compiled successfully".into()];
                let rule = ReadyRule {
                    when,
                    ready,
                    ..rule(kind)
                };
                let world = play(&rule, 60_000, &[(300, Err(line))]);
                assert_eq!(world.readies(), [0; 0], "{kind:?} {line}");
                assert_eq!(world.runnings(), [0; 0], "{kind:?} {line}");
                assert_eq!(world.ills(), [(1_800, line.trim())], "{kind:?}");
            }
        }
    }
}

#[test]
fn tries_a_port_in_use_again_and_again() {
    // gunicorn tries five times in five seconds, with a timestamp in each line.
    let script = [
        (
            170,
            Err("[17:35:47] [ERROR] Connection in use: ('127.0.0.1', 33523)\n"),
        ),
        (
            1_170,
            Err("[17:35:48] [ERROR] Connection in use: ('127.0.0.1', 33523)\n"),
        ),
        (
            2_160,
            Err("[17:35:49] [ERROR] Connection in use: ('127.0.0.1', 33523)\n"),
        ),
    ];
    assert_eq!(play(&server(), 60_000, &script).ills().len(), 1);
}

#[test]
fn moves_to_another_port() {
    let requested = ReadyRule {
        port: Some(3000),
        ..server()
    };
    let line = "Port 3000 is in use, trying another one...\n";
    let world = play(
        &requested,
        60_000,
        &[(300, Out(line)), (310, Open("127.0.0.1:3001"))],
    );
    soon(&world, 310);
    assert_eq!(world.ills(), []);
    let warnings = [
        "asked for port 3000, got 3001".to_owned(),
        line.trim().to_owned(),
    ];
    assert_eq!(world.ready().1, warnings);
    // Without a message about another port, one may still open within 1.5 s.
    let world = play(
        &requested,
        60_000,
        &[
            (300, Out("Port 3000 is in use\n")),
            (1_700, Open("[::]:3001")),
        ],
    );
    soon(&world, 1_700);
    assert_eq!(world.ills(), []);
}

#[test]
fn in_use_then_ready_after_all() {
    let script = [
        (
            300,
            Err("Error: listen EADDRINUSE: address already in use :::3000\n"),
        ),
        (
            320,
            Out("[nodemon] app crashed - waiting for file changes before starting...\n"),
        ),
        (9_000, Out("[nodemon] restarting due to changes...\n")),
        (9_400, Open(V4)),
    ];
    let world = play(&server(), 60_000, &script);
    assert_eq!(
        world.ills(),
        [(
            320,
            "[nodemon] app crashed - waiting for file changes before starting..."
        )]
    );
    soon(&world, 9_400);
}

#[test]
fn ready_line_two_seconds_before_the_port() {
    // uvicorn --workers prints 2.3 s early; the kind of a generic program is unknown.
    for kind in [ServiceKind::Server, ServiceKind::Unknown] {
        for line in [
            "INFO: Uvicorn running on http://127.0.0.1:3000 (Press CTRL+C to quit)\n",
            "Server listening on port 3000\n",
        ] {
            let world = play(&rule(kind), 60_000, &[(200, Err(line)), (2_512, Open(V4))]);
            assert_eq!(world.runnings(), [0; 0], "{kind:?} {line}");
            assert_eq!(world.readies().len(), 1);
            assert!(
                (2_512..2_580).contains(&world.readies()[0]),
                "{:?}",
                world.readies()
            );
        }
    }
    // The caller requested this line: the line of a server alone is not enough.
    let ready = vec!["running on".into()];
    let log = ReadyRule {
        when: ReadyCondition::Log,
        ready,
        ..server()
    };
    let script = [
        (200, Out("Uvicorn running on http://127.0.0.1:3000\n")),
        (2_512, Open(V4)),
    ];
    let world = play(&log, 60_000, &script);
    assert!(
        (2_512..2_580).contains(&world.readies()[0]),
        "{:?}",
        world.readies()
    );
    // A server without any visible port: finally its line counts.
    let world = play(&log, 60_000, &script[..1]);
    assert_eq!(world.readies(), [10_200]);
    assert_eq!(
        world.ready().1,
        ["its line came, but no port of it listens"]
    );
}

#[test]
fn ready_line_then_exit() {
    let line = "[SUCCESS] Docusaurus website is running at: http://localhost:3000/\n";
    let world = play(&server(), 400, &[(100, Out(line))]);
    assert_eq!(world.found, []);
    assert_eq!(world.machine.waits_for(), "a port to listen");
}

#[test]
fn port_opens_then_the_process_dies() {
    // gunicorn listens for half a second, the kernel accepts connections, then it exits.
    let closed = ProbeOutcome::Accepted {
        detail: "closed without an answer".into(),
    };
    let script = [
        (100, Open("127.0.0.1:8000")),
        (100, Reply(450, closed)),
        (
            100,
            Err("[INFO] Listening at: http://127.0.0.1:8000 (12)\n"),
        ),
        (560, Close("127.0.0.1:8000")),
    ];
    let world = play(&server(), 700, &script);
    assert_eq!(world.readies(), [0; 0]);
    assert_eq!(world.ports().0, [0; 0]);
}

#[test]
fn worker_failed_to_boot() {
    let line = "gunicorn.errors.HaltServer: <HaltServer 'Worker failed to boot.' 3>\n";
    let world = play(
        &server(),
        700,
        &[
            (100, Open(V4)),
            (100, Reply(30_000, refused())),
            (560, Err(line)),
        ],
    );
    assert_eq!(world.ills(), [(560, line.trim())]);
    assert_eq!(world.readies(), [0; 0]);
}

#[test]
fn watcher_survives_with_no_port() {
    for line in [
        "[nodemon] app crashed - waiting for file changes before starting...\n",
        "Failed running 'server.js'. Waiting for file changes before restarting...\n",
    ] {
        for kind in [ServiceKind::Server, ServiceKind::Unknown] {
            let script = [
                (300, Err("Error: boom\n    at x.js:1\n")),
                (301, Tty(line)),
                (301, Members(1)),
            ];
            let world = play(&rule(kind), 120_000, &script);
            assert_eq!(world.ills(), [(301, line.trim())]);
            assert_eq!((world.readies(), world.runnings()), (vec![], vec![]));
        }
    }
}

#[test]
fn reload_with_an_import_error() {
    let script = [
        (
            200,
            Err("INFO:     Uvicorn running on http://127.0.0.1:8000 (Press CTRL+C to quit)\n"),
        ),
        (
            210,
            Err("INFO:     Started reloader process [12] using StatReload\n"),
        ),
        (
            700,
            Err("Traceback (most recent call last):\n  File \"x.py\", line 1\n"),
        ),
        (701, Err("ModuleNotFoundError: No module named 'nope'\n")),
    ];
    // tsx watch and similar print nothing more: silence after an error means failure.
    for kind in [ServiceKind::Server, ServiceKind::Unknown] {
        let world = play(&rule(kind), 120_000, &script);
        assert_eq!(
            world.ills(),
            [(5_701, "Traceback (most recent call last):")],
            "{kind:?}"
        );
        assert_eq!((world.readies(), world.runnings()), (vec![], vec![]));
    }
    let loading = (
        702,
        Err("ERROR:    Error loading ASGI app. Could not import module \"main\".\n"),
    );
    let world = play(&server(), 120_000, &[&script[..], &[loading]].concat());
    assert_eq!(world.ills().len(), 1);
    assert_eq!(world.ills()[0].0, 702);
}

#[test]
fn errors_while_it_compiles_are_not_its_end() {
    let mut script = vec![(100, Err("error: something in a log\n"))];
    for round in 1..30 {
        // Neither output nor a socket, but compiler processes come and go.
        script.push((
            1_000 * round,
            Members(2 + u32::try_from(round % 2).expect("small")),
        ));
    }
    script.push((30_500, Open(V4)));
    let world = play(&server(), 40_000, &script);
    assert_eq!(world.ills(), []);
    assert_eq!(world.readies().len(), 1);
    let zero = play(
        &server(),
        40_000,
        &[(10, Out("Found 0 errors. Watching for file changes.\n"))],
    );
    assert_eq!(zero.ills(), []);
}

#[test]
fn block_buffered_output() {
    soon(&play(&server(), 5_000, &[(400, Open("0.0.0.0:8000"))]), 400);
}

#[test]
fn unix_socket_only() {
    let world = play(
        &rule(ServiceKind::Socket),
        60_000,
        &[(300, Unix("/run/app.sock"))],
    );
    assert!((300..340).contains(&world.readies()[0]));
    assert_eq!(world.ready().0, "unix /run/app.sock listens");
    assert_eq!(world.ports(), (vec![], None));
    let world = play(
        &rule(ServiceKind::Unknown),
        60_000,
        &[(300, Unix("/run/app.sock"))],
    );
    assert_eq!((world.readies(), world.runnings()), (vec![2_000], vec![]));
    let world = play(
        &when(ReadyCondition::Listening),
        60_000,
        &[(300, Unix("/run/app.sock"))],
    );
    assert!((300..340).contains(&world.readies()[0]));
}

#[test]
fn two_ports_the_debugger_first() {
    let script = [
        (50, Err("Debugger listening on ws://127.0.0.1:9229/0f2c\n")),
        (50, Open("127.0.0.1:9229")),
        (900, Open("[::]:3000")),
    ];
    let world = play(&server(), 60_000, &script);
    soon(&world, 900);
    assert_eq!(
        world.ports(),
        (vec![3000, 9229], Some("http://localhost:3000/"))
    );
    assert_eq!(world.probes.len(), 1);
    assert!(world.stages()[0] >= 900);
    // It is the only port.
    let world = play(&server(), 60_000, &script[..2]);
    assert!(
        (5_050..5_200).contains(&world.readies()[0]),
        "{:?}",
        world.readies()
    );
}

#[test]
fn a_debugger_whose_port_is_in_use_does_no_harm() {
    let script = [
        (
            50,
            Err("Starting inspector on 127.0.0.1:9229 failed: address already in use\n"),
        ),
        (3_000, Open(V4)),
    ];
    let world = play(&server(), 60_000, &script);
    assert_eq!(world.ills(), []);
    assert_eq!(world.readies().len(), 1);
}

#[test]
fn seven_ports() {
    let script = [
        (200, Open("127.0.0.1:40001")),
        (200, Open("127.0.0.1:40002")),
        (210, Open("127.0.0.1:9229")),
        (230, Open("127.0.0.1:40003")),
        (350, Open("127.0.0.1:40004")),
        (600, Open("[::1]:8787")),
        (600, Open("127.0.0.1:8787")),
    ];
    let wrangler = ReadyRule {
        default_port: Some(8787),
        ..server()
    };
    let world = play(&wrangler, 20_000, &script);
    soon(&world, 600);
    assert_eq!(
        world.ports().0,
        [8787, 8787, 40001, 40002, 40003, 40004, 9229]
    );
    assert_eq!(world.ports().1, Some("http://localhost:8787/"));
}

#[test]
fn random_port() {
    let line = "Serving at http://localhost:41873/app?token=5f1 now\n";
    let world = play(
        &server(),
        20_000,
        &[(300, Open("127.0.0.1:41873")), (340, Out(line))],
    );
    soon(&world, 300);
    assert_eq!(
        world.ports().1,
        Some("http://localhost:41873/app?token=5f1")
    );
}

#[test]
fn ipv6_only() {
    let world = play(&server(), 20_000, &[(300, Open("[::1]:3000"))]);
    soon(&world, 300);
    assert_eq!(world.ports().1, Some("http://[::1]:3000/"));
    let ProbeRequest::Http { address, host, .. } = &world.probes[0].1 else {
        panic!("an HTTP probe");
    };
    assert_eq!(
        (address.to_string().as_str(), host.as_str()),
        ("[::1]:3000", "localhost")
    );
}

#[test]
fn tls_only() {
    let tls = ProbeOutcome::Http {
        status: 200,
        tls: true,
        ms: 9,
    };
    let world = play(
        &server(),
        20_000,
        &[(300, Open("0.0.0.0:8443")), (300, Reply(9, tls))],
    );
    soon(&world, 300);
    assert_eq!(world.ports().1, Some("https://localhost:8443/"));
    assert_eq!(world.probes.len(), 1);
}

#[test]
fn no_http_at_all() {
    let redis = ProbeOutcome::Accepted {
        detail: "speaks no HTTP".into(),
    };
    let world = play(
        &server(),
        20_000,
        &[(300, Open("127.0.0.1:6379")), (300, Reply(1, redis))],
    );
    soon(&world, 300);
    let evidence = "127.0.0.1:6379 listens (node, pid 42); 127.0.0.1:6379 takes connections";
    assert_eq!(world.ready().0, evidence);
}

#[test]
fn first_request_compiles_for_13_seconds() {
    let script = [(800, Open("[::]:3000")), (800, Reply(13_200, http(200)))];
    let world = play(&server(), 60_000, &script);
    assert_eq!(world.probes.len(), 1, "one patient probe");
    assert!((14_000..14_100).contains(&world.readies()[0]));
    assert_eq!(world.stages().len(), 2);
    assert!(world.stages()[0] < 850);
}

#[test]
fn not_yet_is_503() {
    let script = [
        (100, Open(V4)),
        (100, Reply(1, http(503))),
        (4_000, Reply(1, http(200))),
    ];
    let mut world = World::new(Readiness::new(&server(), None));
    world.play(3_000, &script[..2]);
    assert_eq!(
        world.machine.waits_for(),
        "port 3000 to answer (503 so far)"
    );
    assert!(world.probes.len() < 8, "{}", world.probes.len());
    world.play(9_000, &script[2..]);
    assert!((4_000..5_100).contains(&world.readies()[0]));
}

#[test]
fn free_ports_are_tried_first() {
    // vite, docusaurus and others bind and close the same port up to five times.
    let mut script = Vec::new();
    for round in 0..5 {
        script.push((24 + 25 * round, Open(ANY)));
        script.push((26 + 25 * round, Close(ANY)));
    }
    let world = play(&server(), 1_000, &script);
    assert_eq!(world.found, []);
    script.push((1_200, Open(ANY)));
    soon(&play(&server(), 5_000, &script), 1_200);
}

#[test]
fn line_split_across_writes_in_colour() {
    let script = [
        (100, Tty("\x1b[32m  \u{279c}\x1b[3")),
        (
            105,
            Tty("9m  \x1b[1mLocal\x1b[22m:   \x1b[36mhttp://localhost:\x1b[1m51"),
        ),
        (110, Tty("73\x1b[22m/base/\x1b[39m\r\n")),
        (110, Open("127.0.0.1:5173")),
        (110, Open("127.0.0.1:24678")),
        (115, Open("127.0.0.1:9000")),
    ];
    let world = play(&server(), 5_000, &script);
    soon(&world, 110);
    assert_eq!(
        world.ports(),
        (vec![5173, 9000, 24678], Some("http://localhost:5173/base/"))
    );
}

#[test]
fn daemonised() {
    // The leader has exited, its server runs in the tree.
    let script = [(50, Members(2)), (100, Members(1)), (1_000, Open(ANY))];
    soon(&play(&server(), 5_000, &script), 1_000);
}

#[test]
fn exits_when_stdin_closes_or_needs_a_terminal() {
    // The supervisor reports its end; readiness reports nothing before.
    assert_eq!(play(&server(), 1_500, &[(100, Out("serving\n"))]).found, []);
}

#[test]
fn another_server_answers_in_its_place() {
    let url = ReadyCondition::Http {
        target: "http://localhost:3000/health".into(),
    };
    let rule = ReadyRule {
        when: url,
        ..server()
    };
    let line = "Error: listen EADDRINUSE: address already in use :::3000\n";
    let mut world = play(&rule, 10_000, &[(300, Err(line))]);
    assert_eq!(world.probes, []);
    assert_eq!(world.ills().len(), 1);
    world.play(20_000, &[(12_000, Open(V4))]);
    assert_eq!(world.readies().len(), 1);
}

#[test]
fn flaps_before_it_is_ready() {
    let script: Vec<(u64, Change)> = (0..40)
        .flat_map(|round| [(200 * round, Open(ANY)), (200 * round + 100, Close(ANY))])
        .chain([(0, Reply(5_000, http(200)))])
        .collect();
    let mut script = script;
    script.sort_by_key(|it| it.0);
    let world = play(&server(), 20_000, &script);
    assert_eq!(world.readies(), [0; 0]);
    assert_eq!(world.ports().0, [0; 0]);
}

#[test]
fn evidence_names_the_main_port() {
    let script = [(100, Open("127.0.0.1:40001")), (900, Open(V4))];
    let requested = ReadyRule {
        port: Some(3000),
        ..server()
    };
    let world = play(&requested, 9_000, &script);
    let evidence = world.ready().0;
    assert!(evidence.starts_with("127.0.0.1:3000 listens"), "{evidence}");
}

#[test]
fn a_dying_programs_socket_shows_nothing() {
    // Scanned once, then the failure line, then scanned again.
    let dead = "[nodemon] app crashed - waiting for file changes before starting...\n";
    let world = play(
        &server(),
        2_000,
        &[(99, Open(V4)), (103, Out(dead)), (150, Close(V4))],
    );
    assert_eq!(world.readies(), [0; 0]);
}
