//! After ready: its main port, its health rule, its own word.

use std::time::Duration;

use ostler_model::service::HEALTH_INTERVAL_MS;
use ostler_model::{HealthRule, ReadyWhen, ServiceKind};

use super::limits::{DOUBT_APART, HEALTH_FAILURES, HEALTH_INTERVAL_MIN, UNSERVED};
use super::machine::{Chosen, Found, Readiness};
use super::main_port::{Reason, best};
use super::probing::{Aim, Pass, judge};
use super::schedule::ms;
use super::seen::{Answered, ProbeOrder};
use super::target::{Target, outside, request};
use super::words::listens;

/// What is watched, and what was told of it.
#[derive(Debug, Clone, Default)]
pub(super) struct After {
    /// The main port.
    pub(super) main: Option<u16>,
    /// When it was seen last.
    seen: Duration,
    /// The unix socket, where that is what it listens on.
    unix: Option<String>,
    /// What is wrong, as it was told.
    ill: Option<String>,
    /// Whether an end was asked for.
    ended: bool,
    /// Whether it was ready because its main port answered.
    answered: bool,
    /// The last time that was doubted.
    doubted: Option<Duration>,
    /// Whether it still is.
    doubt: bool,
    /// Whether it is to be found out what its main port speaks.
    curious: bool,
    /// Since when connections wait at it that nobody takes.
    unserved: Option<Duration>,
}

impl Readiness {
    /// It is ready from now on.
    pub(super) fn begin_after(&mut self, main: Option<Chosen>, unprobed: bool) {
        let port = main
            .filter(|it| it.reason != Reason::Debug)
            .map(|it| it.socket.address.port());
        let unix = self.listeners.unix().next().map(str::to_owned);
        self.after = After {
            main: port,
            seen: self.at,
            unix: unix.filter(|_| port.is_none() && !unprobed),
            answered: self.responded.is_some() && !unprobed,
            curious: self.is_curious() && !unprobed,
            ..After::default()
        };
        self.probing.aim(None, self.at);
        if let Some(health) = &mut self.health {
            health.begin(self.at);
        }
    }

    /// One look.
    pub(super) fn look_after(&mut self, found: &mut Vec<Found>) {
        self.ask_again();
        self.check_health();
        let health = self.health.as_ref().and_then(|it| it.ill());
        let restart = self
            .health
            .as_ref()
            .is_some_and(|it| it.rule.restart && it.ill().is_some());
        let wrong = self.wrong().or_else(|| health.map(str::to_owned));
        match (wrong, &self.after.ill) {
            (Some(detail), told) if told.is_none() || (restart && !self.after.ended) => {
                let detail = if restart {
                    health.map_or(detail, str::to_owned)
                } else {
                    detail
                };
                self.after.ill = Some(detail.clone());
                self.after.ended = restart;
                found.push(Found::Ill { detail, restart });
            }
            (None, Some(_)) => {
                self.after.ill = None;
                self.after.ended = false;
                let detail = self
                    .main()
                    .map_or_else(|| "well again".to_owned(), |it| listens(&it.socket));
                found.push(Found::Well { detail });
            }
            (Some(_), _) | (None, None) => {}
        }
    }

    /// The main port, where it was not known yet, another was named, or it is gone and another
    /// has been opened since.
    pub(super) fn adopt(&mut self) {
        let main = self.main().filter(|it| it.reason != Reason::Debug);
        let Some(main) = main.filter(|_| self.is_ready()) else {
            return;
        };
        let there = self.after.main.is_some_and(|it| self.listeners.holds(it));
        if there {
            self.after.seen = self.at;
        }
        if there || self.after.main.is_none() || main.since > self.after.seen {
            // Another port may speak something else.
            let another = self
                .after
                .main
                .is_some_and(|it| it != main.socket.address.port());
            self.after.curious |= another && self.is_curious();
            self.after.main = Some(main.socket.address.port());
            self.after.unix = None;
        }
    }

    /// A process of it is gone. Where another one holds the same socket (a reloader, a parent
    /// of workers), the port listens on and nobody answers: ask once.
    pub(super) fn doubt(&mut self) {
        let lately = self
            .after
            .doubted
            .is_some_and(|it| self.at < it + DOUBT_APART);
        if self.after.answered && self.health.is_none() && !lately {
            self.after.doubt = true;
            self.after.doubted = Some(self.at);
        }
    }

    /// Whether it is found out what the main port speaks, where readiness does not hang on
    /// that. A port of which only a connection was asked, or less, is left alone.
    pub(super) fn is_curious(&self) -> bool {
        let less = matches!(self.rule.when, ReadyWhen::Tcp { .. } | ReadyWhen::Listening);
        let watches = self.rule.kind == ServiceKind::Watcher;
        let url = matches!(self.rule.target, Some(Target::Url { .. }));
        !less && !watches && !url && !self.resumed
    }

    /// Whether the ready port is doubted.
    pub(super) fn is_doubted(&self) -> bool {
        self.is_ready() && self.after.doubt
    }

    /// Whether whoever holds the main port was stopped, or has let connections wait for long.
    pub(super) fn is_unserved(&mut self) -> bool {
        let main = self.main();
        let waits = main.as_ref().is_some_and(|it| it.socket.waiting > 0);
        self.after.unserved = match (waits, self.after.unserved) {
            (true, since) => since.or(Some(self.at)),
            (false, _) => None,
        };
        let long = |since: Duration| since + UNSERVED <= self.at;
        self.after.unserved.is_some_and(long) || main.is_some_and(|it| it.socket.stopped)
    }

    /// Probes the main port while there is doubt, or it is not known what it speaks.
    fn ask_again(&mut self) {
        if !self.is_ready() {
            return;
        }
        let main = self.main().filter(|it| it.settled <= self.at);
        let aim = match &main {
            Some(main) if self.after.doubt => Some(self.aim_to_answer(main)),
            Some(main) if self.after.curious => self.aim_to_know(main),
            Some(_) | None => None,
        };
        self.probing.aim(aim, self.at);
        let scanned = self.listeners.scanned();
        let passed = self
            .probing
            .passed(scanned, |inode| self.listeners.takes(inode), self.at);
        if let (Some(passed), Some(main)) = (&passed, &main)
            && self.after.curious
        {
            self.note_answer(main.socket.address.port(), passed);
        }
        let failed = self.probing.failed().is_some();
        if passed.is_some() || (failed && !self.after.doubt) {
            self.after.doubt = false;
            self.after.curious = false;
            self.probing.aim(None, self.at);
        }
    }

    /// Whether it speaks HTTP, where that is not known: with patience, since who was silent
    /// before may have had to think.
    pub(super) fn aim_to_know(&self, main: &Chosen) -> Option<Aim> {
        let port = main.socket.address.port();
        if self.protocol(port).is_some() || self.is_other(&main.socket) {
            return None;
        }
        let thought = self.is_ready() && self.after.answered;
        let (tls, unsure) = self.manner(&main.socket, Pass::Speaks);
        let fresh = (tls, unsure && !thought);
        let manner = self.probing.manner(main.socket.inode).unwrap_or(fresh);
        Some(Aim {
            order: request(main.socket.address, "/", manner),
            inode: Some(main.socket.inode),
            pass: Pass::Speaks,
        })
    }

    /// What it no longer listens on.
    fn gone(&self) -> Option<String> {
        if !self.has_looked() {
            return None;
        }
        if let Some(port) = self.after.main {
            if !self.listeners.holds(port) {
                return Some(format!("port {port} is no longer listening"));
            }
            let silent = self.probing.failed().filter(|_| self.after.doubt)?;
            let stopped = self.main().is_some_and(|it| it.socket.stopped);
            let stopped = if stopped {
                "; its process is stopped by a signal"
            } else {
                ""
            };
            return Some(format!("port {port} no longer answers ({silent}{stopped})"));
        }
        if let Some(path) = &self.after.unix {
            let there = self.listeners.unix().any(|it| it == path);
            return (!there).then(|| format!("unix {path} is no longer listening"));
        }
        self.is_lost()
            .then(|| "no port listens any more".to_owned())
    }

    /// What is wrong, without the health rule.
    fn wrong(&self) -> Option<String> {
        if self.notified.stopping {
            let status = self
                .notified
                .status
                .as_deref()
                .map_or_else(String::new, |it| format!(": {it}"));
            return Some(format!("it says that it is stopping{status}"));
        }
        let gone = self.gone()?;
        let last = &self.heard.words().last;
        Some(if last.is_empty() {
            gone
        } else {
            format!("{gone}; last line: {last}")
        })
    }

    fn check_health(&mut self) {
        let Some(mut health) = self.health.take() else {
            return;
        };
        let main = self.main();
        let aim = self.health_aim(&health.rule.probe, main.as_ref());
        match aim {
            Looked::Probe(aim) => health.aim(aim, self.at),
            Looked::Well => health.looked(Ok(()), self.at),
            Looked::Wrong(detail) => health.looked(Err(detail), self.at),
            Looked::Nothing => health.rest(self.at),
        }
        self.health = Some(health);
    }

    /// What a health rule looks at now.
    fn health_aim(&self, probe: &ReadyWhen, main: Option<&Chosen>) -> Looked {
        let at_main = |path: &str, pass| match main {
            Some(main) => {
                let manner = self.manner(&main.socket, pass);
                let other = pass == Pass::Answers && self.is_other(&main.socket);
                let aim = if other {
                    self.aim_to_answer(main)
                } else {
                    self.aim_at(main, path, pass)
                };
                let order = match aim.order {
                    ProbeOrder::Http { .. } => request(main.socket.address, path, manner),
                    order @ (ProbeOrder::Tcp { .. } | ProbeOrder::Exec { .. }) => order,
                };
                Looked::Probe(Aim {
                    order,
                    inode: None,
                    ..aim
                })
            }
            None => Looked::Wrong("no port listens".to_owned()),
        };
        let at_port = |host: &str, port: u16| {
            let own = best(&self.listeners.all().collect::<Vec<_>>(), port);
            own.map_or_else(|| outside(host, port), |it| it.socket.address)
        };
        match probe {
            ReadyWhen::Listening => match main {
                Some(_) => Looked::Well,
                None => Looked::Wrong("no port listens".to_owned()),
            },
            ReadyWhen::Auto | ReadyWhen::Responding => at_main("/", Pass::Answers),
            ReadyWhen::Http { target } => match Target::parse(target) {
                Target::Path(path) => at_main(&path, Pass::Succeeds),
                Target::Url {
                    host,
                    port,
                    https,
                    path,
                } => Looked::Probe(Aim {
                    order: ProbeOrder::Http {
                        address: at_port(&host, port),
                        host,
                        path,
                        tls: https,
                        unsure: false,
                    },
                    inode: None,
                    pass: Pass::Succeeds,
                }),
            },
            ReadyWhen::Tcp { port } => Looked::Probe(Aim {
                order: ProbeOrder::Tcp {
                    address: at_port("", *port),
                },
                inode: None,
                pass: Pass::Connects,
            }),
            ReadyWhen::Exec { argv } => Looked::Probe(Aim {
                order: ProbeOrder::Exec { argv: argv.clone() },
                inode: None,
                pass: Pass::Exits,
            }),
            ReadyWhen::Log | ReadyWhen::Notify | ReadyWhen::Quiet { .. } => Looked::Nothing,
        }
    }
}

/// One look at health.
enum Looked {
    /// By this probe.
    Probe(Aim),
    /// It is well.
    Well,
    /// It is not.
    Wrong(String),
    /// There is nothing to look at.
    Nothing,
}

/// A health rule at work.
#[derive(Debug, Clone)]
pub(super) struct Health {
    pub(super) rule: HealthRule,
    aim: Option<Aim>,
    /// When the next look is due; it lasts from then until it was answered.
    due: Option<Duration>,
    failures: u32,
    detail: String,
    failed_at: Option<Duration>,
}

impl Health {
    pub(super) fn new(rule: &HealthRule) -> Self {
        Self {
            rule: rule.clone(),
            aim: None,
            due: None,
            failures: 0,
            detail: String::new(),
            failed_at: None,
        }
    }

    /// From now on; the first look comes after one interval.
    fn begin(&mut self, at: Duration) {
        *self = Self {
            due: Some(at + self.interval()),
            ..Self::new(&self.rule)
        };
    }

    fn interval(&self) -> Duration {
        self.rule
            .interval
            .unwrap_or(ms(HEALTH_INTERVAL_MS))
            .max(HEALTH_INTERVAL_MIN)
    }

    /// The probe that is to be under way.
    pub(super) fn order(&self, at: Duration) -> Option<&ProbeOrder> {
        self.aim
            .as_ref()
            .filter(|_| self.is_due(at))
            .map(|it| &it.order)
    }

    /// When the next look is due.
    pub(super) fn due(&self) -> Duration {
        self.due.unwrap_or_default()
    }

    /// When a look failed, where the last one did.
    pub(super) fn failed_at(&self) -> Option<Duration> {
        self.failed_at
    }

    /// What is wrong, after enough failures in a row.
    fn ill(&self) -> Option<&str> {
        let most = if self.rule.failures == 0 {
            HEALTH_FAILURES
        } else {
            self.rule.failures
        };
        (self.failures >= most).then_some(&self.detail)
    }

    fn is_due(&self, at: Duration) -> bool {
        self.due.is_some_and(|due| due <= at)
    }

    fn aim(&mut self, aim: Aim, at: Duration) {
        self.due.get_or_insert(at + self.interval());
        self.aim = Some(aim);
    }

    /// Takes in an answer.
    pub(super) fn answered(&mut self, answered: Answered, at: Duration) {
        if let Some(aim) = self.aim.as_ref().filter(|_| self.is_due(at)) {
            let judged = judge(aim, answered, at).map(|_| ());
            self.looked(judged, at);
        }
    }

    /// Nothing to look at.
    fn rest(&mut self, at: Duration) {
        self.looked(Ok(()), at);
    }

    /// A look without a probe, where one is due.
    fn looked(&mut self, judged: Result<(), String>, at: Duration) {
        let interval = self.interval();
        let due = *self.due.get_or_insert(at + interval);
        if due > at {
            return;
        }
        self.due = Some(at + interval);
        match judged {
            Ok(()) => {
                self.failures = 0;
                self.failed_at = None;
            }
            Err(detail) => {
                self.failures = self.failures.saturating_add(1);
                self.detail = format!("health: {detail} ({} times in a row)", self.failures);
                self.failed_at = Some(at);
            }
        }
    }
}
