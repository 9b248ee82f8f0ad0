//! Readiness resumed after a restart of the engine.

use ostler_model::ServicePort;

use super::*;

const V4: &str = "127.0.0.1:3000";

fn resumed(ready: bool) -> World {
    let mut world = World::new(Readiness::resume(&server(), None, ready));
    world.change(Open(V4));
    world
}

#[test]
fn a_ready_one_is_only_watched() {
    let mut world = resumed(true);
    world.play(30_000, &[(9_000, Close(V4)), (20_000, Open(V4))]);
    assert_eq!((world.readies(), world.stages()), (vec![], vec![]));
    assert_eq!(world.probes, []);
    assert_eq!(world.ills().len(), 1);
    assert_eq!(world.wells().len(), 1);
    let actual: Vec<u64> = world
        .found
        .iter()
        .filter(|it| matches!(it.1, ReadinessEvent::Ports { .. }))
        .map(|it| it.0)
        .collect();
    assert_eq!(
        actual[0], 8,
        "its ports are found again at once: {actual:?}"
    );
    assert_eq!(actual.len(), 3);
}

#[test]
fn one_that_was_not_ready_goes_on() {
    let mut world = resumed(false);
    world.play(30_000, &[]);
    assert_eq!(world.readies().len(), 1);
}

#[test]
fn health_goes_on() {
    let rule = HealthRule {
        probe: ReadyCondition::Responding,
        interval: Some(ms(500)),
        failures: 1,
        restart: true,
    };
    let mut world = World::new(Readiness::resume(&server(), Some(&rule), true));
    world.change(Open(V4));
    world.play(3_000, &[(1_200, Reply(1, http(503)))]);
    assert_eq!(world.ills().len(), 1);
    assert!(world.probes.len() > 3);
}

#[test]
fn a_ready_one_whose_port_went_meanwhile() {
    let mut world = World::new(Readiness::resume(&server(), None, true));
    world.play(9_000, &[(6_000, Open(V4))]);
    assert_eq!(world.ills(), [(2_000, "no port listens any more")]);
    assert_eq!(world.wells().len(), 1);
    let mut other = World::new(Readiness::resume(&rule(ServiceKind::Unknown), None, true));
    other.play(9_000, &[]);
    assert_eq!(other.found, []);
}

#[test]
fn published_ports_stay() {
    let url = "https://127.0.0.1:3000/lab?token=5f";
    let port = |port: u16, main| ServicePort {
        address: ([127, 0, 0, 1], port).into(),
        pid: 42,
        process: "node".into(),
        main,
        tls: main,
    };
    let before = [port(3000, true), port(40123, false)];
    let ready = Readiness::resume(&server(), None, true).with_published(&before, Some(url));
    let mut world = World::new(ready);
    world.change(Open(V4));
    world.change(Open("127.0.0.1:40123"));
    world.play(30_000, &[]);
    assert_eq!(world.found, []);
    world.play(60_000, &[(40_000, Close(V4))]);
    assert_eq!(world.ills().len(), 1);
    assert!(world.ills()[0].1.starts_with("port 3000 is no longer"));
}
