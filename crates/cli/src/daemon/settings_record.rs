//! The settings that a daemon was started with, in its runtime directory. Commands that were given
//! others report them: they would not be in force.

use std::collections::BTreeMap;
use std::path::PathBuf;

use ostler_journal::atomic_file::{self, PRIVATE_MODE};
use ostler_model::ErrorCode;
use ostler_sys::regular_file;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::daemon_location::lock_holder;
use super::launch::CLIENT_KEYS;
use crate::config::{Config, Setting, SettingSource};
use crate::error::CommandError;
use crate::paths::Dirs;

/// The record's file, in the runtime directory.
const FILE: &str = "settings.json";
/// The longest record in bytes.
const MAX_BYTES: u64 = 1024 * 1024;
/// The groups of settings that limit what commands may do and use.
const LIMITING: [&str; 8] = [
    "allowed_commands",
    "container.",
    "contexts.",
    "environment.keep",
    "isolation.",
    "limits.",
    "policy.",
    "quotas.",
];
/// The level that a client sends with each request.
const DEFAULT_LEVEL: &str = "isolation.default";
/// The settings of HTTP, which those of `serve` differ in.
const HTTP: &str = "http.";
/// Settings of each process, of each client, or of `serve`.
const PER_PROCESS: [&str; 6] = [
    "environment.inherit",
    HTTP,
    "log",
    "mcp.",
    "runtime_dir",
    "state_dir",
];

/// What a daemon records of its start.
#[derive(Debug, Serialize, Deserialize)]
struct SettingsRecord {
    /// The OS pid of the daemon.
    pid: u32,
    /// The values by name, those that are shown to people.
    settings: BTreeMap<String, Value>,
}

/// Records the settings of this daemon. Without a record nothing is compared, so that a full disk is
/// no reason to fail.
pub(super) fn write(config: &Config, dirs: &Dirs) {
    let settings = config.settings().iter().filter(|it| it.key.kind.is_shown());
    let record = SettingsRecord {
        pid: std::process::id(),
        settings: settings
            .map(|it| (it.key.name.to_owned(), value_of(it)))
            .collect(),
    };
    let written = serde_json::to_vec(&record)
        .map_err(std::io::Error::from)
        .and_then(|bytes| atomic_file::replace(&dirs.runtime.join(FILE), &bytes, PRIVATE_MODE));
    if let Err(error) = written {
        tracing::warn!(%error, "the settings are not recorded");
    }
}

/// Compares the settings of this command with those of the daemon that runs.
///
/// # Errors
/// Where a flag of this command sets another value than the daemon has. Other sources are reported.
pub(crate) fn check(config: &Config, dirs: &Dirs) -> Result<(), CommandError> {
    let requested = config.settings().iter().filter(|it| is_compared(it));
    let requested: Vec<&Setting> = requested.collect();
    if requested.is_empty() {
        return Ok(());
    }
    let Some(record) = read(dirs) else {
        return Ok(());
    };
    let differing = requested.into_iter().filter(|it| {
        let daemon_value = record.settings.get(it.key.name);
        daemon_value.is_some_and(|value| *value != value_of(it))
    });
    for setting in differing {
        let message = difference_message(setting, &record);
        if let SettingSource::Flag(_) = setting.source {
            return Err(CommandError::new(ErrorCode::Environment, message).with_hint(
                "`ostler shutdown` ends it, and what runs goes on; the next command starts one with \
                 this setting",
            ));
        }
        crate::print_note(&format!(
            "{message}; after `ostler shutdown`, which ends no command, it is"
        ));
    }
    Ok(())
}

/// What the daemon that runs has for a setting, where that is something else.
#[derive(Debug)]
pub(crate) struct DaemonValue {
    /// The OS pid of the daemon.
    pub(crate) pid: u32,
    pub(crate) value: Value,
    /// The value for people.
    pub(crate) text: String,
}

/// What the daemon that runs has for this setting. None where it has the same, or each process has
/// a value of its own.
pub(crate) fn daemon_value(dirs: &Dirs, setting: &Setting) -> Option<DaemonValue> {
    let name = setting.key.name;
    let is_per_process = PER_PROCESS.iter().any(|prefix| name.starts_with(prefix));
    let is_of_client = CLIENT_KEYS.contains(&name) || name == DEFAULT_LEVEL;
    if (is_per_process && !name.starts_with(HTTP)) || is_of_client {
        return None;
    }
    let mut record = read(dirs)?;
    let value = record.settings.remove(name)?;
    let text = value_text(Some(&value));
    (value != value_of(setting)).then_some(DaemonValue {
        pid: record.pid,
        value,
        text,
    })
}

/// A recorded value for people.
fn value_text(value: Option<&Value>) -> String {
    match value {
        None | Some(Value::Null) => "unset".to_owned(),
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    }
}

fn difference_message(setting: &Setting, record: &SettingsRecord) -> String {
    let Setting { key, value, source } = setting;
    let pid = record.pid;
    let daemon_value = value_text(record.settings.get(key.name));
    format!(
        "{} = {value} ({source}) is not in force: the daemon that runs (pid {pid}) has {daemon_value}",
        key.name
    )
}

/// Whether this setting is given to this command and takes effect in the daemon.
fn is_compared(setting: &Setting) -> bool {
    let name = setting.key.name;
    let begins = |prefix: &&str| name.starts_with(*prefix);
    if PER_PROCESS.iter().any(begins) || !setting.key.kind.is_shown() {
        return false;
    }
    // A client sends its own with each request, but for those of files.
    let is_sent = CLIENT_KEYS.contains(&name) || name == DEFAULT_LEVEL;
    match setting.source {
        SettingSource::Default => false,
        SettingSource::Flag(_) => !is_sent,
        SettingSource::Variable(_) => !is_sent && LIMITING.iter().any(begins),
        SettingSource::File(..) => LIMITING.iter().any(begins),
    }
}

fn value_of(setting: &Setting) -> Value {
    serde_json::to_value(&setting.value).unwrap_or_default()
}

/// The record of the daemon that holds the lock.
fn read(dirs: &Dirs) -> Option<SettingsRecord> {
    let path: PathBuf = dirs.runtime.join(FILE);
    let text = regular_file::read_text(&path, MAX_BYTES).ok()?;
    let record: SettingsRecord = serde_json::from_str(&text).ok()?;
    (lock_holder(&dirs.lock())? == record.pid).then_some(record)
}
