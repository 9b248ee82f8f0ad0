//! On the way to ready.

use std::time::Duration;

use ostler_model::service::ALIVE_MS;
use ostler_model::{ReadyWhen, ServiceKind, SignKind, Stage};

use super::heard::{Noted, Words};
use super::limits::{
    COMPILE_QUIET, HOLD_BACK, IN_USE, LOG_GRACE, MULTI_SETTLE, PATIENT_ALIVE, SUSPECT,
    WATCHER_QUIET,
};
use super::machine::{Chosen, Fallen, Found, Phase, Protocol, Readiness};
use super::main_port::{Reason, best, is_debug};
use super::printed::{Printed, Weight};
use super::probing::{Aim, Pass, Passed};
use super::protocols::{is_non_http_port, is_non_http_program};
use super::schedule::ms;
use super::seen::{ProbeOrder, Socket};
use super::target::{Target, outside, request};
use super::words::listens;

/// Programs whose port is taken try so many behind it.
const NEXT_PORTS: u16 = 10;
/// How long alive means running.
const ALIVE: Duration = ms(ALIVE_MS);

/// Readiness as it was reached.
pub(super) struct Reached {
    pub(super) kind: SignKind,
    pub(super) detail: String,
    pub(super) unprobed: bool,
}

impl Reached {
    fn by(kind: SignKind, detail: String) -> Self {
        Self {
            kind,
            detail,
            unprobed: false,
        }
    }
}

impl Readiness {
    /// One step towards ready: failures first.
    pub(super) fn before(&mut self, found: &mut Vec<Found>) {
        if let Some(detail) = self.failure() {
            self.fall(detail, found);
        }
        let main = self.main();
        if let Some(main) = &main {
            self.listening(main, found);
        }
        let aim = self.aim(main.as_ref());
        self.probing.aim(aim, self.at);
        let scanned = self.listeners.scanned();
        let passed = self
            .probing
            .passed(scanned, |inode| self.listeners.takes(inode), self.at);
        if let Some(passed) = &passed {
            self.responding(main.as_ref(), passed, found);
        }
        if let Some(reached) = self.reached(main.as_ref(), passed) {
            self.ready(reached, main, found);
        }
    }

    /// What shows it failed, where something does now.
    fn failure(&mut self) -> Option<String> {
        let usable = self
            .usable()
            .iter()
            .any(|it| !is_debug(it.socket.address.port()));
        let quiet = self.quiet_since();
        let at = self.at;
        let words = self.heard.words_mut();
        if let Some(dead) = words.dead.take() {
            return Some(dead.line);
        }
        if usable || self.fallen.is_some() {
            // It goes on, on another port or after the error; or that it failed was told.
            words.in_use = None;
            words.suspect = None;
        }
        if words.in_use.as_ref().is_some_and(|it| it.at + IN_USE <= at) {
            return words.in_use.take().map(|it| it.line);
        }
        let looks = self.phase == Phase::Before && self.expects_port();
        let words = self.heard.words_mut();
        let due = words
            .suspect
            .as_ref()
            .is_some_and(|it| it.at.max(quiet) + SUSPECT <= at);
        if looks && due {
            words.suspect.take().map(|it| it.line)
        } else {
            None
        }
    }

    /// Whether a port must come, so that silence after an error means the end.
    pub(super) fn expects_port(&self) -> bool {
        match self.rule.when {
            ReadyWhen::Auto
            | ReadyWhen::Listening
            | ReadyWhen::Responding
            | ReadyWhen::Http { .. }
            | ReadyWhen::Tcp { .. } => true,
            ReadyWhen::Log
            | ReadyWhen::Exec { .. }
            | ReadyWhen::Notify
            | ReadyWhen::Quiet { .. } => self.rule.kind == ServiceKind::Server,
        }
    }

    /// Since when nothing was printed and no process came or went.
    fn quiet_since(&self) -> Duration {
        self.heard
            .words()
            .output_at
            .unwrap_or_default()
            .max(self.members_at)
    }

    fn fall(&mut self, detail: String, found: &mut Vec<Found>) {
        let known = self.fallen.as_ref().is_some_and(|it| it.detail == detail);
        self.fallen = Some(Fallen {
            inodes: self.listeners.inodes(),
            detail: detail.clone(),
        });
        self.phase = Phase::Before;
        self.stage = None;
        self.responded = None;
        self.signs.clear();
        self.warnings.clear();
        self.notified.ready = false;
        let words = self.heard.words_mut();
        words.suspect = None;
        words.in_use = None;
        if !known {
            found.push(Found::Ill {
                detail,
                restart: false,
            });
        }
    }

    fn listening(&mut self, main: &Chosen, found: &mut Vec<Found>) {
        let sure = main.reason != Reason::Debug || main.settled <= self.at;
        if sure && self.stage.is_none() {
            self.stage = Some(Stage::Listening);
            let sign = self.sign(SignKind::Socket, listens(&main.socket));
            found.push(Found::Stage {
                stage: Stage::Listening,
                sign,
            });
        }
    }

    fn responding(&mut self, main: Option<&Chosen>, passed: &Passed, found: &mut Vec<Found>) {
        let asks = self.is_asked();
        if let Some(main) = main.filter(|_| asks || self.is_curious()) {
            self.note_answer(main.socket.address.port(), passed);
        }
        if !asks && self.is_curious() {
            return;
        }
        if let Some(status) = passed.status.filter(|it| *it >= 500) {
            self.warn(format!("GET / answered {status}"));
        }
        let sign = self.sign(passed.kind, passed.detail.clone());
        let stands = matches!(self.rule.when, ReadyWhen::Auto | ReadyWhen::Responding);
        if stands && self.responded.is_none() {
            self.responded = Some(self.at);
            self.stage = Some(Stage::Responding);
            found.push(Found::Stage {
                stage: Stage::Responding,
                sign,
            });
        }
    }

    /// What is to be probed.
    fn aim(&self, main: Option<&Chosen>) -> Option<Aim> {
        let settled = main.filter(|it| it.settled <= self.at);
        match &self.rule.when {
            ReadyWhen::Auto if self.rule.kind == ServiceKind::Multi => {
                let quiet = self.ports_at + MULTI_SETTLE <= self.at;
                Some(self.aim_to_answer(settled.filter(|_| quiet)?))
            }
            ReadyWhen::Auto | ReadyWhen::Responding => Some(self.aim_to_answer(settled?)),
            ReadyWhen::Http { .. } => match self.rule.target.as_ref()? {
                Target::Path(path) => Some(self.aim_at(settled?, path, Pass::Succeeds)),
                Target::Url {
                    host,
                    port,
                    https,
                    path,
                } => {
                    let order = |address| ProbeOrder::Http {
                        address,
                        host: host.clone(),
                        path: path.clone(),
                        tls: *https,
                        unsure: false,
                    };
                    self.aim_at_port(host, *port, Pass::Succeeds, &order)
                }
            },
            ReadyWhen::Tcp { port } => self.aim_at_port("", *port, Pass::Connects, &|address| {
                ProbeOrder::Tcp { address }
            }),
            ReadyWhen::Exec { argv } => self.may_be_outside().then(|| Aim {
                order: ProbeOrder::Exec { argv: argv.clone() },
                inode: None,
                pass: Pass::Exits,
            }),
            ReadyWhen::Log | ReadyWhen::Notify | ReadyWhen::Quiet { .. } => {
                self.aim_to_know(settled.filter(|_| self.is_curious())?)
            }
            ReadyWhen::Listening => None,
        }
    }

    pub(super) fn aim_at(&self, main: &Chosen, path: &str, pass: Pass) -> Aim {
        let address = main.socket.address;
        // Once it has passed the order stays as it was, whatever was found out.
        let before = self.probing.manner(main.socket.inode);
        let manner = before.unwrap_or_else(|| self.manner(&main.socket, pass));
        Aim {
            order: request(address, path, manner),
            inode: Some(main.socket.inode),
            pass,
        }
    }

    /// Whether TLS is tried first, and whether it may speak something else than HTTP.
    pub(super) fn manner(&self, socket: &Socket, pass: Pass) -> (bool, bool) {
        let port = socket.address.port();
        let known = self.rule.kind == ServiceKind::Server || self.prints_url(port);
        let heard = matches!(self.protocol(port), Some(Protocol::Http { .. }));
        let asks = matches!(pass, Pass::Answers | Pass::Speaks);
        let unsure = asks && !known && !heard;
        (self.tls_first(port), unsure)
    }

    /// Whether it answers, in whatever it speaks: who speaks no HTTP is only connected to.
    pub(super) fn aim_to_answer(&self, main: &Chosen) -> Aim {
        if !self.is_other(&main.socket) {
            return self.aim_at(main, "/", Pass::Answers);
        }
        Aim {
            order: ProbeOrder::Tcp {
                address: main.socket.address,
            },
            inode: Some(main.socket.inode),
            pass: Pass::Connects,
        }
    }

    /// Whether a socket is known to speak no HTTP: by its program, or by its port where nothing
    /// says otherwise.
    pub(super) fn is_other(&self, socket: &Socket) -> bool {
        let port = socket.address.port();
        is_non_http_program(socket) || (is_non_http_port(port) && !self.prints_url(port))
    }

    /// Whether readiness itself asks the main port.
    pub(super) fn is_asked(&self) -> bool {
        match self.rule.when {
            ReadyWhen::Auto | ReadyWhen::Responding => true,
            ReadyWhen::Http { .. } => matches!(self.rule.target, Some(Target::Path(_))),
            ReadyWhen::Listening
            | ReadyWhen::Log
            | ReadyWhen::Tcp { .. }
            | ReadyWhen::Exec { .. }
            | ReadyWhen::Notify
            | ReadyWhen::Quiet { .. } => false,
        }
    }

    /// Remembers what a probe of the main port heard.
    pub(super) fn note_answer(&mut self, port: u16, passed: &Passed) {
        match passed.tls {
            Some(tls) => self.set_protocol(port, Protocol::Http { tls }),
            None if passed.silent => {}
            None => self.set_protocol(port, Protocol::Other),
        }
    }

    /// A port of the tree; where none of the tree listens on it, one outside, unless it is a
    /// server: another one may stand there.
    fn aim_at_port(
        &self,
        host: &str,
        port: u16,
        pass: Pass,
        order: &dyn Fn(std::net::SocketAddr) -> ProbeOrder,
    ) -> Option<Aim> {
        if let Some(own) = best(&self.usable(), port) {
            return Some(Aim {
                order: order(own.socket.address),
                inode: Some(own.socket.inode),
                pass,
            });
        }
        let outside = (self.rule.kind != ServiceKind::Server && self.may_be_outside())
            .then(|| outside(host, port))?;
        Some(Aim {
            order: order(outside),
            inode: None,
            pass,
        })
    }

    /// Whether something that is no socket of the tree may show it ready: after a failure only
    /// where ports of the tree say nothing anyway.
    fn may_be_outside(&self) -> bool {
        let apart = matches!(self.rule.kind, ServiceKind::Multi | ServiceKind::Watcher);
        self.fallen.is_none() || apart || !self.usable().is_empty()
    }

    /// Whether it is ready now, and by what.
    fn reached(&mut self, main: Option<&Chosen>, passed: Option<Passed>) -> Option<Reached> {
        let settled = main.filter(|it| it.settled <= self.at);
        match self.rule.when.clone() {
            ReadyWhen::Auto => match passed {
                Some(passed) => self.held_back(passed),
                None => self.without_port(main),
            },
            ReadyWhen::Listening if main.is_none() && self.rule.kind != ServiceKind::Server => {
                self.by_unix()
            }
            ReadyWhen::Listening => {
                settled.map(|it| Reached::by(SignKind::Socket, listens(&it.socket)))
            }
            ReadyWhen::Responding | ReadyWhen::Exec { .. } => {
                passed.map(|it| Reached::by(it.kind, it.detail))
            }
            ReadyWhen::Http { .. } | ReadyWhen::Tcp { .. } => {
                let passed = passed?;
                if self.probing.is_outside() {
                    self.warn(
                        "no process of this service listens on the port that answered".to_owned(),
                    );
                }
                Some(Reached::by(passed.kind, passed.detail))
            }
            ReadyWhen::Log => self.by_line(main),
            ReadyWhen::Notify => self.notified.ready.then(|| {
                let status = self
                    .notified
                    .status
                    .as_deref()
                    .map_or_else(String::new, |it| format!(" ({it})"));
                Reached::by(SignKind::Notify, format!("it said READY=1{status}"))
            }),
            ReadyWhen::Quiet { ms: quiet } => {
                let since = self.heard.words().output_at.unwrap_or_default();
                let due = since + ms(quiet) <= self.at && self.may_be_outside();
                due.then(|| {
                    Reached::by(
                        SignKind::Quiet,
                        format!("it printed nothing for {quiet} ms"),
                    )
                })
            }
        }
    }

    /// A port that answers long before it can do its work waits for its line too.
    fn held_back(&mut self, passed: Passed) -> Option<Reached> {
        let words = self.heard.words();
        let line = words.ready.as_ref().map(|it| it.line.clone());
        if self.rule.listens_before_ready && words.has_ready() {
            if let Some(line) = line {
                self.sign(SignKind::Log, line);
            } else if self.responded.unwrap_or(self.at) + HOLD_BACK <= self.at {
                self.warn(format!(
                    "its ready line did not come within {} s",
                    HOLD_BACK.as_secs()
                ));
            } else {
                return None;
            }
        }
        Some(Reached::by(passed.kind, passed.detail))
    }

    /// Readiness of what has no port, by kind.
    fn without_port(&mut self, main: Option<&Chosen>) -> Option<Reached> {
        match self.rule.kind {
            ServiceKind::Server => None,
            ServiceKind::Socket => self.by_unix().or_else(|| self.alive(PATIENT_ALIVE)),
            ServiceKind::Watcher => self.watching(),
            ServiceKind::Multi => match main {
                Some(_) => None,
                None => self.rule_line().or_else(|| self.alive(PATIENT_ALIVE)),
            },
            ServiceKind::Unknown => {
                if main.is_some_and(|it| it.reason != Reason::Debug) || self.promises_port() {
                    return None;
                }
                if self.rule.compiles && self.quiet_since() + COMPILE_QUIET > self.at {
                    return self.by_unix();
                }
                let alive = self.alive(ALIVE)?;
                self.by_unix().or(Some(alive))
            }
        }
    }

    /// Whether one of which nothing is known will listen, by its command or by its own words.
    pub(super) fn promises_port(&self) -> bool {
        let words = self.heard.words();
        let told =
            |it: &&Printed| it.weight <= Weight::Words && it.is_local() && !is_debug(it.port);
        let told = words.printed.iter().any(|it| told(&it));
        self.rule.asked.is_some() || (told && self.at < words.printed_at + HOLD_BACK)
    }

    fn by_unix(&self) -> Option<Reached> {
        let path = self.listeners.unix().next()?;
        let detail = format!("unix {path} listens");
        self.fallen
            .is_none()
            .then(|| Reached::by(SignKind::Socket, detail))
    }

    fn rule_line(&self) -> Option<Reached> {
        let line = self.heard.words().ready.as_ref()?;
        Some(Reached::by(SignKind::Log, line.line.clone()))
    }

    fn watching(&self) -> Option<Reached> {
        let words = self.heard.words();
        if let Some(line) = words.ready.as_ref().or_else(|| rested(words, self.at)) {
            return Some(Reached::by(SignKind::Log, line.line.clone()));
        }
        let quiet = words.output_at.unwrap_or_default() + WATCHER_QUIET <= self.at;
        if quiet && !words.has_ready() {
            return self.alive(ALIVE);
        }
        self.alive(PATIENT_ALIVE)
    }

    /// Alive so long since it was started, by a watcher perhaps.
    fn alive(&self, long: Duration) -> Option<Reached> {
        let words = self.heard.words();
        let doubtful = words.in_use.is_some() || words.suspect.is_some();
        let since = match (&self.fallen, words.again) {
            (None, again) => again.unwrap_or_default(),
            (Some(_), Some(again)) => again,
            (Some(_), None) => return None,
        };
        if self.phase == Phase::Running || doubtful || since + long > self.at {
            return None;
        }
        Some(Reached {
            kind: SignKind::Alive,
            detail: format!("alive for {} s, with nothing to look at", long.as_secs()),
            unprobed: true,
        })
    }

    /// Its line, and for a server a port too: many print it before they listen.
    fn by_line(&mut self, main: Option<&Chosen>) -> Option<Reached> {
        let words = self.heard.words();
        let line = words.ready.clone()?;
        let late = line.at + LOG_GRACE <= self.at && self.fallen.is_none();
        if self.rule.kind == ServiceKind::Server && main.is_none_or(|it| it.settled > self.at) {
            if !late {
                return None;
            }
            self.warn("its line came, but no port of it listens".to_owned());
        }
        Some(Reached::by(SignKind::Log, line.line))
    }

    fn ready(&mut self, reached: Reached, main: Option<Chosen>, found: &mut Vec<Found>) {
        let socket = main.as_ref().map(|it| listens(&it.socket));
        let socket = socket.filter(|_| !reached.unprobed);
        if let Some(socket) = &socket {
            self.sign(SignKind::Socket, socket.clone());
        }
        self.sign(reached.kind, reached.detail.clone());
        let words = self.heard.words();
        let conflict = words.conflict.clone();
        if let Some(main) = main.as_ref().filter(|_| !reached.unprobed) {
            let port = main.socket.address.port();
            if let Some(asked) = self.rule.asked.filter(|asked| *asked != port) {
                self.warn(format!("asked for port {asked}, got {port}"));
            }
            let usual = self.rule.default.filter(|_| self.rule.asked.is_none());
            if let Some(usual) = usual.filter(|usual| moved(*usual, port) && conflict.is_none()) {
                self.warn(format!("its usual port is {usual}; it took {port}"));
            }
        }
        if let Some(line) = conflict {
            self.warn(line);
        }
        self.phase = if reached.unprobed {
            Phase::Running
        } else {
            Phase::Ready(self.at)
        };
        self.fallen = None;
        self.begin_after(main, reached.unprobed);
        let evidence = match socket.filter(|it| *it != reached.detail) {
            Some(socket) => format!("{socket}; {}", reached.detail),
            None => reached.detail,
        };
        found.push(Found::Ready {
            evidence,
            signs: self.signs.clone(),
            unprobed: reached.unprobed,
            warnings: self.warnings.clone(),
        });
    }

    /// When something may change by time alone.
    pub(super) fn before_deadlines(&self) -> Vec<Duration> {
        let words = self.heard.words();
        let output = words.output_at.unwrap_or_default();
        let again = words.again.unwrap_or_default();
        let mut due = vec![again + ALIVE, again + PATIENT_ALIVE];
        due.extend(
            self.rule
                .compiles
                .then(|| self.quiet_since() + COMPILE_QUIET),
        );
        due.extend(words.in_use.as_ref().map(|it| it.at + IN_USE));
        due.extend(
            words
                .suspect
                .as_ref()
                .map(|it| it.at.max(self.quiet_since()) + SUSPECT),
        );
        due.extend(words.ready.as_ref().map(|it| it.at + LOG_GRACE));
        due.push(words.printed_at + HOLD_BACK);
        due.extend(self.responded.map(|it| it + HOLD_BACK));
        due.extend(self.main().map(|it| it.settled));
        match (&self.rule.when, self.rule.kind) {
            (ReadyWhen::Quiet { ms: quiet }, _) => due.push(output + ms(*quiet)),
            (ReadyWhen::Auto, ServiceKind::Watcher) => due.push(output + WATCHER_QUIET),
            (ReadyWhen::Auto, ServiceKind::Multi) => due.push(self.ports_at + MULTI_SETTLE),
            (
                ReadyWhen::Auto
                | ReadyWhen::Listening
                | ReadyWhen::Responding
                | ReadyWhen::Log
                | ReadyWhen::Http { .. }
                | ReadyWhen::Tcp { .. }
                | ReadyWhen::Exec { .. }
                | ReadyWhen::Notify,
                _,
            ) => {}
        }
        due
    }
}

/// Whether a port is one of those that are tried when the usual one is taken.
fn moved(usual: u16, port: u16) -> bool {
    port.checked_sub(usual)
        .is_some_and(|further| (1..=NEXT_PORTS).contains(&further))
}

/// The line of a watcher at rest; one with an expression of its own is given time to print that.
fn rested(words: &Words, at: Duration) -> Option<&Noted> {
    let patient = if words.has_ready() {
        PATIENT_ALIVE
    } else {
        Duration::ZERO
    };
    words.rest.as_ref().filter(|it| it.at + patient <= at)
}
