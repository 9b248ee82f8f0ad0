//! The layers of the configuration: default, file, environment, flag.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ostler_engine::detection::DetectionTable;
use ostler_model::ErrorCode;
use ostler_policy::RuleSet;

use super::bindings::{self, SecretBindings};
use super::file::{self, ConfigEntry};
use super::keys::{KEYS, SettingKey};
use super::value::{RawValue, SettingValue, ValueKind};
use crate::error::CommandError;
use crate::paths::{self, Dirs};
use crate::process_env::ProcessEnv;

/// Where a value came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SettingSource {
    Default,
    /// A line of a file.
    File(PathBuf, usize),
    /// An environment variable.
    Variable(&'static str),
    /// A command line flag.
    Flag(&'static str),
}

impl fmt::Display for SettingSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File(path, line) => write!(f, "{}:{line}", path.display()),
            Self::Variable(name) => write!(f, "environment {name}"),
            Self::Flag(name) => write!(f, "flag {name}"),
        }
    }
}

/// A setting with its value and source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Setting {
    pub(crate) key: &'static SettingKey,
    pub(crate) value: SettingValue,
    pub(crate) source: SettingSource,
}

/// The flags about configuration.
#[derive(Debug, Clone, Default)]
pub(crate) struct ConfigFlags {
    /// The value of `--config`.
    pub(crate) file: Option<PathBuf>,
    /// The value of `--state-dir`.
    pub(crate) state_dir: Option<PathBuf>,
    /// The value of `--runtime-dir`.
    pub(crate) runtime_dir: Option<PathBuf>,
    /// The values of `--set KEY=VALUE`.
    pub(crate) set: Vec<String>,
    /// The flags of one verb that set keys.
    pub(crate) verb_flags: Vec<FlagValue>,
}

/// A flag that sets a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FlagValue {
    pub(crate) key: &'static str,
    pub(crate) flag: &'static str,
    /// The value as given.
    pub(crate) value: String,
}

impl ConfigFlags {
    /// The configuration file named by flag or environment. It may be relative to the working
    /// directory, and that of a daemon differs.
    pub(crate) fn config_file(&self, env: &ProcessEnv) -> Option<PathBuf> {
        let named = self.file.clone();
        let named = named.or_else(|| env.get("OSTLER_CONFIG").map(PathBuf::from))?;
        Some(paths::resolve_directory(&named))
    }
}

/// A configuration file that was looked for.
#[derive(Debug, Clone)]
pub(crate) struct ConfigFile {
    pub(crate) path: PathBuf,
    pub(crate) state: FileState,
}

/// Whether a configuration file was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FileState {
    /// All of it.
    Read,
    /// There is none.
    Missing,
    /// It is there and cannot be read, or is not TOML.
    Unreadable,
}

#[derive(Debug, Clone)]
pub(crate) struct Config {
    settings: Vec<Setting>,
    files: Vec<ConfigFile>,
    /// The command policy; none allows every command.
    pub(super) policy: Option<Arc<RuleSet>>,
    /// The service detection table; none is the built-in one.
    pub(super) detection_table: Option<DetectionTable>,
    pub(super) bindings: SecretBindings,
}

impl Config {
    /// Reads all layers.
    ///
    /// # Errors
    /// The first invalid value: its key, the value, its source, what is allowed.
    pub(crate) fn load(flags: &ConfigFlags, env: &ProcessEnv) -> Result<Self, CommandError> {
        let (config, problems) = Self::load_lossy(flags, env);
        match problems.into_iter().next() {
            Some(problem) => Err(problem),
            None => Ok(config),
        }
    }

    /// Reads all layers; invalid values are left out and returned as errors.
    pub(crate) fn load_lossy(flags: &ConfigFlags, env: &ProcessEnv) -> (Self, Vec<CommandError>) {
        let mut config = Self::defaults();
        let mut problems = config.read_files(flags, env);
        problems.extend(config.read_environment(env));
        problems.extend(config.read_flags(flags));
        config.fill_directories(env);
        (config, problems)
    }

    /// Adds the command policy, for processes that run commands: a partial policy is refused.
    ///
    /// # Errors
    /// When a file of rules is invalid.
    pub(crate) fn with_policy(mut self, env: &ProcessEnv) -> Result<Self, CommandError> {
        self.policy = super::policy::load(&self, env)?.map(Arc::new);
        Ok(self)
    }

    /// Adds the detection table extended by the user.
    ///
    /// # Errors
    /// When the file is invalid.
    pub(crate) fn with_detection_table(mut self) -> Result<Self, CommandError> {
        self.detection_table = super::services::load_table(&self)?;
        Ok(self)
    }

    fn defaults() -> Self {
        let setting = |key: &'static SettingKey| Setting {
            key,
            value: key
                .default
                .and_then(|text| key.kind.parse(&RawValue::Text(text.to_owned())))
                .unwrap_or(SettingValue::Unset),
            source: SettingSource::Default,
        };
        Self {
            settings: KEYS.iter().map(setting).collect(),
            files: Vec::new(),
            policy: None,
            detection_table: None,
            bindings: SecretBindings::new(),
        }
    }

    fn read_files(&mut self, flags: &ConfigFlags, env: &ProcessEnv) -> Vec<CommandError> {
        let mut problems = Vec::new();
        let named = flags.config_file(env);
        let required = named.is_some();
        let files = match named {
            Some(path) => vec![path],
            None => paths::machine_config()
                .into_iter()
                .chain([paths::default_config(env)])
                .collect(),
        };
        for path in files {
            let state = match file::read(&path, required) {
                Ok(entries) => {
                    let is_there = entries.is_some();
                    let entries = entries.into_iter().flatten();
                    problems.extend(entries.filter_map(|it| self.apply_entry(&path, it).err()));
                    if is_there {
                        FileState::Read
                    } else {
                        FileState::Missing
                    }
                }
                Err(problem) => {
                    problems.push(problem);
                    FileState::Unreadable
                }
            };
            self.files.push(ConfigFile { path, state });
        }
        problems
    }

    fn apply_entry(&mut self, path: &Path, entry: ConfigEntry) -> Result<(), CommandError> {
        let source = SettingSource::File(path.to_owned(), entry.line);
        if bindings::apply(&mut self.bindings, &entry.name, &entry.value, &source)? {
            return Ok(());
        }
        let key =
            SettingKey::by_name(&entry.name).ok_or_else(|| unknown_key(&entry.name, &source))?;
        self.apply(key, &entry.value, source)
    }

    fn read_environment(&mut self, env: &ProcessEnv) -> Vec<CommandError> {
        let mut problems = Vec::new();
        for key in &KEYS {
            // The lowest precedence first, so that the highest wins.
            for &name in key.variables.iter().rev() {
                let Some(value) = env.exact(name) else {
                    continue;
                };
                // An empty variable counts as unset, except where that would lift a restriction.
                if value.is_empty() && key.name != "allowed_commands" {
                    continue;
                }
                let raw = value.to_str().map_or_else(
                    || RawValue::Unsupported(format!("\"{}\"", value.display())),
                    |text| RawValue::Text(text.to_owned()),
                );
                problems.extend(self.apply(key, &raw, SettingSource::Variable(name)).err());
            }
        }
        problems
    }

    fn read_flags(&mut self, flags: &ConfigFlags) -> Vec<CommandError> {
        let mut problems = Vec::new();
        for assignment in &flags.set {
            problems.extend(self.apply_assignment(assignment).err());
        }
        for verb_flag in &flags.verb_flags {
            let key = SettingKey::by_name(verb_flag.key).expect("flags name keys of the table");
            let raw = RawValue::Text(verb_flag.value.clone());
            problems.extend(
                self.apply(key, &raw, SettingSource::Flag(verb_flag.flag))
                    .err(),
            );
        }
        let directories = [
            ("state_dir", "--state-dir", &flags.state_dir),
            ("runtime_dir", "--runtime-dir", &flags.runtime_dir),
        ];
        for (name, flag, path) in directories {
            problems.extend(self.apply_path(name, flag, path.as_deref()).err());
        }
        problems
    }

    /// The values of `--set` for another process: relative paths were resolved against the working
    /// directory of this one.
    pub(crate) fn resolved_assignments(&self, flags: &ConfigFlags) -> Vec<String> {
        let resolve = |assignment: &String| {
            let (name, _) = assignment.split_once('=')?;
            let key = SettingKey::by_name(name)?;
            match (key.kind, &self.get(name).value) {
                (ValueKind::FilePath, SettingValue::Text(path)) => Some(format!("{name}={path}")),
                _ => None,
            }
        };
        let assignments = flags.set.iter();
        assignments
            .map(|it| resolve(it).unwrap_or_else(|| it.clone()))
            .collect()
    }

    /// Applies `--set KEY=VALUE`.
    fn apply_assignment(&mut self, assignment: &str) -> Result<(), CommandError> {
        let (name, value) = assignment.split_once('=').ok_or_else(|| {
            CommandError::value(format!("--set {assignment}: there is no '='"))
                .with_hint("write --set KEY=VALUE; `ostler config explain` lists the keys")
        })?;
        let source = SettingSource::Flag("--set");
        let raw = RawValue::Text(value.to_owned());
        if bindings::apply(&mut self.bindings, name, &raw, &source)? {
            return Ok(());
        }
        let key = SettingKey::by_name(name).ok_or_else(|| unknown_key(name, &source))?;
        self.apply(key, &raw, source)
    }

    /// Applies a directory given as a flag, which may be relative to the working directory.
    fn apply_path(
        &mut self,
        name: &str,
        flag: &'static str,
        path: Option<&Path>,
    ) -> Result<(), CommandError> {
        let (Some(path), Some(key)) = (path, SettingKey::by_name(name)) else {
            return Ok(());
        };
        let absolute = std::path::absolute(path)
            .map_err(|error| CommandError::value(format!("{flag} {}: {error}", path.display())))?;
        let raw = RawValue::Text(absolute.to_string_lossy().into_owned());
        self.apply(key, &raw, SettingSource::Flag(flag))
    }

    fn apply(
        &mut self,
        key: &'static SettingKey,
        raw: &RawValue,
        source: SettingSource,
    ) -> Result<(), CommandError> {
        let parsed = key.kind.parse(raw);
        let mut value = parsed
            .filter(|it| is_valid_for(key, it, &source))
            .ok_or_else(|| {
                let shown = if key.kind.is_shown() {
                    raw.to_string()
                } else {
                    "(not shown)".to_owned()
                };
                let mut message = format!("{} = {shown} ({source}) is not allowed", key.name);
                if let Some(reason) = key.kind.reason(raw) {
                    message += &format!(": {reason}");
                }
                CommandError::new(ErrorCode::Environment, message)
                    .with_hint(format!("allowed: {}", key.kind.allowed()))
            })?;
        if let (ValueKind::FilePath, SettingValue::Text(path)) = (key.kind, &mut value) {
            *path = resolve_path(path, &source);
        }
        let slot = self.settings.iter_mut().find(|setting| setting.key == key);
        let setting = slot.expect("every key of the table has its setting");
        setting.value = value;
        setting.source = source;
        Ok(())
    }

    fn fill_directories(&mut self, env: &ProcessEnv) {
        if self.get("state_dir").value == SettingValue::Unset {
            self.set_directory("state_dir", &paths::default_state(env));
        }
        if self.get("runtime_dir").value == SettingValue::Unset {
            let runtime = paths::default_runtime(env, &self.path("state_dir"));
            self.set_directory("runtime_dir", &runtime);
        }
    }

    fn set_directory(&mut self, name: &str, path: &Path) {
        let text = path.to_string_lossy().into_owned();
        let slot = self.settings.iter_mut().find(|s| s.key.name == name);
        slot.into_iter()
            .for_each(|s| s.value = SettingValue::Text(text.clone()));
    }

    /// The same configuration for another state directory.
    pub(crate) fn with_state_dir(mut self, directory: &Path) -> Self {
        self.set_directory("state_dir", directory);
        self
    }

    /// All settings, in the order of the table.
    pub(crate) fn settings(&self) -> &[Setting] {
        &self.settings
    }

    pub(crate) const fn bindings(&self) -> &SecretBindings {
        &self.bindings
    }

    /// The files that were searched.
    pub(crate) fn files(&self) -> &[ConfigFile] {
        &self.files
    }

    /// The configuration file of the user, or the one that was named.
    pub(super) fn user_file(&self) -> Option<&Path> {
        self.files.last().map(|file| file.path.as_path())
    }

    /// The setting of a key in the table.
    pub(crate) fn get(&self, name: &str) -> &Setting {
        self.settings
            .iter()
            .find(|setting| setting.key.name == name)
            .expect("only keys of the table are asked for")
    }

    /// The value of a key for a directory.
    fn path(&self, name: &str) -> PathBuf {
        match &self.get(name).value {
            SettingValue::Text(text) => PathBuf::from(text),
            SettingValue::Unset
            | SettingValue::Number(_)
            | SettingValue::Flag(_)
            | SettingValue::List(_) => PathBuf::new(),
        }
    }

    /// The directories that identify a daemon.
    pub(crate) fn dirs(&self) -> Dirs {
        Dirs {
            state: self.path("state_dir"),
            runtime: self.path("runtime_dir"),
        }
    }
}

/// Whether a path has the same meaning for every process that reads it: the working directory of a
/// daemon differs.
fn is_valid_for(key: &SettingKey, value: &SettingValue, source: &SettingSource) -> bool {
    match (key.kind, value, source) {
        (ValueKind::FilePath, SettingValue::Text(path), SettingSource::Variable(_)) => {
            Path::new(path).is_absolute()
        }
        _ => true,
    }
}

/// Resolves a path against its file, or against the working directory.
fn resolve_path(path: &str, source: &SettingSource) -> String {
    let path = Path::new(path);
    let joined = match source {
        SettingSource::File(file, _) => file.parent().map(|directory| directory.join(path)),
        SettingSource::Default | SettingSource::Variable(_) | SettingSource::Flag(_) => None,
    };
    let resolved = paths::resolve_directory(joined.as_deref().unwrap_or(path));
    resolved.to_string_lossy().into_owned()
}

fn unknown_key(name: &str, source: &SettingSource) -> CommandError {
    let error = CommandError::new(
        ErrorCode::Environment,
        format!("{name} ({source}) is no configuration key"),
    );
    match SettingKey::suggest(name) {
        Some(suggestion) => error.with_hint(format!("did you mean {suggestion}?")),
        None => error.with_hint("`ostler config explain` lists the keys"),
    }
}
