//! The engine's settings. Only the binary reads configuration files and the environment; this is
//! the result.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use ostler_journal::Durability;
use ostler_journal::retention::OutputPolicy;
use ostler_model::{
    AlertThresholds, ByteString, Capability, IsolationLevel, Limits, NetworkAccess, PortForward,
    autorun,
};

use crate::secret_bindings::SecretBinding;

mod container;

pub use container::{AllowedVolume, ContainerSettings};

/// The default size of a session's raw view, in bytes of its newest output; the journal keeps more.
pub const TERMINAL_VIEW_BYTES: u64 = 1024 * 1024;
/// Finite executions one session may run at once.
pub const FINITE_PER_SESSION: u32 = 20;
/// Services, terminals and executions outside any session that one principal may run at once.
pub const OTHERS_PER_PRINCIPAL: u32 = 1_000;
/// Between the termination signal and the kill, in milliseconds.
pub const GRACE_MS: u64 = 5_000;
/// Variables of the client's environment that every isolation level keeps; `LC_*` are kept besides.
pub const BASE_ENVIRONMENT: [&str; 8] = [
    "PATH", "HOME", "USER", "SHELL", "LANG", "TERM", "TZ", "TMPDIR",
];
/// The search path for programs when an allow list is set and no other path is configured.
pub const TRUSTED_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
/// Contexts that one principal may have.
pub const CONTEXTS_PER_PRINCIPAL: usize = 100;
/// When a context ends that nothing uses, in seconds.
pub const CONTEXT_IDLE_S: u64 = 1_800;
/// The time limit of each execution in a context, in seconds.
pub const CONTEXT_TIMEOUT_S: u64 = 3_600;
/// The memory of each execution in a context, in bytes.
pub const CONTEXT_MEMORY_BYTES: u64 = 512 * 1024 * 1024;
/// The processor time of each execution in a context, in thousandths of one core.
pub const CONTEXT_CPU_MILLIS: u32 = 800;
/// The bytes by which each execution in a context may make its directory grow.
pub const CONTEXT_DISK_BYTES: u64 = 1024 * 1024 * 1024;
const DAY_S: u64 = 24 * 60 * 60;

/// Where a person answers what the command policy asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ApprovalPath {
    /// At a daemon that the engine runs in: by `ostler approve`, the page or REST.
    #[default]
    Daemon,
    /// Only at the client that asked: the engine runs in its process and ends with it.
    Client,
}

/// Everything an engine is configured with.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Where executions and the ledger are kept; made when absent.
    pub state_dir: PathBuf,
    /// The only programs that may run, by bare name or absolute path (`ALLOWED_COMMANDS`);
    /// none allows all.
    pub allowed_commands: Option<Vec<String>>,
    /// The encoding of executions whose request sets none (`DEFAULT_ENCODING`).
    pub default_encoding: Option<String>,
    /// How many executions may run at once.
    pub quotas: Quotas,
    /// How long ended executions are kept.
    pub retention: RetentionDefaults,
    /// Between the termination signal and the kill.
    pub grace: Duration,
    /// Variables kept besides [`BASE_ENVIRONMENT`].
    pub base_env_names: Vec<String>,
    /// Whether the client's whole environment is passed on by default.
    pub inherit_env: bool,
    /// The environment of requests that bring none, and of attempts after a restart.
    pub base_env: Vec<(ByteString, ByteString)>,
    /// The search path for programs of the allow list; never taken from a request.
    pub trusted_path: ByteString,
    /// How long ledger entries are kept.
    pub ledger_retention: Duration,
    /// What records of executions and ledger entries survive: every kill, or a loss of power, too.
    /// The backend is opened with the same value.
    pub durability: Durability,
    /// The file of the key that the ledger's heads are signed with, outside of the state directory;
    /// made when absent. Without one, no heads are recorded, and entries cut off the ledger's end
    /// are not missed.
    pub audit_key_file: Option<PathBuf>,
    /// How much output of one execution is kept.
    pub output: OutputPolicy,
    /// How far back a terminal's raw view reaches, in bytes; at most
    /// [`TERMINAL_VIEW_MAX_BYTES`](crate::terminal::TERMINAL_VIEW_MAX_BYTES).
    pub terminal_view_bytes: u64,
    /// The format of a live copy (mirror) of every journal; none writes no copy.
    pub mirror: Option<ostler_export::Format>,
    /// The command policy; none lets every command run.
    pub policy: Option<std::sync::Arc<ostler_policy::RuleSet>>,
    /// Where a person answers what the policy asks; responses say so.
    pub approval_path: ApprovalPath,
    /// Isolation defaults, and what level high exposes.
    pub isolation: IsolationSettings,
    /// Containers: their defaults, and what requests may ask for.
    pub container: ContainerSettings,
    /// The sources of secrets.
    pub secrets: SecretSettings,
    /// Detection, automatic start and ports of services.
    pub services: ServiceSettings,
    /// From which use on somebody is told of an execution that has no thresholds of its own.
    pub alerts: AlertThresholds,
    /// Contexts: where their directories are, their time limits and limits.
    pub contexts: ContextSettings,
}

/// Contexts, and what executions in them get unless they ask for something else.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContextSettings {
    /// Where the directories of contexts are created that name none.
    pub directory: PathBuf,
    /// How many one principal may have.
    pub max_per_principal: usize,
    /// When a context ends that nothing uses.
    pub idle_timeout: Duration,
    /// The time limit of each execution.
    pub timeout: Duration,
    /// The limits of each execution, as far as the host can enforce them.
    pub limits: Limits,
    /// The beginning of the names of the variables `PROJECT_ID` and `TASK_ID`.
    pub environment_prefix: String,
}

impl ContextSettings {
    /// The defaults, with directories beside this state directory: level high hides what is in it.
    #[must_use]
    pub fn beside(state_dir: &Path) -> Self {
        let mut directory = state_dir.as_os_str().to_owned();
        directory.push("-contexts");
        Self {
            directory: directory.into(),
            max_per_principal: CONTEXTS_PER_PRINCIPAL,
            idle_timeout: Duration::from_secs(CONTEXT_IDLE_S),
            timeout: Duration::from_secs(CONTEXT_TIMEOUT_S),
            limits: Limits {
                memory_bytes: Some(CONTEXT_MEMORY_BYTES),
                cpu_millis: Some(CONTEXT_CPU_MILLIS),
                disk_bytes: Some(CONTEXT_DISK_BYTES),
                ..Limits::default()
            },
            environment_prefix: "CLAUDE_".to_owned(),
        }
    }
}

/// Detection, automatic start and ports of services.
#[derive(Debug, Clone, Default)]
pub struct ServiceSettings {
    /// The detection table; none takes the built-in one.
    pub table: Option<crate::detection::DetectionTable>,
    /// Whether commands that look like services are started as services without a request to do so.
    pub automatic: AutoServices,
    /// The range of leased ports, first and last; none takes 20000–29999.
    pub lease_ports: Option<(u16, u16)>,
}

/// Whether commands that look like services are started as such without a request to do so.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AutoServices {
    /// Yes; every such response says so.
    #[default]
    On,
    /// Only where a caller asks.
    Off,
}

/// The isolation of commands unless a request overrides it, and what level high exposes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IsolationSettings {
    /// The level of requests that name none.
    pub default: IsolationLevel,
    /// The lowest level a request may ask for. Where it is high, requests may expose and reach
    /// nothing beyond these settings, nor waive a capability.
    pub minimum: IsolationLevel,
    /// The network access of level high.
    pub network: NetworkAccess,
    /// Absolute paths whose directories may be workspaces at level high; none permits the caller's
    /// own directories outside the operating system's directories.
    pub workspaces: Vec<ByteString>,
    /// Ports a request may forward where the minimum is high.
    pub forwards: Vec<PortForward>,
    /// Absolute paths that level high exposes read-only.
    pub read: Vec<ByteString>,
    /// Absolute paths that level high exposes writable.
    pub write: Vec<ByteString>,
    /// Absolute paths that level high hides within what it exposes; the state directory is always
    /// hidden.
    pub hide: Vec<ByteString>,
    /// Paths below a workspace that stay read-only.
    pub protect: Vec<ByteString>,
    /// Paths below the home directory that stay visible, read-only.
    pub home_visible: Vec<ByteString>,
    /// Capabilities that may be missing without a refusal.
    pub allow_degraded: Vec<Capability>,
    /// Limits of requests that name none, at every level; a field without a value takes the level's
    /// default.
    pub limits: Limits,
}

/// Paths below the home directory that level high exposes read-only: toolchains and git's identity.
/// Credential stores within them stay hidden (`admission::credentials_to_hide`).
pub const HOME_VISIBLE: [&str; 27] = [
    ".asdf",
    ".bun/bin",
    ".cargo/bin",
    ".cargo/git",
    ".cargo/registry",
    ".config/git/config",
    ".config/git/ignore",
    ".deno/bin",
    ".fnm",
    ".gitconfig",
    ".juliaup",
    ".local/bin",
    ".local/lib",
    ".local/share/mise",
    ".local/share/uv",
    ".nix-profile",
    ".nodenv",
    ".nvm",
    ".pyenv",
    ".rbenv",
    ".rustup",
    ".rvm",
    ".sdkman",
    ".volta",
    "bin",
    "go/bin",
    "go/pkg/mod",
];

impl Default for IsolationSettings {
    fn default() -> Self {
        let texts = |list: &[&str]| list.iter().map(|it| ByteString::from(*it)).collect();
        Self {
            default: IsolationLevel::default(),
            minimum: IsolationLevel::Basic,
            network: NetworkAccess::None,
            workspaces: Vec::new(),
            forwards: Vec::new(),
            read: Vec::new(),
            write: Vec::new(),
            hide: Vec::new(),
            protect: autorun::protected_paths().map(ByteString::from).collect(),
            home_visible: texts(&HOME_VISIBLE),
            allow_degraded: Vec::new(),
            limits: Limits::default(),
        }
    }
}

/// The sources of secret values: variables of the client, or of the settings' environment, whose
/// names begin with a prefix; then the secret store.
#[derive(Debug, Clone, Default)]
pub struct SecretSettings {
    /// The prefixes: `OSTLER_SECRET_` gives the secret `TOKEN` from `OSTLER_SECRET_TOKEN`.
    /// Variables with such a prefix are never passed to a command under their own names.
    pub prefixes: Vec<String>,
    /// The store that is queried for secrets that no variable holds.
    pub source: Option<Arc<dyn SecretSource>>,
    /// The callers that may use each secret, by its name; a secret without a binding is for the
    /// local user alone.
    pub bindings: BTreeMap<String, SecretBinding>,
}

/// A store of secrets.
pub trait SecretSource: fmt::Debug + Send + Sync {
    /// The value of a secret, queried each time; none where it has none.
    fn value(&self, name: &str) -> Option<ByteString>;

    /// Why the store is unusable, as a clause; none where it works.
    fn problem(&self) -> Option<String> {
        None
    }
}

/// How many executions may run at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quotas {
    /// Finite executions, per session.
    pub finite_per_session: u32,
    /// Services, terminals and executions outside any session, per principal.
    pub others_per_principal: u32,
}

/// How long ended executions are kept, by the API surface that started them; none keeps them until
/// they are cleaned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetentionDefaults {
    /// Started by the command tools (`PROCESS_RETENTION_SECONDS`).
    pub command: Option<Duration>,
    /// Started by the shell tools.
    pub shell: Option<Duration>,
    /// Terminals.
    pub pty: Option<Duration>,
    /// All other executions.
    pub others: Option<Duration>,
}

impl Settings {
    /// Default settings for this state directory.
    #[must_use]
    pub fn new(state_dir: impl Into<PathBuf>) -> Self {
        let state_dir = state_dir.into();
        Self {
            alerts: AlertThresholds::default(),
            contexts: ContextSettings::beside(&state_dir),
            state_dir,
            allowed_commands: None,
            default_encoding: None,
            quotas: Quotas::default(),
            retention: RetentionDefaults::default(),
            grace: Duration::from_millis(GRACE_MS),
            base_env_names: Vec::new(),
            inherit_env: false,
            base_env: Vec::new(),
            trusted_path: ByteString::from(TRUSTED_PATH),
            ledger_retention: Duration::from_secs(90 * DAY_S),
            durability: Durability::default(),
            audit_key_file: None,
            output: OutputPolicy::default(),
            terminal_view_bytes: TERMINAL_VIEW_BYTES,
            mirror: None,
            policy: None,
            approval_path: ApprovalPath::default(),
            isolation: IsolationSettings::default(),
            container: ContainerSettings::default(),
            secrets: SecretSettings::default(),
            services: ServiceSettings::default(),
        }
    }
}

impl Default for Quotas {
    fn default() -> Self {
        Self {
            finite_per_session: FINITE_PER_SESSION,
            others_per_principal: OTHERS_PER_PRINCIPAL,
        }
    }
}

impl Default for RetentionDefaults {
    fn default() -> Self {
        Self {
            command: Some(Duration::from_secs(3_600)),
            shell: Some(Duration::from_secs(DAY_S)),
            pty: Some(Duration::from_secs(300)),
            others: Some(Duration::from_secs(DAY_S)),
        }
    }
}
