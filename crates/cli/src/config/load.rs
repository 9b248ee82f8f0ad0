//! The layers: default, file, environment, flag.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ostler_engine::detection::Table;
use ostler_model::ErrorCode;
use ostler_policy::PolicySet;

use super::bindings::{self, Bindings};
use super::env::Environment;
use super::file::{self, Entry};
use super::keys::{KEYS, Key};
use super::value::{Kind, Raw, Value};
use crate::error::CommandError;
use crate::paths::{self, Places};

/// Where a value came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Source {
    /// Nobody said otherwise.
    Default,
    /// A line of a file.
    File(PathBuf, usize),
    /// A variable.
    Variable(&'static str),
    /// A flag.
    Flag(&'static str),
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File(path, line) => write!(f, "{}:{line}", path.display()),
            Self::Variable(name) => write!(f, "environment {name}"),
            Self::Flag(name) => write!(f, "flag {name}"),
        }
    }
}

/// A key, its value, and where it came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Setting {
    /// Which.
    pub(crate) key: &'static Key,
    /// What.
    pub(crate) value: Value,
    /// From where.
    pub(crate) source: Source,
}

/// What the command line says about configuration.
#[derive(Debug, Clone, Default)]
pub(crate) struct Flags {
    /// `--config`.
    pub(crate) file: Option<PathBuf>,
    /// `--state-dir`.
    pub(crate) state_dir: Option<PathBuf>,
    /// `--runtime-dir`.
    pub(crate) runtime_dir: Option<PathBuf>,
    /// `--set KEY=VALUE`.
    pub(crate) set: Vec<String>,
    /// What the flags of one verb say about keys.
    pub(crate) of_verb: Vec<FlagValue>,
}

/// A flag that is another name for a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FlagValue {
    /// The key.
    pub(crate) key: &'static str,
    /// The flag.
    pub(crate) flag: &'static str,
    /// What was given.
    pub(crate) value: String,
}

impl Flags {
    /// The configuration file somebody named, by flag or by environment. It may be relative
    /// to where we are, and a daemon is elsewhere.
    pub(crate) fn named_file(&self, env: &Environment) -> Option<PathBuf> {
        let named = self.file.clone();
        let named = named.or_else(|| env.get("OSTLER_CONFIG").map(PathBuf::from))?;
        Some(std::path::absolute(&named).unwrap_or(named))
    }
}

/// Everything that is set.
#[derive(Debug, Clone)]
pub(crate) struct Config {
    settings: Vec<Setting>,
    files: Vec<PathBuf>,
    /// The command policy; none lets every command run.
    pub(super) policy: Option<Arc<PolicySet>>,
    /// Which commands are services; none takes what is shipped.
    pub(super) table: Option<Table>,
    /// Who is given which secret.
    pub(super) bindings: Bindings,
}

impl Config {
    /// Reads every layer.
    ///
    /// # Errors
    /// The first value that cannot be: its key, what it is, where it stands, what is allowed.
    pub(crate) fn load(flags: &Flags, env: &Environment) -> Result<Self, CommandError> {
        let (config, problems) = Self::load_what_can_be(flags, env);
        match problems.into_iter().next() {
            Some(problem) => Err(problem),
            None => Ok(config),
        }
    }

    /// Reads every layer; what cannot be is left out, and told beside.
    pub(crate) fn load_what_can_be(flags: &Flags, env: &Environment) -> (Self, Vec<CommandError>) {
        let mut config = Self::defaults();
        let mut problems = config.read_files(flags, env);
        problems.extend(config.read_environment(env));
        problems.extend(config.read_flags(flags));
        config.fill_directories(env);
        (config, problems)
    }

    /// The same with the command policy, for whoever runs commands: half a policy is none.
    ///
    /// # Errors
    /// When a file of rules cannot be used.
    pub(crate) fn with_policy(mut self, env: &Environment) -> Result<Self, CommandError> {
        self.policy = super::policy::load(&self, env)?.map(Arc::new);
        Ok(self)
    }

    /// The same with the table of services the user extended.
    ///
    /// # Errors
    /// When the file cannot be used.
    pub(crate) fn with_table(mut self) -> Result<Self, CommandError> {
        self.table = super::services::table(&self)?;
        Ok(self)
    }

    fn defaults() -> Self {
        let setting = |key: &'static Key| Setting {
            key,
            value: key
                .default
                .and_then(|text| key.kind.accept(&Raw::Text(text.to_owned())))
                .unwrap_or(Value::Unset),
            source: Source::Default,
        };
        Self {
            settings: KEYS.iter().map(setting).collect(),
            files: Vec::new(),
            policy: None,
            table: None,
            bindings: Bindings::new(),
        }
    }

    fn read_files(&mut self, flags: &Flags, env: &Environment) -> Vec<CommandError> {
        let mut problems = Vec::new();
        let named = flags.named_file(env);
        let required = named.is_some();
        let files = match named {
            Some(path) => vec![path],
            None => paths::machine_config()
                .into_iter()
                .chain([paths::default_config(env)])
                .collect(),
        };
        for path in files {
            match file::read(&path, required) {
                Ok(entries) => problems.extend(
                    entries
                        .into_iter()
                        .filter_map(|entry| self.take_entry(&path, entry).err()),
                ),
                Err(problem) => problems.push(problem),
            }
            self.files.push(path);
        }
        problems
    }

    fn take_entry(&mut self, path: &Path, entry: Entry) -> Result<(), CommandError> {
        let source = Source::File(path.to_owned(), entry.line);
        if bindings::take(&mut self.bindings, &entry.name, (&entry.value, &source))? {
            return Ok(());
        }
        let key = Key::named(&entry.name).ok_or_else(|| unknown_key(&entry.name, &source))?;
        self.take(key, &entry.value, source)
    }

    fn read_environment(&mut self, env: &Environment) -> Vec<CommandError> {
        let mut problems = Vec::new();
        for key in &KEYS {
            // The weakest first, so that the strongest stands.
            for &name in key.variables.iter().rev() {
                let Some(value) = env.exact(name) else {
                    continue;
                };
                // An empty variable is an unset one, except where that would open a wall.
                if value.is_empty() && key.name != "allowed_commands" {
                    continue;
                }
                let raw = value.to_str().map_or_else(
                    || Raw::Unfit(format!("\"{}\"", value.display())),
                    |text| Raw::Text(text.to_owned()),
                );
                problems.extend(self.take(key, &raw, Source::Variable(name)).err());
            }
        }
        problems
    }

    fn read_flags(&mut self, flags: &Flags) -> Vec<CommandError> {
        let mut problems = Vec::new();
        for given in &flags.set {
            problems.extend(self.take_assignment(given).err());
        }
        for given in &flags.of_verb {
            let key = Key::named(given.key).expect("flags name keys of the table");
            let raw = Raw::Text(given.value.clone());
            problems.extend(self.take(key, &raw, Source::Flag(given.flag)).err());
        }
        let directories = [
            ("state_dir", "--state-dir", &flags.state_dir),
            ("runtime_dir", "--runtime-dir", &flags.runtime_dir),
        ];
        for (name, flag, path) in directories {
            problems.extend(self.take_path(name, flag, path.as_deref()).err());
        }
        problems
    }

    /// `--set KEY=VALUE`.
    fn take_assignment(&mut self, given: &str) -> Result<(), CommandError> {
        let (name, value) = given.split_once('=').ok_or_else(|| {
            CommandError::value(format!("--set {given}: there is no '='"))
                .with_hint("write --set KEY=VALUE; `ostler config explain` lists the keys")
        })?;
        let source = Source::Flag("--set");
        let raw = Raw::Text(value.to_owned());
        if bindings::take(&mut self.bindings, name, (&raw, &source))? {
            return Ok(());
        }
        let key = Key::named(name).ok_or_else(|| unknown_key(name, &source))?;
        self.take(key, &raw, source)
    }

    /// A directory given as a flag may be relative to where we are.
    fn take_path(
        &mut self,
        name: &str,
        flag: &'static str,
        path: Option<&Path>,
    ) -> Result<(), CommandError> {
        let (Some(path), Some(key)) = (path, Key::named(name)) else {
            return Ok(());
        };
        let absolute = std::path::absolute(path)
            .map_err(|error| CommandError::value(format!("{flag} {}: {error}", path.display())))?;
        let raw = Raw::Text(absolute.to_string_lossy().into_owned());
        self.take(key, &raw, Source::Flag(flag))
    }

    fn take(&mut self, key: &'static Key, raw: &Raw, source: Source) -> Result<(), CommandError> {
        let accepted = key.kind.accept(raw);
        let mut value = accepted
            .filter(|it| stands(key, it, &source))
            .ok_or_else(|| {
                CommandError::new(
                    ErrorCode::Environment,
                    format!("{} = {raw} ({source}) is not allowed", key.name),
                )
                .with_hint(format!("allowed: {}", key.kind.allowed()))
            })?;
        if let (Kind::File, Value::Text(path)) = (key.kind, &mut value) {
            *path = from_where_it_stands(path, &source);
        }
        let place = self.settings.iter_mut().find(|setting| setting.key == key);
        let setting = place.expect("every key of the table has its setting");
        setting.value = value;
        setting.source = source;
        Ok(())
    }

    fn fill_directories(&mut self, env: &Environment) {
        if self.get("state_dir").value == Value::Unset {
            self.fill("state_dir", &paths::default_state(env));
        }
        if self.get("runtime_dir").value == Value::Unset {
            let runtime = paths::default_runtime(env, &self.path("state_dir"));
            self.fill("runtime_dir", &runtime);
        }
    }

    fn fill(&mut self, name: &str, path: &Path) {
        let text = path.to_string_lossy().into_owned();
        let place = self.settings.iter_mut().find(|s| s.key.name == name);
        place
            .into_iter()
            .for_each(|s| s.value = Value::Text(text.clone()));
    }

    /// The same configuration for another state directory.
    pub(crate) fn with_state_dir(mut self, directory: &Path) -> Self {
        self.fill("state_dir", directory);
        self
    }

    /// Every key, in the order of the table.
    pub(crate) fn settings(&self) -> &[Setting] {
        &self.settings
    }

    /// Who is given which secret.
    pub(crate) const fn bindings(&self) -> &Bindings {
        &self.bindings
    }

    /// The files that were looked for.
    pub(crate) fn files(&self) -> &[PathBuf] {
        &self.files
    }

    /// The setting of a key of the table.
    pub(crate) fn get(&self, name: &str) -> &Setting {
        self.settings
            .iter()
            .find(|setting| setting.key.name == name)
            .expect("only keys of the table are asked for")
    }

    /// The value of a directory's key.
    fn path(&self, name: &str) -> PathBuf {
        match &self.get(name).value {
            Value::Text(text) => PathBuf::from(text),
            Value::Unset | Value::Number(_) | Value::Flag(_) | Value::List(_) => PathBuf::new(),
        }
    }

    /// The directories a daemon is known by.
    pub(crate) fn places(&self) -> Places {
        Places {
            state: self.path("state_dir"),
            runtime: self.path("runtime_dir"),
        }
    }
}

/// Whether a path means the same to everybody who reads it: a daemon that inherits a variable
/// is elsewhere.
fn stands(key: &Key, value: &Value, source: &Source) -> bool {
    match (key.kind, value, source) {
        (Kind::File, Value::Text(path), Source::Variable(_)) => Path::new(path).is_absolute(),
        _ => true,
    }
}

/// A path as seen from the file it stands in, or from where we are.
fn from_where_it_stands(path: &str, source: &Source) -> String {
    let path = Path::new(path);
    let absolute = match source {
        Source::File(file, _) => file.parent().map(|directory| directory.join(path)),
        Source::Default | Source::Variable(_) | Source::Flag(_) => std::path::absolute(path).ok(),
    };
    let absolute = absolute.unwrap_or_else(|| path.to_owned());
    absolute.to_string_lossy().into_owned()
}

fn unknown_key(name: &str, source: &Source) -> CommandError {
    let error = CommandError::new(
        ErrorCode::Environment,
        format!("{name} ({source}) is no configuration key"),
    );
    match Key::like(name) {
        Some(known) => error.with_hint(format!("did you mean {known}?")),
        None => error.with_hint("`ostler config explain` lists the keys"),
    }
}
