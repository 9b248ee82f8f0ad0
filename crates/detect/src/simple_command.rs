//! One simple command during normalisation.

use std::path::{Component, Path, PathBuf};

use super::lex::ShellWord;

/// A simple command.
#[derive(Debug, Clone)]
pub(super) struct SimpleCommand {
    /// Its program and arguments.
    pub(super) words: Vec<String>,
    /// Variables set on the way to it, later ones winning.
    pub(super) env: Vec<(String, String)>,
    /// Where it runs; none where a directory could not be told.
    pub(super) cwd: Option<PathBuf>,
    /// What has to stand before arguments appended to the command as given, so that they reach
    /// this one; none where they cannot.
    pub(super) argument_prefix: Option<Vec<String>>,
}

impl SimpleCommand {
    /// Its program; empty where there is none.
    pub(super) fn program(&self) -> &str {
        self.words.first().map_or("", String::as_str)
    }

    pub(super) fn args(&self) -> &[String] {
        self.words.get(1..).unwrap_or_default()
    }

    /// The same with other words.
    pub(super) fn with_words(&self, words: Vec<String>) -> Self {
        Self {
            words,
            ..self.clone()
        }
    }

    /// Goes to a directory.
    pub(super) fn change_dir(&mut self, directory: &str) {
        self.cwd = resolve_path(self.cwd.as_deref(), directory);
    }

    /// A file of the directory it runs in.
    pub(super) fn file(&self, path: &str) -> Option<PathBuf> {
        resolve_path(self.cwd.as_deref(), path)
    }

    /// A variable set on the way.
    pub(super) fn variable(&self, name: &str) -> Option<&str> {
        let last = self.env.iter().rev().find(|(given, _)| given == name);
        last.map(|(_, value)| value.as_str())
    }
}

/// A path from a directory, with `.` and `..` taken out; none where it cannot be told.
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

/// `NAME=value`, whose name was not quoted.
pub(super) fn assignment(word: &ShellWord) -> Option<(String, String)> {
    let (name, value) = name_and_value(&word.text)?;
    let is_unquoted = word.quoted_at.is_none_or(|at| at > name.len());
    is_unquoted.then(|| (name.to_owned(), value.to_owned()))
}

pub(super) fn name_and_value(word: &str) -> Option<(&str, &str)> {
    let (name, value) = word.split_once('=')?;
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let starts_well = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    (starts_well && name.chars().all(is_name)).then_some((name, value))
}
