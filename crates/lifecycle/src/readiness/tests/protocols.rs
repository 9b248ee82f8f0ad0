//! Servers that speak HTTP, servers that do not, and servers that stop responding.

use super::*;

fn spoken_to(world: &World) -> usize {
    let http = |it: &&(u64, ProbeRequest)| matches!(it.1, ProbeRequest::Http { .. });
    world.probes.iter().filter(http).count()
}

fn taken() -> ProbeOutcome {
    ProbeOutcome::Accepted {
        detail: "connection taken".into(),
    }
}

#[test]
fn databases_and_brokers_are_connected_to_and_never_spoken_to() {
    for address in [
        "127.0.0.1:6379",
        "0.0.0.0:5432",
        "127.0.0.1:1883",
        "[::]:25",
    ] {
        for kind in [ServiceKind::Unknown, ServiceKind::Server] {
            let script = [(0, Reply(1, taken())), (100, Open(address))];
            let world = play(&rule(kind), 60_000, &script);
            assert_eq!(world.readies().len(), 1, "{address}");
            assert_eq!(spoken_to(&world), 0, "{address}");
            assert_eq!(world.ports().1, None, "{address}");
        }
    }
    // A server that prints a URL with this port speaks HTTP on it.
    let script = [
        (50, Out("serving at http://localhost:5432/\n")),
        (100, Open("127.0.0.1:5432")),
    ];
    let world = play(&rule(ServiceKind::Unknown), 5_000, &script);
    assert_eq!(spoken_to(&world), 1);
    assert_eq!(world.ports().1, Some("http://localhost:5432/"));
}

#[test]
fn a_url_is_published_where_http_was_answered() {
    for (answer, url) in [
        (http(200), Some("http://localhost:7070/")),
        (http(404), Some("http://localhost:7070/")),
        (
            ProbeOutcome::Accepted {
                detail: "it talks first".into(),
            },
            None,
        ),
    ] {
        let script = [(0, Reply(300, answer)), (100, Open("127.0.0.1:7070"))];
        for when in [ReadyCondition::Auto, ReadyCondition::Quiet { ms: 1_000 }] {
            let rule = ReadyRule {
                when,
                ..ReadyRule::default()
            };
            let world = play(&rule, 10_000, &script);
            assert_eq!(world.readies().len(), 1);
            assert_eq!(world.ports().1, url);
            // No URL is published before the response.
            let early = world.found.iter().filter(|(at, _)| *at < 300);
            let actual =
                early.filter(|(_, it)| matches!(it, ReadinessEvent::Ports { url: Some(_), .. }));
            assert_eq!(actual.count(), 0);
        }
    }
}

#[test]
fn a_port_that_is_not_probed_is_published_as_printed() {
    let listening = when(ReadyCondition::Listening);
    let script = [(100, Open("127.0.0.1:7070"))];
    let world = play(&listening, 10_000, &script);
    assert_eq!((world.ports().1, spoken_to(&world)), (None, 0));
    let printed = [
        (50, Out("at http://localhost:7070/app\n")),
        script[0].clone(),
    ];
    let world = play(&listening, 10_000, &printed);
    assert_eq!(world.ports().1, Some("http://localhost:7070/app"));
    assert_eq!(spoken_to(&world), 0);
}

#[test]
fn a_silent_server_is_ready_and_probed_once_more_with_a_long_timeout() {
    let script = [
        (0, Reply(5_000, ProbeOutcome::Silent { ms: 5_000 })),
        (100, Open("127.0.0.1:7070")),
    ];
    let mut world = play(&rule(ServiceKind::Unknown), 5_500, &script);
    assert_eq!((world.readies().len(), world.ports().1), (1, None));
    let (evidence, _) = world.ready();
    assert!(evidence.contains("says nothing for 5000 ms"), "{evidence}");
    world.play(60_000, &[(5_600, Reply(9_000, http(200)))]);
    assert_eq!(world.ports().1, Some("http://localhost:7070/"));
    let last = world.probes.last().map(|it| it.1.clone());
    assert!(
        matches!(last, Some(ProbeRequest::Http { unsure: false, .. })),
        "{last:?}"
    );
    assert_eq!(spoken_to(&world), 2);
}

#[test]
fn one_that_takes_no_connections_is_not_ready() {
    let script = [
        (0, Reply(5_000, ProbeOutcome::Silent { ms: 5_000 })),
        (100, Open("127.0.0.1:7070")),
        (110, Queue(1)),
    ];
    let mut world = play(&rule(ServiceKind::Unknown), 30_000, &script);
    assert_eq!(world.readies(), [0; 0]);
    world.play(60_000, &[(30_000, Queue(0))]);
    assert_eq!(world.readies().len(), 1);
}

#[test]
fn administration_and_metrics_never_win_over_the_site() {
    for (aside, site) in [
        ("127.0.0.1:2019", "0.0.0.0:8080"),
        ("0.0.0.0:9090", "0.0.0.0:8080"),
        ("127.0.0.1:7001", "0.0.0.0:8080"),
    ] {
        for order in [[(100, aside), (900, site)], [(100, site), (900, aside)]] {
            let script = [
                (50, Out("metrics are served on 127.0.0.1:7001\n")),
                (
                    60,
                    Out("{\"msg\":\"admin endpoint started\",\"address\":\"localhost:2019\"}\n"),
                ),
                (order[0].0, Open(order[0].1)),
                (order[1].0, Open(order[1].1)),
            ];
            let world = play(&rule(ServiceKind::Unknown), 20_000, &script);
            assert_eq!(world.ports().0[0], 8080, "{order:?}");
        }
    }
    let alone = play(
        &rule(ServiceKind::Unknown),
        20_000,
        &[(100, Open("0.0.0.0:9090"))],
    );
    assert_eq!((alone.readies().len(), alone.ports().0), (1, vec![9090]));
    let prometheus = ReadyRule {
        default_port: Some(9090),
        ..server()
    };
    let own = play(&prometheus, 1_000, &[(100, Open("0.0.0.0:9090"))]);
    assert_eq!(own.readies().len(), 1);
}

#[test]
fn a_server_that_hangs_is_no_longer_ready() {
    let late = ProbeOutcome::Failed {
        detail: "no answer within 5 s".into(),
    };
    for hang in [Stop(true), Queue(3)] {
        let mut world = play(&server(), 10_000, &[(100, Open("127.0.0.1:3000"))]);
        assert_eq!(world.readies().len(), 1);
        let script = [(10_000, Reply(5_000, late.clone())), (10_000, hang.clone())];
        world.play(40_000, &script);
        let ills = world.ills();
        let [(_, detail)] = ills.as_slice() else {
            panic!("{ills:?}");
        };
        assert!(detail.contains("port 3000 no longer answers"), "{detail}");
        assert_eq!(
            detail.contains("stopped by a signal"),
            matches!(hang, Stop(_))
        );
        let limit = world.machine.watch_plan(ms(40_000)).probe_timeout;
        assert!(limit <= ms(5_000), "{limit:?}");
        let script = [
            (40_000, Reply(2, http(200))),
            (40_000, Stop(false)),
            (40_000, Queue(0)),
        ];
        world.play(60_000, &script);
        assert_eq!(world.wells().len(), 1);
    }
}
