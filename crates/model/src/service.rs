//! What makes an execution a service: when it counts as ready, what shows that it is well, what
//! it needs, and what was seen of it (02 §E, document 004).

use std::net::SocketAddr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::Timestamp;
use crate::byte_string::ByteString;
use crate::spec::optional_millis;

/// How long a wait for readiness takes unless told otherwise, in milliseconds (E1).
pub const READY_TIMEOUT_MS: u64 = 60_000;
/// The same for containers, in milliseconds (E1).
pub const READY_TIMEOUT_CONTAINER_MS: u64 = 120_000;
/// How long one probe may take: a first request may compile a whole page, in milliseconds.
pub const PROBE_MS: u64 = 30_000;
/// Between two looks at a service's health, in milliseconds.
pub const HEALTH_INTERVAL_MS: u64 = 10_000;
/// Alive so long with nothing to look at, a service counts as running, in milliseconds (E1).
pub const ALIVE_MS: u64 = 2_000;

/// What was asked of a service besides its command.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ServicePlan {
    /// What it is called among its owner's; empty for one that is known by its id only.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// The entry of the detection table it was recognised by.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detected: Option<String>,
    /// Whether nobody asked for a service: its command looks like one. Then an exit with 0
    /// before it was ready is that of an ordinary command (E4).
    #[serde(default)]
    pub automatic: bool,
    /// When it is ready.
    #[serde(default)]
    pub ready: ReadyRule,
    /// What shows that it stays well; none looks at its main port only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub health: Option<HealthRule>,
    /// What must be so before it starts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub depends_on: Vec<Dependency>,
    /// The port leased to it; given to the command as `PORT`, and as an argument where its
    /// entry of the table knows how.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub leased_port: Option<u16>,
    /// Where its definition stands (`ostler.toml`), for those that have one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub defined_in: Option<ByteString>,
    /// What tells that definition from others of its name, so that a change of it is seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub defined_as: Option<String>,
}

/// When a service is ready, and what may be looked at to see it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReadyRule {
    /// What readiness means.
    #[serde(default)]
    pub when: ReadyCondition,
    /// What kind of program it is.
    #[serde(default)]
    pub kind: ServiceKind,
    /// How long a wait for it takes unless told otherwise.
    #[serde(
        default,
        with = "optional_millis",
        skip_serializing_if = "Option::is_none"
    )]
    pub timeout: Option<Duration>,
    /// Lines that show it ready: regular expressions over lines without escape sequences.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ready: Vec<String>,
    /// Lines that show it failed; they win over the others.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fail: Vec<String>,
    /// Lines that tell its address: groups `url`, `port` or `addr`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub url: Vec<String>,
    /// The port the command line or the environment asks for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
    /// The port programs of its kind take unless told otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default_port: Option<u16>,
    /// Whether its port opens long before it can answer: its ready line is waited for too.
    #[serde(default)]
    pub listens_before_ready: bool,
    /// Whether it compiles what it runs first, so that being alive says nothing for long.
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
    /// How long a wait for it takes.
    #[must_use]
    pub fn timeout(&self) -> Duration {
        self.timeout
            .unwrap_or(Duration::from_millis(READY_TIMEOUT_MS))
    }
}

/// What a service does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ServiceKind {
    /// Nobody knows: what comes is taken.
    #[default]
    Unknown,
    /// It listens on a port.
    Server,
    /// It listens on a unix socket, or on none: no port is waited for.
    Socket,
    /// It watches files and listens on nothing.
    Watcher,
    /// It runs several others.
    Multi,
}

/// What readiness means.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReadyCondition {
    /// By kind: a server when it answers one request (or accepts, where it speaks no HTTP), a
    /// watcher by its line; with nothing to look at, when it has lived for [`ALIVE_MS`].
    #[default]
    Auto,
    /// A port of its tree listens.
    Listening,
    /// Its main port answers: any HTTP status but 503, or a connection taken where it speaks
    /// something else.
    Responding,
    /// A line of its output matches one of the rule's `ready` expressions.
    Log,
    /// A request for this is answered with a status from 200 to 399: a path (`/health`) on its
    /// main port, or a whole URL on this machine.
    Http {
        /// The path or URL.
        target: String,
    },
    /// This port takes a connection.
    Tcp {
        /// Which.
        port: u16,
    },
    /// This command exits with 0, run in the service's directory and environment.
    Exec {
        /// Program and arguments.
        argv: Vec<ByteString>,
    },
    /// It says `READY=1` over `NOTIFY_SOCKET` (sd_notify(3)).
    Notify,
    /// It has printed nothing for this long.
    Quiet {
        /// Milliseconds.
        ms: u64,
    },
}

/// What shows that a service stays well after it was ready.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HealthRule {
    /// What is looked at: `Http`, `Tcp`, `Exec`, `Listening` or `Responding`.
    pub probe: ReadyCondition,
    /// Between two looks; none is [`HEALTH_INTERVAL_MS`].
    #[serde(
        default,
        with = "optional_millis",
        skip_serializing_if = "Option::is_none"
    )]
    pub interval: Option<Duration>,
    /// Looks that must fail in a row; 0 counts as 3.
    #[serde(default)]
    pub failures: u32,
    /// Whether an unhealthy one is ended, so that its restart policy can act.
    #[serde(default)]
    pub restart: bool,
}

/// Another service that comes first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dependency {
    /// Its name.
    pub name: String,
    /// What must be so of it.
    #[serde(default)]
    pub condition: DependencyCondition,
}

/// What must be so of a dependency.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DependencyCondition {
    /// Its program runs.
    Started,
    /// A port of it listens.
    Listening,
    /// It is ready, or running with nothing to look at.
    #[default]
    Ready,
    /// It has ended with 0.
    Completed,
}

/// How far a living service has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ServiceStage {
    /// A port of its tree listens.
    Listening,
    /// Its main port answers, and more is asked for.
    Responding,
    /// Alive, with nothing to look at.
    Running,
    /// Ready.
    Ready,
}

/// One thing that showed something.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReadinessSignal {
    /// What kind of thing.
    pub kind: SignalKind,
    /// In words: `127.0.0.1:3000 listens (node, pid 42)`.
    pub detail: String,
    /// When it was seen.
    pub at: Timestamp,
}

/// Kinds of signs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SignalKind {
    /// A listening socket.
    Socket,
    /// A line of output.
    Log,
    /// An HTTP answer.
    Http,
    /// A connection taken.
    Tcp,
    /// A command that exited with 0.
    Exec,
    /// A word over the notify socket.
    Notify,
    /// No output for some time.
    Quiet,
    /// It lives.
    Alive,
}

impl SignalKind {
    /// Its name in JSON.
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
    /// The address it is bound to, as the process sees it.
    pub address: SocketAddr,
    /// The OS pid of a process that holds it.
    pub pid: u32,
    /// That process's name.
    pub process: String,
    /// Whether it is the one people mean.
    #[serde(default)]
    pub main: bool,
    /// Whether it speaks TLS, as far as that was tried.
    #[serde(default)]
    pub tls: bool,
}

/// Who holds a port somebody else wants.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PortHolder {
    /// Where it listens.
    pub address: SocketAddr,
    /// Its OS pid; none where the kernel does not show us whose it is.
    pub pid: Option<u32>,
    /// Its name.
    #[serde(default)]
    pub process: String,
    /// Its command line, at most 200 characters of it.
    #[serde(default)]
    pub command: String,
    /// The execution it belongs to, where it is one of ours.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub execution: Option<crate::ExecutionId>,
}
