//! Random walks over readiness inputs.

use std::collections::{HashMap, HashSet};

use fastrand::Rng;

use super::*;

const WALKS: u64 = 800;
const STEPS: usize = 250;

fn one<T: Clone>(rng: &mut Rng, items: &[T]) -> T {
    rng.choice(items).expect("at least one").clone()
}

const PORTS: [u16; 5] = [3000, 3001, 9229, 5173, 443];
const LINES: [&str; 12] = [
    "ready\n",
    "Local: http://localhost:3001/app\n",
    "listening on port 5173\n",
    "EADDRINUSE\n",
    "Port 3000 is in use, trying another one...\n",
    "[nodemon] app crashed - waiting for file changes before starting...\n",
    "Traceback (most recent call last):\n",
    "half a line",
    "\x1b[32mcolour",
    "\r",
    "0 errors, watching for file changes\n",
    "error: x\n",
];

fn whens() -> Vec<ReadyCondition> {
    vec![
        ReadyCondition::Auto,
        ReadyCondition::Auto,
        ReadyCondition::Listening,
        ReadyCondition::Responding,
        ReadyCondition::Log,
        ReadyCondition::Http {
            target: "/up".into(),
        },
        ReadyCondition::Http {
            target: "http://localhost:3001/up".into(),
        },
        ReadyCondition::Tcp { port: 3001 },
        ReadyCondition::Exec {
            argv: vec!["check".into()],
        },
        ReadyCondition::Notify,
        ReadyCondition::Quiet { ms: 700 },
    ]
}

/// One walk, with its inputs so far.
struct Walk {
    rng: Rng,
    rule: ReadyRule,
    machine: Readiness,
    now: Duration,
    /// The number of scans that showed an inode.
    shown: HashMap<u64, u32>,
    /// The sockets that existed at the last failure.
    at_failure: Option<HashSet<u64>>,
    there: Vec<ListeningSocket>,
    /// All sockets that ever existed.
    sockets_of_old: Vec<ListeningSocket>,
    next_inode: u64,
    outstanding: Option<ProbeRequest>,
    ready: bool,
    running: bool,
}

impl Walk {
    fn new(seed: u64) -> Self {
        let mut rng = Rng::with_seed(seed);
        let kinds = [
            ServiceKind::Server,
            ServiceKind::Server,
            ServiceKind::Unknown,
            ServiceKind::Socket,
            ServiceKind::Watcher,
            ServiceKind::Multi,
        ];
        let rule = ReadyRule {
            when: one(&mut rng, &whens()),
            kind: one(&mut rng, &kinds),
            ready: one(&mut rng, &[vec![], vec!["^ready".to_owned()]]),
            port: one(&mut rng, &[None, Some(3000)]),
            default_port: one(&mut rng, &[None, Some(5173)]),
            listens_before_ready: rng.u64(..4) == 0,
            ..ReadyRule::default()
        };
        let health = HealthRule {
            probe: one(&mut rng, &whens()),
            interval: Some(ms(300)),
            failures: 2,
            restart: rng.bool(),
        };
        let health = rng.bool().then_some(health);
        Self {
            machine: Readiness::new(&rule, health.as_ref()),
            rng,
            rule,
            now: Duration::ZERO,
            shown: HashMap::new(),
            at_failure: None,
            there: Vec::new(),
            sockets_of_old: Vec::new(),
            next_inode: 1,
            outstanding: None,
            ready: false,
            running: false,
        }
    }

    fn step(&mut self) {
        let seen = match self.rng.u64(..10) {
            0..=2 => self.sockets(),
            3 | 4 => ReadinessInput::Output {
                stream: one(
                    &mut self.rng,
                    &[StreamName::Stdout, StreamName::Stderr, StreamName::Pty],
                ),
                bytes: one(&mut self.rng, &LINES).as_bytes().to_vec(),
            },
            5 | 6 if self.outstanding.take().is_some() => {
                ReadinessInput::ProbeFinished(self.answer())
            }
            7 => ReadinessInput::Notify(NotifyState {
                ready: self.rng.u64(..3) == 0,
                stopping: self.rng.u64(..9) == 0,
                ..NotifyState::default()
            }),
            8 => {
                if let Some(at) = self.machine.watch_plan(self.now).wake_at {
                    self.now = self.now.max(at);
                }
                ReadinessInput::Time
            }
            _ => ReadinessInput::Time,
        };
        let found = self
            .machine
            .handle(self.now, Timestamp::UNIX_EPOCH, seen.clone());
        for it in &found {
            self.check(it);
        }
        self.check_wants(&seen);
        self.now += ms(one(&mut self.rng, &[0, 1, 8, 30, 120, 700, 2_500]));
    }

    fn sockets(&mut self) -> ReadinessInput {
        match self.rng.u64(..5) {
            0 | 1 if self.there.len() < 8 => {
                let port = one(&mut self.rng, &PORTS);
                self.next_inode += 1;
                self.there.push(ListeningSocket {
                    address: ([127, 0, 0, 1], port).into(),
                    inode: self.next_inode,
                    pid: 42,
                    process: "node".into(),
                    stopped: false,
                    waiting: 0,
                });
            }
            2 if !self.there.is_empty() => {
                let at = self.rng.usize(..self.there.len());
                self.there.remove(at);
            }
            _ => {}
        }
        for it in &self.there {
            let times = self.shown.entry(it.inode).or_default();
            *times += 1;
            if *times == 1 {
                self.sockets_of_old.push(it.clone());
            }
        }
        ReadinessInput::Sockets {
            sockets: self.there.clone(),
            unix: if self.rng.u64(..3) == 0 {
                vec!["/run/a".into()]
            } else {
                Vec::new()
            },
            members: self.rng.u32(..3),
        }
    }

    fn answer(&mut self) -> ProbeOutcome {
        let exec = |code| ProbeOutcome::Exec {
            code,
            output: String::new(),
        };
        let accepted = ProbeOutcome::Accepted {
            detail: "closed".into(),
        };
        one(
            &mut self.rng,
            &[
                http(200),
                http(503),
                http(404),
                accepted,
                refused(),
                exec(0),
                exec(1),
            ],
        )
    }

    fn real(&self) -> HashSet<u64> {
        self.shown
            .iter()
            .filter(|it| *it.1 >= 2)
            .map(|it| *it.0)
            .collect()
    }

    fn check(&mut self, found: &ReadinessEvent) {
        match found {
            ReadinessEvent::Ports { ports, .. } => {
                for port in ports {
                    let real = self
                        .sockets_of_old
                        .iter()
                        .filter(|it| self.shown[&it.inode] >= 2);
                    assert!(
                        real.clone().any(|it| it.address == port.address),
                        "{port:?}"
                    );
                }
                assert!(ports.iter().skip(1).all(|it| !it.main));
            }
            ReadinessEvent::Ready {
                unprobed,
                signals: signs,
                warnings,
                ..
            } => {
                assert!(!self.ready, "ready twice");
                assert!(!(*unprobed && self.running), "running twice");
                assert!(signs.len() <= 16 && warnings.len() <= 16);
                self.ready = !unprobed;
                self.running = *unprobed;
                self.check_ready(*unprobed);
                self.at_failure = None;
            }
            ReadinessEvent::Unhealthy { .. } => {
                if !self.ready {
                    self.at_failure = Some(self.real());
                }
                self.running = false;
            }
            ReadinessEvent::Stage { .. } | ReadinessEvent::Healthy { .. } => {}
        }
    }

    fn check_ready(&self, unprobed: bool) {
        let by_socket = match self.rule.when {
            ReadyCondition::Auto
            | ReadyCondition::Listening
            | ReadyCondition::Responding
            | ReadyCondition::Http { .. }
            | ReadyCondition::Tcp { .. } => true,
            ReadyCondition::Log
            | ReadyCondition::Exec { .. }
            | ReadyCondition::Notify
            | ReadyCondition::Quiet { .. } => false,
        };
        if self.rule.kind == ServiceKind::Server && by_socket {
            assert!(!unprobed);
            let real = self.real();
            let before = self.at_failure.clone().unwrap_or_default();
            assert!(
                real.difference(&before).next().is_some(),
                "ready without a new socket: {:?}",
                self.rule
            );
        }
    }

    fn check_wants(&mut self, seen: &ReadinessInput) {
        let wants = self.machine.watch_plan(self.now);
        let scan = wants.scan_at.expect("always");
        assert!(scan >= self.now);
        if matches!(seen, ReadinessInput::Sockets { .. }) {
            assert!(scan > self.now, "scans at once again");
        }
        assert!(
            wants.wake_at.is_none_or(|it| it > self.now),
            "wakes at once again"
        );
        assert_eq!(
            wants,
            self.machine.watch_plan(self.now),
            "the same question, the same answer"
        );
        let quiet = matches!(seen, ReadinessInput::Time | ReadinessInput::Notify(_));
        if let (true, Some(outstanding), Some(wanted)) = (quiet, &self.outstanding, &wants.probe) {
            // Time may change the main port, but not the request for the same one.
            let same_place = |one: &ProbeRequest, other: &ProbeRequest| match (one, other) {
                (
                    ProbeRequest::Http {
                        address: a,
                        path: p,
                        ..
                    },
                    ProbeRequest::Http {
                        address: b,
                        path: q,
                        ..
                    },
                ) => a == b && p == q,
                (ProbeRequest::Tcp { address: a }, ProbeRequest::Tcp { address: b }) => a == b,
                _ => false,
            };
            assert!(
                outstanding == wanted || !same_place(outstanding, wanted),
                "{outstanding:?} {wanted:?}"
            );
        }
        self.outstanding = wants.probe;
    }
}

#[test]
fn random_walks() {
    let mut readies = 0;
    for seed in 0..WALKS {
        let mut walk = Walk::new(seed);
        for _ in 0..STEPS {
            walk.step();
        }
        readies += u32::from(walk.ready);
    }
    assert!(readies > 100, "walks reach readiness: {readies}");
}

/// Without further inputs only slow scans remain.
#[test]
fn left_alone_it_rests() {
    for seed in 0..40 {
        let mut walk = Walk::new(seed);
        for _ in 0..40 {
            walk.step();
        }
        let mut wakes = 0;
        let end = walk.now + ms(3_600_000);
        // Probes in progress that never finish.
        while let Some(at) = walk
            .machine
            .watch_plan(walk.now)
            .wake_at
            .filter(|it| *it < end)
        {
            walk.now = at;
            walk.machine
                .handle(at, Timestamp::UNIX_EPOCH, ReadinessInput::Time);
            wakes += 1;
            assert!(wakes < 14_000, "{:?}", walk.rule);
        }
    }
}
