//! The table of all settings.

use ostler_model::suggestion;

use super::container_keys::CONTAINER_KEYS;
use super::value::ValueKind;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SettingKey {
    /// Its name in files and after `--set`: `table.key`.
    pub(crate) name: &'static str,
    /// Its environment variables, in order of precedence.
    pub(crate) variables: &'static [&'static str],
    /// The kind of value.
    pub(crate) kind: ValueKind,
    /// The default as text; none where it depends on the system.
    pub(crate) default: Option<&'static str>,
    pub(crate) help: &'static str,
}

pub(super) const fn key(
    name: &'static str,
    variables: &'static [&'static str],
    kind: ValueKind,
    default: Option<&'static str>,
    help: &'static str,
) -> SettingKey {
    SettingKey {
        name,
        variables,
        kind,
        default,
        help,
    }
}

/// All settings: those of containers are the last.
pub(crate) const KEYS: [SettingKey; OTHER_KEYS.len() + CONTAINER_KEYS.len()] = {
    let mut all = [OTHER_KEYS[0]; OTHER_KEYS.len() + CONTAINER_KEYS.len()];
    let mut index = 1;
    while index < all.len() {
        all[index] = if index < OTHER_KEYS.len() {
            OTHER_KEYS[index]
        } else {
            CONTAINER_KEYS[index - OTHER_KEYS.len()]
        };
        index += 1;
    }
    all
};

const OTHER_KEYS: [SettingKey; 76] = [
    key(
        "state_dir",
        &["OSTLER_STATE_DIR", "OUTPUT_STORAGE_PATH"],
        ValueKind::Directory,
        None,
        "executions, their output, the ledger",
    ),
    key(
        "runtime_dir",
        &["OSTLER_RUNTIME_DIR"],
        ValueKind::Directory,
        None,
        "the daemon's sockets",
    ),
    key(
        "allowed_commands",
        &["OSTLER_ALLOWED_COMMANDS", "ALLOWED_COMMANDS"],
        ValueKind::Programs,
        None,
        "the only programs that may run; unset allows all",
    ),
    key(
        "policy.mode",
        &["OSTLER_POLICY_MODE"],
        ValueKind::PolicyMode,
        Some("auto"),
        "which command policy holds; auto: the rules of the files there are, off: none of yours",
    ),
    key(
        "policy.file",
        &["OSTLER_POLICY_FILE"],
        ValueKind::Directory,
        None,
        "your rules; unset: policy.toml beside the configuration, where there is one",
    ),
    key(
        "default_encoding",
        &["OSTLER_DEFAULT_ENCODING", "DEFAULT_ENCODING"],
        ValueKind::Encoding,
        None,
        "how output is decoded where a request does not say; unset means utf-8",
    ),
    key(
        "trusted_path",
        &["OSTLER_TRUSTED_PATH"],
        ValueKind::SearchPath,
        Some(ostler_engine::settings::TRUSTED_PATH),
        "where programs of the allow list are looked up",
    ),
    key(
        "retention.command_seconds",
        &[
            "OSTLER_RETENTION_COMMAND_SECONDS",
            "PROCESS_RETENTION_SECONDS",
        ],
        ValueKind::Retention,
        Some("3600"),
        "how long what command_* tools started is kept after its end",
    ),
    key(
        "retention.shell_seconds",
        &["OSTLER_RETENTION_SHELL_SECONDS"],
        ValueKind::Retention,
        Some("86400"),
        "the same for the shell tools",
    ),
    key(
        "retention.pty_seconds",
        &["OSTLER_RETENTION_PTY_SECONDS"],
        ValueKind::Retention,
        Some("300"),
        "the same for terminals",
    ),
    key(
        "retention.others_seconds",
        &["OSTLER_RETENTION_OTHERS_SECONDS"],
        ValueKind::Retention,
        Some("86400"),
        "the same for everything else",
    ),
    key(
        "quotas.finite_per_session",
        &["OSTLER_QUOTAS_FINITE_PER_SESSION"],
        ValueKind::Count,
        Some("20"),
        "commands one session may run at once",
    ),
    key(
        "quotas.others_per_principal",
        &["OSTLER_QUOTAS_OTHERS_PER_PRINCIPAL"],
        ValueKind::Count,
        Some("1000"),
        "services, terminals and commands outside sessions one user may run at once",
    ),
    key(
        "stop.grace_ms",
        &["OSTLER_STOP_GRACE_MS"],
        ValueKind::Millis,
        Some("5000"),
        "between the polite request to end and the kill",
    ),
    key(
        "environment.keep",
        &["OSTLER_ENVIRONMENT_KEEP"],
        ValueKind::Names,
        Some(""),
        "variables commands get besides the base environment",
    ),
    key(
        "environment.inherit",
        &["OSTLER_ENVIRONMENT_INHERIT"],
        ValueKind::Flag,
        Some("false"),
        "whether commands get the whole environment of who asks; unset, what a person starts at the prompt does",
    ),
    key(
        "isolation.default",
        &["OSTLER_ISOLATION_DEFAULT"],
        ValueKind::Level,
        Some("medium"),
        "the isolation level of commands whose request does not say",
    ),
    key(
        "isolation.minimum",
        &["OSTLER_ISOLATION_MINIMUM"],
        ValueKind::Level,
        Some("basic"),
        "the lowest level a request may ask for; at high nothing may be loosened either",
    ),
    key(
        "isolation.network",
        &["OSTLER_ISOLATION_NETWORK"],
        ValueKind::Network,
        Some("none"),
        "what of the network level high reaches",
    ),
    key(
        "isolation.workspaces",
        &["OSTLER_ISOLATION_WORKSPACES"],
        ValueKind::Paths,
        Some(""),
        "directories below which level high may write; unset: the caller's own",
    ),
    key(
        "isolation.forwards",
        &["OSTLER_ISOLATION_FORWARDS"],
        ValueKind::Forwards,
        Some(""),
        "ports a request may forward where isolation.minimum is high",
    ),
    key(
        "isolation.read",
        &["OSTLER_ISOLATION_READ"],
        ValueKind::Paths,
        Some(""),
        "further paths level high shows read-only",
    ),
    key(
        "isolation.write",
        &["OSTLER_ISOLATION_WRITE"],
        ValueKind::Paths,
        Some(""),
        "further paths level high shows writable",
    ),
    key(
        "isolation.hide",
        &["OSTLER_ISOLATION_HIDE"],
        ValueKind::Paths,
        Some(""),
        "paths level high hides within what it shows",
    ),
    key(
        "isolation.protect",
        &["OSTLER_ISOLATION_PROTECT"],
        ValueKind::RelativePaths,
        None,
        "paths below a workspace that stay read-only; unset: git's hooks and configuration",
    ),
    key(
        "isolation.home_visible",
        &["OSTLER_ISOLATION_HOME_VISIBLE"],
        ValueKind::RelativePaths,
        None,
        "paths below the home directory level high shows read-only; unset: toolchains",
    ),
    key(
        "isolation.allow_degraded",
        &["OSTLER_ISOLATION_ALLOW_DEGRADED"],
        ValueKind::Capabilities,
        Some(""),
        "restrictions that level high may lack",
    ),
    key(
        "limits.memory",
        &["OSTLER_LIMITS_MEMORY"],
        ValueKind::Quantity("memory"),
        None,
        "memory a command and all it starts may use",
    ),
    key(
        "limits.cpus",
        &["OSTLER_LIMITS_CPUS"],
        ValueKind::Quantity("cpus"),
        None,
        "cores it may use",
    ),
    key(
        "limits.pids",
        &["OSTLER_LIMITS_PIDS"],
        ValueKind::Quantity("pids"),
        None,
        "processes and threads it may have; unset: 4096 from level medium on",
    ),
    key(
        "limits.disk",
        &["OSTLER_LIMITS_DISK"],
        ValueKind::Quantity("disk"),
        None,
        "bytes its workspace may grow by",
    ),
    key(
        "limits.files",
        &["OSTLER_LIMITS_FILES"],
        ValueKind::Quantity("files"),
        None,
        "files each of its processes may have open",
    ),
    key(
        "limits.file_size",
        &["OSTLER_LIMITS_FILE_SIZE"],
        ValueKind::Quantity("file_size"),
        None,
        "bytes of the largest file it may write",
    ),
    key(
        "contexts.directory",
        &["OSTLER_CONTEXTS_DIRECTORY"],
        ValueKind::Directory,
        None,
        "where directories of contexts are created; unset: beside the state directory, with -contexts after its name",
    ),
    key(
        "contexts.max_per_principal",
        &["OSTLER_CONTEXTS_MAX_PER_PRINCIPAL"],
        ValueKind::Count,
        Some("100"),
        "contexts one user may have",
    ),
    key(
        "contexts.idle_seconds",
        &["OSTLER_CONTEXTS_IDLE_SECONDS"],
        ValueKind::Count,
        Some("1800"),
        "when a context ends that nothing uses",
    ),
    key(
        "contexts.timeout_seconds",
        &["OSTLER_CONTEXTS_TIMEOUT_SECONDS"],
        ValueKind::Count,
        Some("3600"),
        "the time limit of each command in a context",
    ),
    key(
        "contexts.memory",
        &["OSTLER_CONTEXTS_MEMORY"],
        ValueKind::Quantity("memory"),
        Some("512M"),
        "memory each command in a context may use, as far as this machine can enforce it",
    ),
    key(
        "contexts.cpus",
        &["OSTLER_CONTEXTS_CPUS"],
        ValueKind::Quantity("cpus"),
        Some("0.8"),
        "cores it may use, likewise",
    ),
    key(
        "contexts.disk",
        &["OSTLER_CONTEXTS_DISK"],
        ValueKind::Quantity("disk"),
        Some("1G"),
        "bytes by which it may make its directory grow, likewise",
    ),
    key(
        "contexts.environment_prefix",
        &["OSTLER_CONTEXTS_ENVIRONMENT_PREFIX"],
        ValueKind::VariablePrefix,
        Some("CLAUDE_"),
        "how the variables PROJECT_ID and TASK_ID of commands in a context begin",
    ),
    key(
        "alerts.cpu_percent",
        &["OSTLER_ALERTS_CPU_PERCENT"],
        ValueKind::Count,
        None,
        "tell when a command uses so many percent of one core; unset: nine tenths of its limit, where it has one",
    ),
    key(
        "alerts.memory",
        &["OSTLER_ALERTS_MEMORY"],
        ValueKind::Quantity("memory"),
        None,
        "tell when it uses so much memory; unset: likewise",
    ),
    key(
        "alerts.disk",
        &["OSTLER_ALERTS_DISK"],
        ValueKind::Quantity("disk"),
        None,
        "tell when its directory has grown so much, where that is limited; unset: likewise",
    ),
    key(
        "alerts.run_seconds",
        &["OSTLER_ALERTS_RUN_SECONDS"],
        ValueKind::Count,
        None,
        "tell when it runs for so long",
    ),
    key(
        "alerts.idle_seconds",
        &["OSTLER_ALERTS_IDLE_SECONDS"],
        ValueKind::Count,
        None,
        "tell when it neither prints nor works for so long",
    ),
    key(
        "alerts.webhook",
        &["OSTLER_ALERTS_WEBHOOK"],
        ValueKind::WebhookUrl,
        None,
        "where alerts are posted to",
    ),
    key(
        "alerts.webhook_secret_file",
        &["OSTLER_ALERTS_WEBHOOK_SECRET_FILE"],
        ValueKind::Directory,
        None,
        "the key that they are signed with, mode 0600; unset: webhook.key beside your config.toml",
    ),
    key(
        "alerts.webhook_ca_file",
        &["OSTLER_ALERTS_WEBHOOK_CA_FILE"],
        ValueKind::FilePath,
        None,
        "certificates that an https server is verified with; unset: those of the system",
    ),
    key(
        "services.automatic",
        &["OSTLER_SERVICES_AUTOMATIC"],
        ValueKind::Flag,
        Some("true"),
        "whether MCP tools start commands that look like services as such without being asked",
    ),
    key(
        "services.table",
        &["OSTLER_SERVICES_TABLE"],
        ValueKind::FilePath,
        None,
        "a TOML file of further frameworks, tried before the shipped ones",
    ),
    key(
        "services.lease_ports",
        &["OSTLER_SERVICES_LEASE_PORTS"],
        ValueKind::PortRange,
        Some("20000-29999"),
        "the ports services get that ask for any free one",
    ),
    key(
        "secrets.prefix",
        &["OSTLER_SECRETS_PREFIX"],
        ValueKind::Names,
        Some("OSTLER_SECRET_,CLAUDE_SECRET_"),
        "how variables begin that hold secrets, for --secret and its like; never passed on as they are",
    ),
    key(
        "secrets.file",
        &["OSTLER_SECRETS_FILE"],
        ValueKind::Directory,
        None,
        "a TOML file of NAME = \"value\", mode 0600; unset: secrets.toml beside your config.toml",
    ),
    key(
        "ledger.retention_days",
        &["OSTLER_LEDGER_RETENTION_DAYS"],
        ValueKind::Days,
        Some("90"),
        "how long the ledger is kept",
    ),
    key(
        "audit.key_file",
        &["OSTLER_AUDIT_KEY_FILE"],
        ValueKind::Directory,
        None,
        "the key that signs how far the ledger reached, made by the daemon; unset: audit.key beside your config.toml",
    ),
    key(
        "history.database",
        &["OSTLER_HISTORY_DATABASE"],
        ValueKind::HistoryDatabase,
        None,
        "a PostgreSQL server of this machine, by URL or by the directory of its socket; unset: a file of SQLite",
    ),
    key(
        "history.password_file",
        &["OSTLER_HISTORY_PASSWORD_FILE"],
        ValueKind::FilePath,
        None,
        "the file with the password for that server, mode 0600; unset: none",
    ),
    key(
        "history.schema",
        &["OSTLER_HISTORY_SCHEMA"],
        ValueKind::SchemaName,
        Some("ostler"),
        "the schema of the tables in that server; daemons may share one",
    ),
    key(
        "journal.mirror",
        &["OSTLER_JOURNAL_MIRROR"],
        ValueKind::Mirror,
        None,
        "keep a live copy of every journal in this format",
    ),
    key(
        "daemon.idle_exit_seconds",
        &["OSTLER_DAEMON_IDLE_EXIT_SECONDS"],
        ValueKind::IdleSeconds,
        Some("600"),
        "when a daemon started on demand ends with nothing to do; 0 is never",
    ),
    key(
        "mcp.tools",
        &["OSTLER_MCP_TOOLS"],
        ValueKind::Tools,
        Some("core"),
        "which tools MCP clients are offered",
    ),
    key(
        "mcp.structured",
        &["OSTLER_MCP_STRUCTURED"],
        ValueKind::Structured,
        Some("auto"),
        "which tools answer structured content; auto: those that show status, not output",
    ),
    key(
        "mcp.tasks",
        &["OSTLER_MCP_TASKS"],
        ValueKind::Tasks,
        Some("auto"),
        "whether long calls become tasks where the client knows them",
    ),
    key(
        "http.host",
        &["OSTLER_HTTP_HOST"],
        ValueKind::Host,
        Some("127.0.0.1"),
        "the address HTTP is served at",
    ),
    key(
        "http.port",
        &["OSTLER_HTTP_PORT"],
        ValueKind::Port,
        None,
        "its port; unset: any, and only `ostler serve` opens it",
    ),
    key(
        "http.url_prefix",
        &["OSTLER_HTTP_URL_PREFIX"],
        ValueKind::UrlPrefix,
        Some(""),
        "what every path over HTTP begins with",
    ),
    key(
        "http.legacy_sse",
        &["OSTLER_HTTP_LEGACY_SSE"],
        ValueKind::Flag,
        Some("false"),
        "whether the HTTP+SSE transport of MCP 2024-11-05 is served too",
    ),
    key(
        "http.tokens",
        &["OSTLER_HTTP_TOKENS"],
        ValueKind::Tokens,
        Some("required"),
        "whether HTTP clients need a bearer token",
    ),
    key(
        "http.rate_limit",
        &["OSTLER_HTTP_RATE_LIMIT"],
        ValueKind::Count,
        None,
        "requests a second over HTTP, for each principal; unset: no limit",
    ),
    key(
        "http.rate_burst",
        &["OSTLER_HTTP_RATE_BURST"],
        ValueKind::Count,
        None,
        "requests at once within that limit; unset: those of a second",
    ),
    key(
        "http.hosts",
        &["OSTLER_HTTP_HOSTS"],
        ValueKind::Hosts,
        Some(""),
        "names of this machine HTTP clients may use besides the loopback's",
    ),
    key(
        "http.origins",
        &["OSTLER_HTTP_ORIGINS"],
        ValueKind::Origins,
        Some(""),
        "web pages that may use it besides those of this machine",
    ),
    key(
        "http.directory",
        &["OSTLER_HTTP_DIRECTORY"],
        ValueKind::Directory,
        None,
        "where relative directories of HTTP clients start; unset: where the daemon does",
    ),
    key(
        "http.web_directory",
        &["OSTLER_HTTP_WEB_DIRECTORY"],
        ValueKind::Directory,
        None,
        "where the web interface's files are, for its development; unset: in the program",
    ),
    key(
        "log",
        &["OSTLER_LOG"],
        ValueKind::LogFilter,
        Some("info"),
        "what the daemon logs",
    ),
];

impl SettingKey {
    /// Finds the setting with this name.
    pub(crate) fn by_name(name: &str) -> Option<&'static Self> {
        KEYS.iter().find(|key| key.name == name)
    }

    /// The name of a setting most similar to `name`.
    pub(crate) fn suggest(name: &str) -> Option<&'static str> {
        suggestion::nearest(name, KEYS.iter().map(|key| key.name))
    }
}
