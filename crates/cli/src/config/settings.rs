//! Settings of the engine, the daemon and stdio clients.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use ostler_engine::{ContextSettings, IsolationSettings, SecretSettings, SecretSource, Settings};
use ostler_export::Format;
use ostler_interface::templates::TemplateFiles;
use ostler_journal::Durability;
use ostler_mcp::{McpOptions, Structured};
use ostler_model::quantity::{LIMIT_NAMES, parse_bytes};
use ostler_model::{AlertThresholds, ByteString, IsolationLevel, Limits, NetworkAccess};
use serde::{Deserialize, Serialize};

use super::load::{Config, Setting, SettingSource};
use super::mcp_app::WebAppPage;
use super::secrets::{SECRETS_FILE, SecretsFile};
use super::value::SettingValue;

const DAY_S: u64 = 24 * 60 * 60;
/// The default name of the key of the ledger's heads, in the directory of the configuration file.
const AUDIT_KEY_FILE: &str = "audit.key";
/// The default name of the key of the webhook, in the same directory.
const WEBHOOK_KEY_FILE: &str = "webhook.key";
/// The user's command templates, in the directory of the configuration file.
/// The name of the directory of the user's configuration.
const CONFIG_DIR: &str = "ostler";
const TEMPLATES_DIR: &str = "templates";

/// Policy that the environment or the flags of one stdio client set: it applies to that client, in
/// addition to the daemon's settings. Files are read by the daemon only.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ClientPolicy {
    /// The only programs that may run; the daemon's own list applies too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) allowed_commands: Option<Vec<String>>,
    /// The default output encoding of its requests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) default_encoding: Option<String>,
    /// The retention of what it starts, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) retention_seconds: Option<u64>,
    /// The default isolation level of what it starts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) isolation: Option<IsolationLevel>,
}

impl Config {
    /// Warnings about settings that allow more than they name.
    pub(crate) fn warnings(&self) -> Vec<String> {
        let list = self.list("allowed_commands").unwrap_or_default();
        let warnings = ostler_engine::admission::allow_list_warnings::warnings(&list);
        warnings
            .into_iter()
            .map(|warning| format!("allowed_commands: {warning}"))
            .collect()
    }

    /// Whether commands of a person get the person's whole environment; the default is yes.
    pub(crate) fn inherits_at_prompt(&self) -> bool {
        let setting = self.get("environment.inherit");
        matches!(setting.source, SettingSource::Default)
            || setting.value == SettingValue::Flag(true)
    }

    /// The engine's settings, with `base_env` for requests without an environment.
    pub(crate) fn engine_settings(&self, base_env: Vec<(ByteString, ByteString)>) -> Settings {
        let mut settings = Settings::new(self.dirs().state);
        settings.allowed_commands = self.list("allowed_commands");
        settings.default_encoding = self.text("default_encoding");
        settings.quotas.finite_per_session = self.count("quotas.finite_per_session");
        settings.quotas.others_per_principal = self.count("quotas.others_per_principal");
        settings.retention.command = self.seconds("retention.command_seconds");
        settings.retention.shell = self.seconds("retention.shell_seconds");
        settings.retention.pty = self.seconds("retention.pty_seconds");
        settings.retention.others = self.seconds("retention.others_seconds");
        settings.grace = Duration::from_millis(self.number("stop.grace_ms").unwrap_or_default());
        settings.base_env_names = self.list("environment.keep").unwrap_or_default();
        settings.inherit_env = self.get("environment.inherit").value == SettingValue::Flag(true);
        settings.base_env = base_env;
        if let Some(path) = self.text("trusted_path") {
            settings.trusted_path = ByteString::from(path);
        }
        settings.durability = self.durability();
        let days = self.number("ledger.retention_days").unwrap_or_default();
        settings.ledger_retention = Duration::from_secs(days * DAY_S);
        settings.audit_key_file = self.audit_key_file();
        settings.isolation = self.isolation_settings();
        settings.container = self.container_settings();
        settings.secrets = SecretSettings {
            prefixes: self.secret_prefixes(),
            source: self
                .secrets_file()
                .map(|path| Arc::new(SecretsFile::new(path)) as Arc<dyn SecretSource>),
            bindings: self.bindings.clone(),
        };
        settings.services = self.service_settings();
        settings.contexts = self.context_settings(settings.contexts);
        settings.alerts = self.alert_thresholds();
        settings.policy.clone_from(&self.policy);
        settings.mirror = self.text("journal.mirror").as_deref().and_then(mirror);
        settings
    }

    /// What records survive.
    fn durability(&self) -> Durability {
        let name = self.text("durability");
        name.and_then(|name| Durability::by_name(&name))
            .unwrap_or_default()
    }

    /// From which use on somebody is told.
    fn alert_thresholds(&self) -> AlertThresholds {
        let bytes = |name| self.text(name).and_then(|size| parse_bytes(&size));
        let percent = self.number("alerts.cpu_percent");
        AlertThresholds {
            cpu_percent: percent.and_then(|percent| u32::try_from(percent).ok()),
            memory_bytes: bytes("alerts.memory"),
            disk_bytes: bytes("alerts.disk"),
            run_time: self.seconds("alerts.run_seconds"),
            idle: self.seconds("alerts.idle_seconds"),
        }
    }

    /// The key of the webhook.
    pub(super) fn webhook_secret_file(&self) -> Option<PathBuf> {
        self.file_beside_config("alerts.webhook_secret_file", WEBHOOK_KEY_FILE)
    }

    /// The settings of contexts.
    fn context_settings(&self, defaults: ContextSettings) -> ContextSettings {
        let directory = self.text("contexts.directory").map(PathBuf::from);
        let span = |name, default| self.seconds(name).unwrap_or(default);
        let mut limits = defaults.limits;
        for name in ["memory", "cpus", "disk"] {
            if let Some(value) = self.text(&format!("contexts.{name}")) {
                limits.set(name, &value).unwrap_or_default();
            }
        }
        let max = self.count("contexts.max_per_principal");
        ContextSettings {
            directory: directory.unwrap_or(defaults.directory),
            max_per_principal: usize::try_from(max).unwrap_or(usize::MAX),
            idle_timeout: span("contexts.idle_seconds", defaults.idle_timeout),
            timeout: span("contexts.timeout_seconds", defaults.timeout),
            limits,
            environment_prefix: self
                .text("contexts.environment_prefix")
                .unwrap_or(defaults.environment_prefix),
        }
    }

    /// The settings of isolation.
    fn isolation_settings(&self) -> IsolationSettings {
        let defaults = IsolationSettings::default();
        let texts = |name| {
            let list = self.list(name)?;
            Some(list.into_iter().map(ByteString::from).collect::<Vec<_>>())
        };
        let degradable = self.list("isolation.allow_degraded").unwrap_or_default();
        let ports = self.list("isolation.forwards").unwrap_or_default();
        let network = self.list("isolation.network").unwrap_or_default();
        IsolationSettings {
            default: self.level("isolation.default").unwrap_or(defaults.default),
            minimum: self.level("isolation.minimum").unwrap_or(defaults.minimum),
            network: NetworkAccess::from_words(network.iter().map(String::as_str))
                .unwrap_or_default(),
            workspaces: texts("isolation.workspaces").unwrap_or_default(),
            forwards: ports.iter().filter_map(|it| it.parse().ok()).collect(),
            read: texts("isolation.read").unwrap_or_default(),
            write: texts("isolation.write").unwrap_or_default(),
            hide: self.hidden_paths(texts("isolation.hide").unwrap_or_default()),
            protect: texts("isolation.protect").unwrap_or(defaults.protect),
            home_visible: texts("isolation.home_visible").unwrap_or(defaults.home_visible),
            allow_degraded: degradable.iter().filter_map(|it| it.parse().ok()).collect(),
            limits: self.limits(),
        }
    }

    /// The configured paths, the daemon's sockets, the user's configuration, which decides what the
    /// next command may do, and the files of secrets.
    fn hidden_paths(&self, mut paths: Vec<ByteString>) -> Vec<ByteString> {
        paths.push(ByteString::from(self.dirs().runtime));
        let configuration = self.user_file();
        let own_dir = configuration
            .and_then(Path::parent)
            .filter(|dir| dir.ends_with(CONFIG_DIR));
        paths.extend(own_dir.map(ByteString::from));
        let files = [
            configuration.map(Path::to_owned),
            self.text("policy.file").map(PathBuf::from),
            self.secrets_file(),
            self.audit_key_file(),
            self.webhook_secret_file(),
            self.history_password_file(),
        ];
        paths.extend(files.into_iter().flatten().map(ByteString::from));
        paths
    }

    /// The configured limits; values were validated when they were read.
    fn limits(&self) -> Limits {
        let mut limits = Limits::default();
        for name in LIMIT_NAMES {
            if let Some(value) = self.text(&format!("limits.{name}")) {
                limits.set(name, &value).unwrap_or_default();
            }
        }
        limits
    }

    fn level(&self, name: &str) -> Option<IsolationLevel> {
        self.text(name)?.parse().ok()
    }

    /// The prefixes of variables that hold secrets.
    pub(crate) fn secret_prefixes(&self) -> Vec<String> {
        self.list("secrets.prefix").unwrap_or_default()
    }

    /// The path of the file of secrets, whether or not it exists.
    pub(crate) fn secrets_file(&self) -> Option<PathBuf> {
        self.file_beside_config("secrets.file", SECRETS_FILE)
    }

    /// The key of the ledger's heads.
    pub(crate) fn audit_key_file(&self) -> Option<PathBuf> {
        self.file_beside_config("audit.key_file", AUDIT_KEY_FILE)
    }

    /// Where the user's command templates are: beside the configuration file.
    pub(crate) fn template_files(&self) -> TemplateFiles {
        let directory = |file: &Path| Some(file.parent()?.join(TEMPLATES_DIR));
        TemplateFiles {
            user_dir: self.user_file().and_then(directory),
        }
    }

    /// The file that a setting names, else the one of this name beside the last configuration file.
    fn file_beside_config(&self, setting: &str, name: &str) -> Option<PathBuf> {
        let default_path = || Some(self.user_file()?.parent()?.join(name));
        self.text(setting).map(PathBuf::from).or_else(default_path)
    }

    /// The idle time after which a daemon started on demand exits; none is never.
    pub(crate) fn idle_exit(&self) -> Option<Duration> {
        let seconds = self.number("daemon.idle_exit_seconds")?;
        (seconds > 0).then(|| Duration::from_secs(seconds))
    }

    /// The log filter. The MCP library's message for every request is off at the default level.
    pub(crate) fn log_filter(&self) -> String {
        let filter = self.text("log").unwrap_or_else(|| "info".to_owned());
        match filter.as_str() {
            "info" => "info,rmcp=warn,rmcp::service=off".to_owned(),
            _ => filter,
        }
    }

    /// The tools that MCP clients are offered.
    pub(crate) fn tools(&self) -> Vec<String> {
        self.list("mcp.tools").unwrap_or_default()
    }

    /// The options of the MCP server.
    pub(crate) fn mcp_options(&self) -> McpOptions {
        let structured = match self.text("mcp.structured").as_deref() {
            Some("always") => Structured::Always,
            Some("never") => Structured::Never,
            _ => Structured::Auto,
        };
        let defaults = McpOptions::default();
        let no_tasks = self.text("mcp.tasks").as_deref() == Some("off");
        McpOptions {
            structured,
            task_after: defaults.task_after.filter(|_| !no_tasks),
            templates: self.template_files(),
            app: Some(Arc::new(WebAppPage(self.web_files()))),
        }
    }

    /// The policy of this client.
    pub(crate) fn client_policy(&self) -> ClientPolicy {
        let own_setting = |name| Some(self.get(name)).filter(|setting| is_client_setting(setting));
        ClientPolicy {
            allowed_commands: own_setting("allowed_commands").and_then(list_of),
            default_encoding: own_setting("default_encoding").and_then(text_of),
            retention_seconds: own_setting("retention.command_seconds").and_then(number_of),
            isolation: own_setting("isolation.default")
                .and_then(text_of)
                .and_then(|it| it.parse().ok()),
        }
    }

    pub(super) fn list(&self, name: &str) -> Option<Vec<String>> {
        list_of(self.get(name))
    }

    pub(super) fn text(&self, name: &str) -> Option<String> {
        text_of(self.get(name))
    }

    pub(super) fn number(&self, name: &str) -> Option<u64> {
        number_of(self.get(name))
    }

    fn count(&self, name: &str) -> u32 {
        self.number(name)
            .and_then(|count| u32::try_from(count).ok())
            .unwrap_or(u32::MAX)
    }

    fn seconds(&self, name: &str) -> Option<Duration> {
        self.number(name).map(Duration::from_secs)
    }
}

fn is_client_setting(setting: &Setting) -> bool {
    match setting.source {
        SettingSource::Variable(_) | SettingSource::Flag(_) => true,
        SettingSource::Default | SettingSource::File(..) => false,
    }
}

fn list_of(setting: &Setting) -> Option<Vec<String>> {
    match &setting.value {
        SettingValue::List(items) => Some(items.clone()),
        SettingValue::Unset
        | SettingValue::Text(_)
        | SettingValue::Number(_)
        | SettingValue::Flag(_) => None,
    }
}

fn text_of(setting: &Setting) -> Option<String> {
    match &setting.value {
        SettingValue::Text(text) => Some(text.clone()),
        SettingValue::Unset
        | SettingValue::List(_)
        | SettingValue::Number(_)
        | SettingValue::Flag(_) => None,
    }
}

fn number_of(setting: &Setting) -> Option<u64> {
    match &setting.value {
        SettingValue::Number(number) => Some(*number),
        SettingValue::Unset
        | SettingValue::List(_)
        | SettingValue::Text(_)
        | SettingValue::Flag(_) => None,
    }
}

fn mirror(name: &str) -> Option<Format> {
    match name {
        "yaml" => Some(Format::Yaml),
        "avro" => Some(Format::Avro),
        "jsonl" => Some(Format::Jsonl),
        _ => None,
    }
}
