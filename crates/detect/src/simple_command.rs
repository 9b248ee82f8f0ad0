//! One simple command during normalisation.

use std::path::{Component, Path, PathBuf};

/// A simple command.
#[derive(Debug, Clone)]
pub(super) struct SimpleCommand {
    /// Its program and arguments.
    pub(super) words: Vec<String>,
    /// Variables set before it; the last one of a name counts.
    pub(super) env: Vec<(String, String)>,
    /// Its working directory, if known.
    pub(super) cwd: Option<PathBuf>,
    /// The words that have to precede arguments appended to the command as given, so that this
    /// command gets them; none where it cannot get any.
    pub(super) argument_prefix: Option<Vec<String>>,
}

impl SimpleCommand {
    /// Its program, or an empty text.
    pub(super) fn program(&self) -> &str {
        self.words.first().map_or("", String::as_str)
    }

    pub(super) fn args(&self) -> &[String] {
        self.words.get(1..).unwrap_or_default()
    }

    /// A copy with other words.
    pub(super) fn with_words(&self, words: Vec<String>) -> Self {
        Self {
            words,
            ..self.clone()
        }
    }

    /// Changes its working directory.
    pub(super) fn change_dir(&mut self, directory: &str) {
        self.cwd = resolve_path(self.cwd.as_deref(), directory);
    }

    /// A path relative to its working directory.
    pub(super) fn file(&self, path: &str) -> Option<PathBuf> {
        resolve_path(self.cwd.as_deref(), path)
    }

    /// The value of a variable set before it.
    pub(super) fn variable(&self, name: &str) -> Option<&str> {
        let last = self.env.iter().rev().find(|(given, _)| given == name);
        last.map(|(_, value)| value.as_str())
    }
}

/// A path relative to a directory, without `.` and `..`; none where it is unknown.
pub(super) fn resolve_path(from: Option<&Path>, path: &str) -> Option<PathBuf> {
    if path.contains(['$', '`', '\0']) || path.starts_with('~') || path == "-" {
        return None;
    }
    let joined = if path.starts_with('/') {
        PathBuf::from(path)
    } else {
        from?.join(path)
    };
    let mut clean = PathBuf::new();
    for component in joined.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => {
                clean.pop();
            }
            Component::Prefix(_) | Component::RootDir | Component::Normal(_) => {
                clean.push(component);
            }
        }
    }
    Some(clean)
}

/// Name and value of `NAME=value`.
pub(super) fn name_and_value(word: &str) -> Option<(&str, &str)> {
    let (name, value) = word.split_once('=')?;
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let starts_well = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    (starts_well && name.chars().all(is_name)).then_some((name, value))
}
