//! A simulated environment of the state machine: sockets, output and probe results change by a
//! script, and a driver follows the watch plan, in simulated milliseconds.

mod after;
mod life;
mod output;
mod protocols;
mod rules;
mod traps;
mod walk;

use std::net::SocketAddr;
use std::time::Duration;

use ostler_model::{HealthRule, ReadyCondition, ReadyRule, ServiceKind, StreamName, Timestamp};

use super::scan_schedule::ms;
use super::{
    ListeningSocket, NotifyState, ProbeOutcome, ProbeRequest, Readiness, ReadinessEvent,
    ReadinessInput, WatchPlan,
};

/// A change in the simulated environment.
#[derive(Debug, Clone)]
enum Change {
    /// A socket listens at the address, with a new inode.
    Open(&'static str),
    /// The socket at the address is closed.
    Close(&'static str),
    /// A unix socket listens.
    Unix(&'static str),
    /// The unix socket is closed.
    NoUnix,
    /// Output on standard output.
    Out(&'static str),
    /// Output on standard error.
    Err(&'static str),
    /// Output on a terminal.
    Tty(&'static str),
    /// Probes have this result from now on, after this many milliseconds.
    Reply(u64, ProbeOutcome),
    /// The process count changes.
    Members(u32),
    /// A message on the notify socket.
    Notify(NotifyState),
    /// A signal stops or continues the processes.
    Stop(bool),
    /// This many connections wait in the accept queue.
    Queue(u32),
}

use Change::{Close, Err, Members, NoUnix, Notify, Open, Out, Queue, Reply, Stop, Tty, Unix};

/// The state machine in its simulated environment.
struct World {
    machine: Readiness,
    now: u64,
    sockets: Vec<ListeningSocket>,
    unix: Vec<String>,
    members: u32,
    reply: (u64, ProbeOutcome),
    probe: Option<(u64, ProbeRequest)>,
    next_inode: u64,
    found: Vec<(u64, ReadinessEvent)>,
    probes: Vec<(u64, ProbeRequest)>,
    scans: u32,
}

fn refused() -> ProbeOutcome {
    ProbeOutcome::Failed {
        detail: "connection refused".into(),
    }
}

fn http(status: u16) -> ProbeOutcome {
    ProbeOutcome::Http {
        status,
        tls: false,
        ms: 2,
    }
}

fn rule(kind: ServiceKind) -> ReadyRule {
    ReadyRule {
        kind,
        ..ReadyRule::default()
    }
}

fn server() -> ReadyRule {
    rule(ServiceKind::Server)
}

fn when(when: ReadyCondition) -> ReadyRule {
    ReadyRule {
        when,
        ..ReadyRule::default()
    }
}

/// Runs a script with a server that responds with status 200 after 2 ms.
fn play(rule: &ReadyRule, until: u64, script: &[(u64, Change)]) -> World {
    let mut world = World::new(Readiness::new(rule, None));
    world.play(until, script);
    world
}

impl World {
    fn new(machine: Readiness) -> Self {
        Self {
            machine,
            now: 0,
            sockets: Vec::new(),
            unix: Vec::new(),
            members: 1,
            reply: (2, http(200)),
            probe: None,
            next_inode: 100,
            found: Vec::new(),
            probes: Vec::new(),
            scans: 0,
        }
    }

    fn with_health(rule: &ReadyRule, health: &HealthRule) -> Self {
        Self::new(Readiness::new(rule, Some(health)))
    }

    fn play(&mut self, until: u64, script: &[(u64, Change)]) {
        let mut script = script.iter().peekable();
        let mut steps = 0;
        loop {
            let wants = self.machine.watch_plan(ms(self.now));
            self.probing(&wants);
            let of =
                |at: Option<Duration>| at.map(|it| u64::try_from(it.as_millis()).expect("small"));
            let change = script.peek().map(|(at, _)| (*at).max(self.now));
            let due = [
                change,
                self.probe.as_ref().map(|it| it.0),
                of(wants.scan_at),
                of(wants.wake_at),
            ];
            let next = due.iter().flatten().min().copied().unwrap_or(u64::MAX);
            if next > until {
                self.now = until;
                return;
            }
            assert!(next >= self.now, "{next} is past {}", self.now);
            self.now = next;
            steps += 1;
            assert!(steps < 500_000, "it never rests");
            if change == Some(next) {
                let (_, change) = script.next().expect("peeked");
                self.change(change.clone());
            } else if due[1] == Some(next) {
                self.probe = None;
                let answered = self.answer();
                self.feed(ReadinessInput::ProbeFinished(answered));
            } else if due[2] == Some(next) {
                self.scan();
            } else {
                self.feed(ReadinessInput::Time);
                let wake = self.machine.watch_plan(ms(self.now)).wake_at;
                assert!(
                    wake.is_none_or(|it| it > ms(self.now)),
                    "it wakes again at once"
                );
            }
        }
    }

    fn scan(&mut self) {
        self.scans += 1;
        self.feed(ReadinessInput::Sockets {
            sockets: self.sockets.clone(),
            unix: self.unix.clone(),
            members: self.members,
        });
        let next = self.machine.watch_plan(ms(self.now)).scan_at;
        assert!(
            next.is_none_or(|it| it > ms(self.now)),
            "it scans again at once"
        );
    }

    fn probing(&mut self, wants: &WatchPlan) {
        if self.probe.as_ref().map(|it| &it.1) == wants.probe.as_ref() {
            return;
        }
        self.probe = wants.probe.clone().map(|order| {
            self.probes.push((self.now, order.clone()));
            (self.now + self.reply.0, order)
        });
    }

    fn answer(&self) -> ProbeOutcome {
        let (_, order) = self.probes.last().expect("a probe was begun");
        match order {
            ProbeRequest::Http { address, .. } | ProbeRequest::Tcp { address } => {
                let there = self
                    .sockets
                    .iter()
                    .any(|it| it.address.port() == address.port());
                if there {
                    self.reply.1.clone()
                } else {
                    refused()
                }
            }
            ProbeRequest::Exec { .. } => self.reply.1.clone(),
        }
    }

    fn feed(&mut self, seen: ReadinessInput) {
        let now =
            Timestamp::from_millisecond(i64::try_from(self.now).expect("small")).expect("valid");
        let found = self.machine.handle(ms(self.now), now, seen);
        self.found
            .extend(found.into_iter().map(|it| (self.now, it)));
    }

    fn change(&mut self, change: Change) {
        match change {
            Open(address) => {
                self.next_inode += 1;
                self.sockets.push(ListeningSocket {
                    address: address.parse().expect("an address"),
                    inode: self.next_inode,
                    pid: 42,
                    process: "node".into(),
                    stopped: false,
                    waiting: 0,
                });
            }
            Close(address) => {
                let address: SocketAddr = address.parse().expect("an address");
                self.sockets.retain(|it| it.address != address);
            }
            Unix(path) => self.unix.push(path.into()),
            NoUnix => self.unix.clear(),
            Out(text) => self.say(StreamName::Stdout, text),
            Err(text) => self.say(StreamName::Stderr, text),
            Tty(text) => self.say(StreamName::Pty, text),
            Reply(after, answered) => self.reply = (after, answered),
            Members(count) => self.members = count,
            Notify(state) => self.feed(ReadinessInput::Notify(state)),
            Stop(stopped) => self.sockets.iter_mut().for_each(|it| it.stopped = stopped),
            Queue(waiting) => self.sockets.iter_mut().for_each(|it| it.waiting = waiting),
        }
    }

    fn say(&mut self, stream: StreamName, text: &str) {
        self.feed(ReadinessInput::Output {
            stream,
            bytes: text.as_bytes().to_vec(),
        });
    }

    /// The times of the events of this kind.
    fn readies(&self) -> Vec<u64> {
        let ready = |it: &&(u64, ReadinessEvent)| {
            matches!(
                it.1,
                ReadinessEvent::Ready {
                    unprobed: false,
                    ..
                }
            )
        };
        self.found.iter().filter(ready).map(|it| it.0).collect()
    }

    fn runnings(&self) -> Vec<u64> {
        let running = |it: &&(u64, ReadinessEvent)| {
            matches!(it.1, ReadinessEvent::Ready { unprobed: true, .. })
        };
        self.found.iter().filter(running).map(|it| it.0).collect()
    }

    fn ills(&self) -> Vec<(u64, &str)> {
        let ill = |it: &'_ (u64, ReadinessEvent)| match &it.1 {
            ReadinessEvent::Unhealthy { .. } => true,
            ReadinessEvent::Ports { .. }
            | ReadinessEvent::Stage { .. }
            | ReadinessEvent::Ready { .. }
            | ReadinessEvent::Healthy { .. } => false,
        };
        let actual = self.found.iter().filter(|it| ill(it));
        actual
            .map(|(at, found)| match found {
                ReadinessEvent::Unhealthy { detail, .. } => (*at, detail.as_str()),
                ReadinessEvent::Ports { .. }
                | ReadinessEvent::Stage { .. }
                | ReadinessEvent::Ready { .. }
                | ReadinessEvent::Healthy { .. } => (*at, ""),
            })
            .collect()
    }

    fn wells(&self) -> Vec<u64> {
        let well = |it: &&(u64, ReadinessEvent)| matches!(it.1, ReadinessEvent::Healthy { .. });
        self.found.iter().filter(well).map(|it| it.0).collect()
    }

    fn stages(&self) -> Vec<u64> {
        let stage = |it: &&(u64, ReadinessEvent)| matches!(it.1, ReadinessEvent::Stage { .. });
        self.found.iter().filter(stage).map(|it| it.0).collect()
    }

    /// The last published ports, main port first, and the URL.
    fn ports(&self) -> (Vec<u16>, Option<&str>) {
        let actual = self.found.iter().rev().find_map(|(_, it)| match it {
            ReadinessEvent::Ports { ports, url } => Some((ports, url)),
            ReadinessEvent::Stage { .. }
            | ReadinessEvent::Ready { .. }
            | ReadinessEvent::Unhealthy { .. }
            | ReadinessEvent::Healthy { .. } => None,
        });
        actual.map_or((Vec::new(), None), |(ports, url)| {
            (
                ports.iter().map(|it| it.address.port()).collect(),
                url.as_deref(),
            )
        })
    }

    /// Evidence and warnings of the last `Ready` event.
    fn ready(&self) -> (&str, &[String]) {
        let actual = self.found.iter().rev().find_map(|(_, it)| match it {
            ReadinessEvent::Ready {
                evidence, warnings, ..
            } => Some((evidence.as_str(), warnings.as_slice())),
            ReadinessEvent::Stage { .. }
            | ReadinessEvent::Ports { .. }
            | ReadinessEvent::Unhealthy { .. }
            | ReadinessEvent::Healthy { .. } => None,
        });
        actual.expect("it was ready")
    }
}
