//! The result of an import, and its surroundings (directory, variables).

use std::io;

/// The size of the largest file, in bytes.
pub const FILE_BYTES: usize = 256 * 1024;
/// The most services in one file.
pub(super) const SERVICES: usize = 256;

/// The result of an import.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ImportResult {
    /// The services, in the order of the file.
    pub services: Vec<ImportedService>,
    /// The parts that were not imported.
    pub omissions: Vec<Omission>,
}

/// A service definition, as written to an `ostler.toml`.
#[derive(Debug, Clone, PartialEq)]
pub struct ImportedService {
    /// Its name in the `ostler.toml`.
    pub name: String,
    /// Its name in the original file.
    pub original: String,
    /// Its keys and values, in the order in which they are written.
    pub keys: Vec<(&'static str, toml::Value)>,
}

impl ImportedService {
    pub(super) fn set(&mut self, key: &'static str, value: impl Into<toml::Value>) {
        self.keys.push((key, value.into()));
    }
}

/// A part of the file that was not imported.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Omission {
    /// The file, where it is another than the imported one.
    pub file: Option<String>,
    /// Its line, from 1.
    pub line: usize,
    /// Its path: `web.networks`.
    pub item: String,
    /// The reason, and what the user can do about it.
    pub reason: String,
}

/// A file that cannot be imported.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{line}:{column}: {problem}")]
pub struct ImportError {
    /// The line, from 1.
    pub line: usize,
    /// The column, from 1.
    pub column: usize,
    /// The message.
    pub problem: String,
}

/// The context of an imported file.
#[derive(Clone, Copy)]
pub struct ImportContext<'a> {
    /// The file's directory, relative to that of the `ostler.toml`; empty where it is the same.
    pub dir: &'a str,
    /// Reads another file by its path relative to the imported file's directory.
    pub read: &'a dyn Fn(&str) -> io::Result<String>,
    /// Whether there is a file at a path relative to the imported file's directory.
    pub exists: &'a dyn Fn(&str) -> bool,
}

impl std::fmt::Debug for ImportContext<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ImportContext")
            .field("dir", &self.dir)
            .finish_non_exhaustive()
    }
}

impl ImportContext<'_> {
    /// Converts a path relative to the imported file into one relative to the `ostler.toml`; none
    /// for the directory of the `ostler.toml` itself.
    pub(super) fn directory(&self, path: &str) -> Option<String> {
        let mut parts: Vec<&str> = match path.starts_with('/') {
            true => vec![""],
            false => self.dir.split('/').filter(|it| !it.is_empty()).collect(),
        };
        for part in path.split('/').filter(|it| !it.is_empty() && *it != ".") {
            match (part, parts.last()) {
                ("..", Some(last)) if !last.is_empty() && *last != ".." => {
                    parts.pop();
                }
                _ => parts.push(part),
            }
        }
        let joined = parts.join("/");
        match (joined.is_empty(), path.starts_with('/')) {
            (true, true) => Some("/".to_owned()),
            (true, false) => None,
            (false, _) => Some(joined),
        }
    }
}

/// The text without a byte order mark.
///
/// # Errors
/// A text that is longer than a file may be.
pub(super) fn check_text(text: &str) -> Result<&str, ImportError> {
    if text.len() <= FILE_BYTES {
        return Ok(text.trim_start_matches('\u{feff}'));
    }
    Err(ImportError {
        line: 1,
        column: 1,
        problem: format!("the file is longer than {FILE_BYTES} bytes"),
    })
}
