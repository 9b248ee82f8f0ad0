//! Services: the rules of readiness and health, dependencies, and observations.

use std::net::SocketAddr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::Timestamp;
use crate::byte_string::ByteString;
use crate::millis::optional_millis;

/// The default of how long a wait for readiness takes, in milliseconds.
pub const READY_TIMEOUT_MS: u64 = 60_000;
/// The same for containers, in milliseconds.
pub const READY_TIMEOUT_CONTAINER_MS: u64 = 120_000;
/// The timeout of one probe, in milliseconds: a first request may compile a whole page.
pub const PROBE_TIMEOUT_MS: u64 = 30_000;
/// The default interval between two health checks, in milliseconds.
pub const HEALTH_INTERVAL_MS: u64 = 10_000;
/// The time a service with nothing to probe must stay alive to count as running, in milliseconds.
pub const ALIVE_MS: u64 = 2_000;

/// What a service is requested to be, besides its command.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ServicePlan {
    /// The name among its owner's services; empty for one that is known by its id only.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// The entry of the detection table that recognized it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detected: Option<String>,
    /// Whether the execution became a service because its command looks like one. An exit with 0
    /// before it was ready is then that of an ordinary command.
    #[serde(default)]
    pub automatic: bool,
    /// When it counts as ready.
    #[serde(default)]
    pub ready: ReadyRule,
    /// What shows that it stays healthy; none checks its main port only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub health: Option<HealthRule>,
    /// The services that must come first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub depends_on: Vec<Dependency>,
    /// The port leased to it; passed to the command as `PORT`, and as an argument where its entry
    /// of the detection table knows how.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub leased_port: Option<u16>,
    /// The file that defines it (`ostler.toml`), for services that have one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub defined_in: Option<ByteString>,
    /// A fingerprint of that definition, so that a change of it is noticed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub defined_as: Option<String>,
}

impl ServicePlan {
    /// The plan with every text changed that may contain the value of a secret.
    #[must_use]
    pub fn map_texts(mut self, change: impl Fn(&ByteString) -> ByteString) -> Self {
        self.ready.when = self.ready.when.map_texts(&change);
        self.health = self.health.map(|rule| rule.map_texts(&change));
        self
    }
}

/// When a service is ready, and what to observe for that.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReadyRule {
    /// The condition.
    #[serde(default)]
    pub when: ReadyCondition,
    /// The kind of program.
    #[serde(default)]
    pub kind: ServiceKind,
    /// The default timeout of a wait for readiness.
    #[serde(
        default,
        with = "optional_millis",
        skip_serializing_if = "Option::is_none"
    )]
    pub timeout: Option<Duration>,
    /// Patterns of ready lines: regular expressions over lines without escape sequences.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ready: Vec<String>,
    /// Patterns of failure lines; they take precedence over the others.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fail: Vec<String>,
    /// Patterns of lines that print the address: groups `url`, `port` or `addr`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub url: Vec<String>,
    /// The port that the command line or the environment names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
    /// The default port of programs of its kind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default_port: Option<u16>,
    /// Whether its port opens long before it can respond: its ready line is required too.
    #[serde(default)]
    pub listens_before_ready: bool,
    /// Whether it compiles before it runs, so that being alive shows nothing for a long time.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub compiles: bool,
}

impl Default for ReadyRule {
    fn default() -> Self {
        Self {
            when: ReadyCondition::Auto,
            kind: ServiceKind::Unknown,
            timeout: None,
            ready: Vec::new(),
            fail: Vec::new(),
            url: Vec::new(),
            port: None,
            default_port: None,
            listens_before_ready: false,
            compiles: false,
        }
    }
}

impl ReadyRule {
    /// The timeout of a wait for readiness.
    #[must_use]
    pub fn timeout(&self) -> Duration {
        self.timeout
            .unwrap_or(Duration::from_millis(READY_TIMEOUT_MS))
    }
}

/// The kind of a service's program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ServiceKind {
    /// Unknown: every kind of evidence counts.
    #[default]
    Unknown,
    /// It listens on a port.
    Server,
    /// It listens on a unix socket, or on none: no port is waited for.
    Socket,
    /// It watches files and listens on no port.
    Watcher,
    /// It runs several other services.
    Multi,
}

/// When a service counts as ready.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReadyCondition {
    /// By kind: a server when it answers one request (or accepts a connection, where it does not
    /// speak HTTP), a watcher by its ready line; with nothing to probe, when it has been alive for
    /// [`ALIVE_MS`].
    #[default]
    Auto,
    /// A port of its process tree listens.
    Listening,
    /// Its main port responds: with any HTTP status but 503, or by accepting a connection where
    /// it speaks another protocol.
    Responding,
    /// A line of its output matches one of the rule's `ready` expressions.
    Log,
    /// A GET request is answered with a status from 200 to 399: for a path (`/health`) on its
    /// main port, or for a whole URL on this machine.
    Http {
        /// The path or URL.
        target: String,
    },
    /// This port accepts a connection.
    Tcp {
        /// The port.
        port: u16,
    },
    /// This command exits with 0, run in the service's directory and environment.
    Exec {
        /// Program and arguments.
        argv: Vec<ByteString>,
    },
    /// It sends `READY=1` to `NOTIFY_SOCKET` (sd_notify(3)).
    Notify,
    /// It has printed nothing for this long.
    Quiet {
        /// The duration in milliseconds.
        ms: u64,
    },
}

impl ReadyCondition {
    /// The condition with every text changed that may contain the value of a secret.
    #[must_use]
    pub fn map_texts(self, change: impl Fn(&ByteString) -> ByteString) -> Self {
        match self {
            Self::Http { target } => Self::Http {
                target: change(&ByteString::from(target)).to_string(),
            },
            Self::Exec { argv } => Self::Exec {
                argv: argv.iter().map(change).collect(),
            },
            Self::Auto
            | Self::Listening
            | Self::Responding
            | Self::Log
            | Self::Tcp { .. }
            | Self::Notify
            | Self::Quiet { .. } => self,
        }
    }
}

/// What shows that a service stays healthy after it was ready.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HealthRule {
    /// The condition to probe: `Http`, `Tcp`, `Exec`, `Listening` or `Responding`.
    pub probe: ReadyCondition,
    /// The interval between two checks; none is [`HEALTH_INTERVAL_MS`].
    #[serde(
        default,
        with = "optional_millis",
        skip_serializing_if = "Option::is_none"
    )]
    pub interval: Option<Duration>,
    /// The number of consecutive failures that make it unhealthy; 0 counts as 3.
    #[serde(default)]
    pub failures: u32,
    /// Whether an unhealthy service is stopped, so that its restart policy applies.
    #[serde(default)]
    pub restart: bool,
}

impl HealthRule {
    /// The rule with every text changed that may contain the value of a secret.
    #[must_use]
    pub fn map_texts(self, change: impl Fn(&ByteString) -> ByteString) -> Self {
        Self {
            probe: self.probe.map_texts(change),
            ..self
        }
    }
}

/// A service that must come first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dependency {
    /// The name of the service.
    pub name: String,
    /// The condition that it must meet.
    #[serde(default)]
    pub condition: DependencyCondition,
}

/// The condition that a dependency must meet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DependencyCondition {
    /// Its process is running.
    Started,
    /// One of its ports listens.
    Listening,
    /// It is ready, or running with nothing to probe.
    #[default]
    Ready,
    /// It has exited with 0.
    Completed,
}

/// The stage of a running service on its way to ready.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ServiceStage {
    /// A port of its process tree listens.
    Listening,
    /// Its main port responds, and its condition requires more.
    Responding,
    /// It is alive, with nothing to probe.
    Running,
    /// It is ready.
    Ready,
}

/// One piece of evidence for readiness.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReadinessSignal {
    /// The kind of evidence.
    pub kind: SignalKind,
    /// As text: `127.0.0.1:3000 listens (node, pid 42)`.
    pub detail: String,
    /// When it was observed.
    pub at: Timestamp,
}

/// The kinds of evidence for readiness.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SignalKind {
    /// A listening socket.
    Socket,
    /// A line of output.
    Log,
    /// An HTTP answer.
    Http,
    /// An accepted connection.
    Tcp,
    /// A command that exited with 0.
    Exec,
    /// A message on the notify socket (sd_notify(3)).
    Notify,
    /// No output for some time.
    Quiet,
    /// The process is alive.
    Alive,
}

impl SignalKind {
    /// The name in JSON.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Socket => "socket",
            Self::Log => "log",
            Self::Http => "http",
            Self::Tcp => "tcp",
            Self::Exec => "exec",
            Self::Notify => "notify",
            Self::Quiet => "quiet",
            Self::Alive => "alive",
        }
    }
}

/// A port a service listens on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServicePort {
    /// The bound address, as the process sees it.
    pub address: SocketAddr,
    /// The OS pid of a process that holds it.
    pub pid: u32,
    /// The name of that process.
    pub process: String,
    /// Whether it is the service's main port.
    #[serde(default)]
    pub main: bool,
    /// Whether it speaks TLS, as far as that was probed.
    #[serde(default)]
    pub tls: bool,
}

/// The process that holds a port another service needs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PortHolder {
    /// The address that it listens on.
    pub address: SocketAddr,
    /// Its OS pid; none where the kernel does not reveal the owner of the socket.
    pub pid: Option<u32>,
    /// The name of the process.
    #[serde(default)]
    pub process: String,
    /// Its command line, at most 200 characters of it.
    #[serde(default)]
    pub command: String,
    /// The execution that it belongs to, where the engine started it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub execution: Option<crate::ExecutionId>,
}
