//! The result of an import, and its surroundings (directory, variables).

/// Bytes of the largest file that is read.
pub const FILE_BYTES: usize = 256 * 1024;
/// Services of one file.
pub(super) const SERVICES: usize = 256;

/// What a file came to.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ImportResult {
    /// In the order of the file.
    pub services: Vec<ImportedService>,
    /// What was not taken over.
    pub omissions: Vec<Omission>,
}

/// A definition as it is written to an `ostler.toml`.
#[derive(Debug, Clone, PartialEq)]
pub struct ImportedService {
    /// As it is called from now on.
    pub name: String,
    /// As it was called.
    pub original: String,
    /// Its keys and values, in the order they are written.
    pub keys: Vec<(&'static str, toml::Value)>,
}

impl ImportedService {
    pub(super) fn set(&mut self, key: &'static str, value: impl Into<toml::Value>) {
        self.keys.push((key, value.into()));
    }
}

/// Something that was not taken over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Omission {
    /// Where it stands, from 1.
    pub line: usize,
    /// What: `web.networks`.
    pub item: String,
    /// Why not, and what to do about it.
    pub reason: String,
}

/// A file that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{line}:{column}: {problem}")]
pub struct ImportError {
    /// From 1.
    pub line: usize,
    /// From 1.
    pub column: usize,
    /// In words.
    pub problem: String,
}

/// What surrounds a file.
#[derive(Clone, Copy)]
pub struct ImportContext<'a> {
    /// Its directory as the `ostler.toml` names it; empty where both stand in one.
    pub dir: &'a str,
    /// The text of another file, named from its directory.
    pub read: &'a dyn Fn(&str) -> Option<String>,
}

impl std::fmt::Debug for ImportContext<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ImportContext")
            .field("dir", &self.dir)
            .finish_non_exhaustive()
    }
}

impl ImportContext<'_> {
    /// A directory named from that of the file, as the `ostler.toml` names it; none for its own.
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

pub(super) fn check_size(text: &str) -> Result<(), ImportError> {
    if text.len() <= FILE_BYTES {
        return Ok(());
    }
    Err(ImportError {
        line: 1,
        column: 1,
        problem: format!("the file is longer than {FILE_BYTES} bytes"),
    })
}
