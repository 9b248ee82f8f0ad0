//! The machine.

use std::time::Duration;

use ostler_model::service::PROBE_MS;
use ostler_model::{
    HealthRule, Port, ReadyRule, ReadyWhen, ServiceKind, Sign, SignKind, Stage, Timestamp,
};

use super::after::{After, Health};
use super::heard::{Care, Heard};
use super::limits::{DOUBT_TRY, HEALTH_TRY, SETTLE, SIGNS_MAX};
use super::listeners::{Listener, Listeners, gone};
use super::main_port::{Hints, Reason, is_debug, leads_as, ports};
use super::printed::Weight;
use super::probing::Probing;
use super::schedule::{Pace, ms};
use super::seen::{NotifyState, ProbeOrder, Seen, Socket};
use super::target::Target;

/// The readiness of one attempt.
#[derive(Debug, Clone)]
pub struct Readiness {
    pub(super) rule: Rule,
    pub(super) heard: Heard,
    pub(super) listeners: Listeners,
    pub(super) probing: Probing,
    pub(super) phase: Phase,
    pub(super) fallen: Option<Fallen>,
    pub(super) after: After,
    pub(super) health: Option<Health>,
    pub(super) notified: NotifyState,
    /// When the number of processes changed last, and that of ports.
    pub(super) members_at: Duration,
    pub(super) ports_at: Duration,
    /// When the main port answered, before its ready line.
    pub(super) responded: Option<Duration>,
    pub(super) stage: Option<Stage>,
    pub(super) signs: Vec<Sign>,
    pub(super) warnings: Vec<String>,
    pub(super) told: Told,
    protocol_seen: Option<(u16, Protocol)>,
    pub(super) resumed: bool,
    /// When the first thing was seen.
    pub(super) began: Option<Duration>,
    pub(super) at: Duration,
    pub(super) now: Timestamp,
}

/// What of the rule matters from step to step.
#[derive(Debug, Clone)]
pub(super) struct Rule {
    pub(super) when: ReadyWhen,
    pub(super) kind: ServiceKind,
    /// The port asked for, by the command or by the rule itself.
    pub(super) asked: Option<u16>,
    pub(super) default: Option<u16>,
    pub(super) listens_before_ready: bool,
    pub(super) compiles: bool,
    /// Of [`ReadyWhen::Http`].
    pub(super) target: Option<Target>,
}

/// How far it has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// Not ready.
    Before,
    /// Running with nothing to look at, so far.
    Running,
    /// Ready, this long after the attempt's start.
    Ready(Duration),
}

/// It failed before it was ready: what was there then shows nothing any more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Fallen {
    /// Sockets of that time.
    pub(super) inodes: Vec<u64>,
    /// What was told.
    pub(super) detail: String,
}

/// What a port was heard to speak.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Protocol {
    /// HTTP, over TLS or not.
    Http {
        /// Whether over TLS.
        tls: bool,
    },
    /// Something else.
    Other,
}

/// What was told of ports.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Told {
    pub(super) ports: Vec<Port>,
    pub(super) url: Option<String>,
}

/// The main port, as far as it is known.
#[derive(Debug, Clone)]
pub(super) struct Chosen {
    pub(super) socket: Socket,
    pub(super) reason: Reason,
    /// Since when it listens.
    pub(super) since: Duration,
    /// Since when it is certain.
    pub(super) settled: Duration,
}

/// Something that was found out. The supervisor makes events of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found {
    /// What it listens on changed (debounced; main port first).
    Ports {
        /// All of them.
        ports: Vec<Port>,
        /// Where it is reached.
        url: Option<String>,
    },
    /// It came further.
    Stage {
        /// `Listening` or `Responding`.
        stage: Stage,
        /// What showed it.
        sign: Sign,
    },
    /// It is ready, or running with nothing to look at. A second one may follow one that was
    /// unprobed.
    Ready {
        /// One sentence.
        evidence: String,
        /// Every sign on the way.
        signs: Vec<Sign>,
        /// Whether there was nothing to look at.
        unprobed: bool,
        /// Warnings, for example another port than the one asked for.
        warnings: Vec<String>,
    },
    /// It lives, and will not become ready as it is; or was ready and is not well.
    Ill {
        /// What was seen.
        detail: String,
        /// Whether its health rule wants it ended for the next attempt.
        restart: bool,
    },
    /// It is well again.
    Well {
        /// What was seen.
        detail: String,
    },
}

/// What is to be looked at.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Wants {
    /// How long after the attempt's start the sockets are to be looked at next; none for never.
    /// It stays where it is until they were.
    pub scan_at: Option<Duration>,
    /// The probe that is to be under way. It stays the same until it was answered; where it
    /// becomes another one, or none, the one under way is dropped and its answer with it.
    pub probe: Option<ProbeOrder>,
    /// How long that one may take.
    pub probe_limit: Duration,
    /// Whether output is to be told.
    pub output: bool,
    /// Whether a scan is to find unix sockets too.
    pub unix: bool,
    /// Whether the notify socket is listened to.
    pub notify: bool,
    /// When [`Seen::Time`] is due, after the attempt's start.
    pub wake_at: Option<Duration>,
}

impl Readiness {
    /// For an attempt that begins now. Expressions that do not compile match nothing: admission
    /// refuses them before.
    #[must_use]
    pub fn new(rule: &ReadyRule, health: Option<&HealthRule>) -> Self {
        Self {
            rule: Rule::new(rule),
            heard: Heard::new(rule),
            listeners: Listeners::default(),
            probing: Probing::default(),
            phase: Phase::Before,
            fallen: None,
            after: After::default(),
            health: health.map(Health::new),
            notified: NotifyState::default(),
            members_at: Duration::ZERO,
            ports_at: Duration::ZERO,
            responded: None,
            stage: None,
            signs: Vec::new(),
            warnings: Vec::new(),
            told: Told::default(),
            protocol_seen: None,
            resumed: false,
            began: None,
            at: Duration::ZERO,
            now: Timestamp::UNIX_EPOCH,
        }
    }

    /// Takes in what was seen, this long after the attempt's start; `now` is what signs are
    /// stamped with.
    pub fn handle(&mut self, elapsed: Duration, now: Timestamp, seen: Seen) -> Vec<Found> {
        self.at = self.at.max(elapsed);
        self.now = now;
        self.began.get_or_insert(self.at);
        let mut found = Vec::new();
        self.see(seen);
        let care = self.care();
        self.heard.rest(self.at, care);
        self.adopt();
        self.tell_ports(&mut found);
        match self.phase {
            Phase::Before => self.before(&mut found),
            Phase::Running => {
                self.before(&mut found);
                self.look_after(&mut found);
            }
            Phase::Ready(_) => self.look_after(&mut found),
        }
        // What was just found may have told of TLS, which is part of the URL.
        self.tell_ports(&mut found);
        found
    }

    /// What is to be looked at from now on.
    #[must_use]
    pub fn wants(&self, elapsed: Duration) -> Wants {
        let at = elapsed.max(self.at);
        Wants {
            scan_at: Some(self.scan_at().max(elapsed)),
            probe: self.order(at).cloned(),
            probe_limit: self.patience(at),
            output: true,
            // A server has a port; anything else may listen on a path only.
            unix: self.rule.kind != ServiceKind::Server,
            notify: self.rule.when == ReadyWhen::Notify,
            wake_at: self.deadlines().filter(|it| *it > self.at).min(),
        }
    }

    fn see(&mut self, seen: Seen) {
        match seen {
            Seen::Sockets {
                sockets,
                unix,
                members,
            } => {
                let gone = gone(self.is_ready());
                let before = self.listeners.all().count();
                self.listeners.scan(self.at, sockets, unix, gone);
                if self.listeners.all().count() > before {
                    self.ports_at = self.at;
                }
                let fewer = self.listeners.members() > members;
                if self.listeners.count(members) {
                    self.members_at = self.at;
                }
                if self.is_ready() && (fewer || self.is_unserved()) {
                    self.doubt();
                }
            }
            Seen::Output { stream, bytes } => {
                let care = self.care();
                self.heard.output(stream, &bytes, self.at, care);
            }
            Seen::Answered(answered) => {
                if self.probing.order(self.at).is_some() {
                    self.probing.answered(answered, self.at);
                } else if let Some(health) = &mut self.health {
                    health.answered(answered, self.at);
                }
            }
            Seen::Notified(state) => self.notified(state),
            Seen::Time => {}
        }
    }

    fn notified(&mut self, state: NotifyState) {
        self.notified.ready |= state.ready;
        self.notified.stopping = state.stopping || (self.notified.stopping && !state.ready);
        self.notified.watchdog |= state.watchdog;
        if state.status.is_some() {
            self.notified.status = state.status;
        }
    }

    fn care(&self) -> Care {
        match self.phase {
            Phase::Before | Phase::Running => Care::Everything,
            Phase::Ready(since) if !self.resumed && self.at < since + SETTLE => Care::Addresses,
            Phase::Ready(_) => Care::Last,
        }
    }

    pub(super) fn is_ready(&self) -> bool {
        matches!(self.phase, Phase::Ready(_))
    }

    /// The probe that is to be under way: that of readiness first.
    fn order(&self, at: Duration) -> Option<&ProbeOrder> {
        let health = || self.health.as_ref().filter(|_| self.phase != Phase::Before);
        self.probing.order(at).or_else(|| health()?.order(at))
    }

    /// How long the probe under way may take: on the way to ready as long as a first page takes
    /// to be compiled.
    fn patience(&self, at: Duration) -> Duration {
        match self.probing.order(at) {
            Some(_) if self.is_doubted() => DOUBT_TRY,
            Some(_) => ms(PROBE_MS),
            None => HEALTH_TRY,
        }
    }

    /// How eagerly sockets are looked at.
    fn pace(&self) -> Pace {
        match (self.phase, self.rule.kind) {
            (Phase::Ready(_), _) => Pace::Ready,
            (Phase::Running, _) | (Phase::Before, ServiceKind::Watcher) => Pace::Running,
            (
                Phase::Before,
                ServiceKind::Unknown
                | ServiceKind::Server
                | ServiceKind::Socket
                | ServiceKind::Multi,
            ) => Pace::Starting,
        }
    }

    fn scan_at(&self) -> Duration {
        let Some(scanned) = self.listeners.scanned() else {
            return if self.resumed { Duration::ZERO } else { ms(25) };
        };
        let pace = self.pace();
        let output = self.heard.words().output_at.filter(|it| *it > scanned);
        [
            self.listeners.uncertain(gone(self.is_ready())),
            self.probing.unconfirmed(Some(scanned)),
            output.map(|it| pace.after_output(scanned, it)),
            self.health
                .as_ref()
                .and_then(|it| it.failed_at())
                .filter(|it| *it > scanned)
                .map(|it| pace.after_output(scanned, it)),
        ]
        .into_iter()
        .flatten()
        .fold(scanned + pace.interval(scanned), Duration::min)
        .max(scanned + ms(1))
    }

    /// What may change by time alone.
    fn deadlines(&self) -> impl Iterator<Item = Duration> {
        let starting = if self.is_ready() {
            Vec::new()
        } else {
            self.before_deadlines()
        };
        let health = self.health.as_ref().filter(|_| self.phase != Phase::Before);
        let lines = self.heard.due();
        lines
            .chain(starting)
            .chain(self.probing.due())
            .chain(health.map(Health::due))
    }

    /// Real sockets that count: those of before a failure do not.
    pub(super) fn usable(&self) -> Vec<Listener<'_>> {
        let stale = self.fallen.as_ref().map_or(&[][..], |it| &it.inodes);
        let all = self.listeners.all();
        all.filter(|it| !stale.contains(&it.socket.inode)).collect()
    }

    /// The main port among these.
    fn choose(&self, listeners: &[Listener<'_>]) -> Option<Chosen> {
        let main = self
            .hints()
            .choose(listeners, self.after.main.filter(|_| self.is_ready()))?;
        Some(Chosen {
            socket: main.listener.socket.clone(),
            reason: main.reason,
            since: main.listener.since,
            settled: main.settled,
        })
    }

    /// The main port among those that count.
    pub(super) fn main(&self) -> Option<Chosen> {
        self.choose(&self.usable())
    }

    fn hints(&self) -> Hints<'_> {
        let words = self.heard.words();
        Hints {
            asked: self.rule.asked,
            default: self.rule.default,
            printed: &words.printed,
            printed_at: words.printed_at,
            in_use: words.conflict.is_some(),
        }
    }

    /// What a port speaks, as far as that was heard.
    pub(super) fn protocol(&self, port: u16) -> Option<Protocol> {
        let (of, protocol) = self.protocol_seen?;
        (of == port).then_some(protocol)
    }

    /// Whether a port speaks TLS, as far as that is known.
    pub(super) fn tls(&self, port: u16) -> Option<bool> {
        match self.protocol(port)? {
            Protocol::Http { tls } => Some(tls),
            Protocol::Other => None,
        }
    }

    /// Whether TLS is to be tried first at a port.
    pub(super) fn tls_first(&self, port: u16) -> bool {
        let printed = &self.heard.words().printed;
        let https = || {
            printed
                .iter()
                .find(|it| it.port == port)
                .and_then(|it| it.https)
        };
        self.tls(port).or_else(https).unwrap_or(false)
    }

    /// Remembers what a port spoke.
    pub(super) fn set_protocol(&mut self, port: u16, protocol: Protocol) {
        self.protocol_seen = Some((port, protocol));
    }

    /// Whether people can follow a URL to this port: HTTP was answered there, or where nobody
    /// asked, the program itself printed one.
    fn is_reached_by_url(&self, port: u16) -> bool {
        if is_debug(port) && self.rule.asked != Some(port) {
            return false;
        }
        match self.protocol(port) {
            Some(protocol) => protocol != Protocol::Other,
            None => !self.is_asked() && self.prints_url(port),
        }
    }

    /// Whether a URL of this port was printed.
    pub(super) fn prints_url(&self, port: u16) -> bool {
        let mut printed = self.heard.words().printed.iter();
        printed.any(|it| it.port == port && it.https.is_some() && it.weight <= Weight::Url)
    }

    /// Tells of ports where they changed.
    fn tell_ports(&mut self, found: &mut Vec<Found>) {
        let main = self
            .main()
            .or_else(|| self.choose(&self.listeners.all().collect::<Vec<_>>()));
        // Another port does not take the place of the one that was ready.
        let stands = |port: u16| self.after.main.is_none_or(|it| it == port) || !self.is_ready();
        let address = main.map(|it| it.socket.address);
        let address = address.filter(|it| stands(it.port()));
        let tls = address.and_then(|it| self.tls(it.port()));
        let url = address
            .filter(|it| self.is_reached_by_url(it.port()))
            .map(|it| self.hints().url(it, tls));
        // A line that comes later and only names this machine otherwise changes nothing told.
        let stays =
            |it: &&String| self.is_ready() && url.as_ref().is_some_and(|url| leads_as(it, url));
        let now = Told {
            ports: ports(self.listeners.all(), address, tls == Some(true)),
            url: self
                .told
                .url
                .as_ref()
                .filter(stays)
                .cloned()
                .or(url.clone()),
        };
        // What an earlier engine told stands until there was time to see it again.
        let seen_again = self.has_looked() || now.ports.len() >= self.told.ports.len();
        if now != self.told && seen_again {
            self.told = now.clone();
            found.push(Found::Ports {
                ports: now.ports,
                url: now.url,
            });
        }
    }

    /// Takes note of a sign.
    pub(super) fn sign(&mut self, kind: SignKind, detail: String) -> Sign {
        let sign = Sign {
            kind,
            detail,
            at: self.now,
        };
        let known = self
            .signs
            .iter()
            .any(|it| it.kind == kind && it.detail == sign.detail);
        if !known && self.signs.len() < SIGNS_MAX {
            self.signs.push(sign.clone());
        }
        sign
    }

    /// Takes note of a warning.
    pub(super) fn warn(&mut self, warning: String) {
        if !self.warnings.contains(&warning) && self.warnings.len() < SIGNS_MAX {
            self.warnings.push(warning);
        }
    }
}

impl Rule {
    fn new(rule: &ReadyRule) -> Self {
        let (target, port) = match &rule.when {
            ReadyWhen::Http { target } => {
                let target = Target::parse(target);
                let port = target.port();
                (Some(target), port)
            }
            ReadyWhen::Tcp { port } => (None, Some(*port)),
            ReadyWhen::Auto
            | ReadyWhen::Listening
            | ReadyWhen::Responding
            | ReadyWhen::Log
            | ReadyWhen::Exec { .. }
            | ReadyWhen::Notify
            | ReadyWhen::Quiet { .. } => (None, None),
        };
        Self {
            when: rule.when.clone(),
            kind: rule.kind,
            asked: rule.port.or(port),
            default: rule.default_port,
            listens_before_ready: rule.listens_before_ready,
            compiles: rule.compiles,
            target,
        }
    }
}
