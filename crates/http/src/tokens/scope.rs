//! Scopes of tokens: what each lets its holder do.

use std::fmt;
use std::path::{Component, MAIN_SEPARATOR, Path, PathBuf};
use std::str::FromStr;

use ostler_interface::project_access::{PROJECT_WRITE, ProjectAccess};
use ostler_model::{ProjectSet, visible};
use serde::{Deserialize, Serialize};
use thiserror::Error;

const SESSIONS_ALL: &str = "sessions:all";
const DAEMON_STOP: &str = "daemon:stop";
const PROJECT_READ: &str = "project:read";
/// Stands between a scope and the project that it is for.
const OF_PROJECT: char = '=';
/// The longest name of a project, in bytes, as that of a context's.
const PROJECT_BYTES: usize = 1_024;
/// The most projects that the scopes of one token name: each is looked up apart in the history.
const PROJECTS: usize = 16;

/// What a token lets its holder do.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum TokenScope {
    /// Access to all sessions of its principal.
    SessionsAll,
    /// Permission to shut the daemon down.
    DaemonStop,
    /// Reading in projects; without a scope that writes, nothing else.
    ProjectRead,
    /// Reading and changing in projects. A token with no scope of projects has this one.
    ProjectWrite,
    /// Reading in one project.
    ReadProject(ProjectName),
    /// Reading and changing in one project.
    WriteProject(ProjectName),
}

/// The name of a project in a scope: 1 to 1,024 bytes without control characters. A path is without
/// `.` components and slashes that name nothing.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProjectName(String);

/// The scopes that name no project.
pub const SCOPES: [TokenScope; 4] = [
    TokenScope::SessionsAll,
    TokenScope::DaemonStop,
    TokenScope::ProjectRead,
    TokenScope::ProjectWrite,
];

/// The forms of all scopes, with what each allows in a few words for people.
pub const SCOPE_FORMS: [(&str, &str); 6] = [
    (SESSIONS_ALL, "see all sessions of its holder"),
    (DAEMON_STOP, "shut the daemon down"),
    (
        PROJECT_READ,
        "look at executions, output and services, and start templates that only read; \
         nothing else, unless project:write is given, too",
    ),
    (
        PROJECT_WRITE,
        "start, stop and change; the default without a scope of projects",
    ),
    (
        "project:read=PROJECT",
        "look, in this project only; several can be given",
    ),
    (
        "project:write=PROJECT",
        "look, start, stop and change, in this project only; several can be given",
    ),
];

/// Why a text is no scope, or scopes do not go together.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ScopeError {
    /// There is no such scope.
    #[error("'{0}' is no scope; allowed: {forms}", forms = forms())]
    Unknown(String),
    /// The name of the project is not one.
    #[error(
        "'{0}' names no project; allowed after '=': 1 to {PROJECT_BYTES} bytes without control \
         characters"
    )]
    Project(String),
    /// The name of the project is a path of which nothing says where it begins.
    #[error(
        "project '{0}' is a relative path, or has '..' in it; allowed: an absolute path, or a name \
         without '/'"
    )]
    RelativePath(String),
    /// Too many projects.
    #[error("the scopes name {0} projects; allowed: at most {PROJECTS}")]
    TooMany(usize),
}

fn forms() -> String {
    SCOPE_FORMS.map(|(form, _)| form).join(", ")
}

impl ProjectName {
    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether it is a plain name, or an absolute path that says by itself which directory it is.
    fn is_definite(&self) -> bool {
        let path = Path::new(&self.0);
        let mut components = path.components();
        if path.is_absolute() {
            return components.all(|it| it != Component::ParentDir);
        }
        let is_plain = !self.0.contains(MAIN_SEPARATOR);
        is_plain && components.all(|it| matches!(it, Component::Normal(_)))
    }
}

impl ProjectName {
    /// The directory that a path leads to by symbolic links; none where it is that directory, where
    /// there is none, and for a name that is no path. Reads links.
    fn linked_directory(&self) -> Option<Self> {
        let path = Path::new(&self.0);
        if !path.is_absolute() {
            return None;
        }
        let real = path.canonicalize().ok()?;
        let real: Self = real.to_str()?.parse().ok()?;
        (real != *self).then_some(real)
    }
}

/// An absolute path without what names nothing in it: `.`, and slashes beside others or at its end.
/// Links are not resolved. Another name is kept.
fn normalized(name: &str) -> String {
    let path = Path::new(name);
    if !path.is_absolute() {
        return name.to_owned();
    }
    let path: PathBuf = path.components().collect();
    path.display().to_string()
}

impl FromStr for ProjectName {
    type Err = ScopeError;

    fn from_str(name: &str) -> Result<Self, ScopeError> {
        let fits = (1..=PROJECT_BYTES).contains(&name.len());
        if fits && !name.chars().any(char::is_control) {
            return Ok(Self(normalized(name)));
        }
        Err(ScopeError::Project(quoted(name)))
    }
}

impl FromStr for TokenScope {
    type Err = ScopeError;

    fn from_str(text: &str) -> Result<Self, ScopeError> {
        match text.split_once(OF_PROJECT) {
            Some((PROJECT_READ, project)) => project.parse().map(Self::ReadProject),
            Some((PROJECT_WRITE, project)) => project.parse().map(Self::WriteProject),
            None | Some(_) => {
                let mut scopes = SCOPES.into_iter();
                let scope = scopes.find(|scope| scope.to_string() == text);
                scope.ok_or_else(|| ScopeError::Unknown(quoted(text)))
            }
        }
    }
}

/// A wrong text in a message.
fn quoted(text: &str) -> String {
    const QUOTED_CHARS: usize = 64;
    let short: String = text.chars().take(QUOTED_CHARS).collect();
    visible(&short).into_owned()
}

impl fmt::Display for TokenScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SessionsAll => f.write_str(SESSIONS_ALL),
            Self::DaemonStop => f.write_str(DAEMON_STOP),
            Self::ProjectRead => f.write_str(PROJECT_READ),
            Self::ProjectWrite => f.write_str(PROJECT_WRITE),
            Self::ReadProject(name) => write!(f, "{PROJECT_READ}{OF_PROJECT}{}", name.0),
            Self::WriteProject(name) => write!(f, "{PROJECT_WRITE}{OF_PROJECT}{}", name.0),
        }
    }
}

impl TryFrom<String> for TokenScope {
    type Error = ScopeError;

    fn try_from(text: String) -> Result<Self, ScopeError> {
        text.parse()
    }
}

impl From<TokenScope> for String {
    fn from(scope: TokenScope) -> Self {
        scope.to_string()
    }
}

impl TokenScope {
    /// The project that it is for, where it names one.
    #[must_use]
    pub const fn project(&self) -> Option<&ProjectName> {
        match self {
            Self::ReadProject(name) | Self::WriteProject(name) => Some(name),
            Self::SessionsAll | Self::DaemonStop | Self::ProjectRead | Self::ProjectWrite => None,
        }
    }
}

/// The scopes of a new token: for a project that is named by a symbolic link also those of the
/// directory that the link leads to, under whose name executions are recorded that run there.
pub(super) fn with_linked_directories(mut scopes: Vec<TokenScope>) -> Vec<TokenScope> {
    let linked = scopes.iter().filter_map(|scope| match scope {
        TokenScope::ReadProject(name) => name.linked_directory().map(TokenScope::ReadProject),
        TokenScope::WriteProject(name) => name.linked_directory().map(TokenScope::WriteProject),
        TokenScope::SessionsAll
        | TokenScope::DaemonStop
        | TokenScope::ProjectRead
        | TokenScope::ProjectWrite => None,
    });
    let linked: Vec<TokenScope> = linked.collect();
    for scope in linked {
        if !scopes.contains(&scope) {
            scopes.push(scope);
        }
    }
    scopes
}

/// Checks the scopes of a new token.
///
/// # Errors
/// When they name too many projects, or one as a relative path.
pub fn check_scopes(scopes: &[TokenScope]) -> Result<(), ScopeError> {
    let projects = scopes.iter().filter_map(TokenScope::project);
    // Not where a scope is read: one that exists keeps letting its holder in.
    if let Some(name) = projects.clone().find(|name| !name.is_definite()) {
        return Err(ScopeError::RelativePath(quoted(name.as_str())));
    }
    let count = projects.collect::<std::collections::BTreeSet<_>>().len();
    if count > PROJECTS {
        return Err(ScopeError::TooMany(count));
    }
    Ok(())
}

/// What scopes permit in projects: those that name none hold for all, and without one of either kind
/// everything is permitted.
pub(super) fn project_access(scopes: &[TokenScope]) -> ProjectAccess {
    let (mut read, mut write) = (ProjectSet::none(), ProjectSet::none());
    for scope in scopes {
        let one = |name: &ProjectName| ProjectSet::named([name.as_str()]);
        match scope {
            TokenScope::ProjectRead => read = ProjectSet::All,
            TokenScope::ProjectWrite => write = ProjectSet::All,
            TokenScope::ReadProject(name) => read = read.union(&one(name)),
            TokenScope::WriteProject(name) => write = write.union(&one(name)),
            TokenScope::SessionsAll | TokenScope::DaemonStop => {}
        }
    }
    if read.is_empty() && write.is_empty() {
        return ProjectAccess::default();
    }
    ProjectAccess::new(&read, write)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn access(scopes: &[&str]) -> ProjectAccess {
        let scopes: Vec<TokenScope> = scopes.iter().map(|it| it.parse().unwrap()).collect();
        project_access(&scopes)
    }

    #[test]
    fn a_token_without_a_scope_of_projects_may_write() {
        let write = ProjectAccess::default();
        let read = ProjectAccess::read_only();
        for (scopes, expected) in [
            (&[][..], &write),
            (&["sessions:all"], &write),
            (&["project:write"], &write),
            (&["project:read", "project:write"], &write),
            (&["project:read"], &read),
            (&["sessions:all", "project:read"], &read),
            (&["project:read=a", "project:write"], &write),
        ] {
            assert_eq!(access(scopes), *expected, "{scopes:?}");
        }
    }

    #[test]
    fn scopes_of_projects_hold_for_these() {
        let mixed = access(&["project:read=a", "project:write=/b=c", "daemon:stop"]);
        let (read, write) = (ProjectSet::named(["a"]), ProjectSet::named(["/b=c"]));
        assert_eq!(mixed, ProjectAccess::new(&read, write.clone()));
        let reads_all = access(&["project:read", "project:write=/b=c"]);
        assert_eq!(reads_all, ProjectAccess::new(&ProjectSet::All, write));
        let reader = access(&["project:read=a"]);
        assert!(!reader.may_write(Some("a")) && reader.check_named("a").is_ok());
    }

    #[test]
    fn every_scope_is_read_as_it_is_written() {
        for text in [
            "sessions:all",
            "daemon:stop",
            "project:read",
            "project:write",
            "project:read=/srv/a b,c",
            "project:write=ä=",
        ] {
            let scope: TokenScope = text.parse().unwrap();
            assert_eq!(scope.to_string(), text);
            let json = serde_json::to_string(&scope).unwrap();
            assert_eq!(serde_json::from_str::<TokenScope>(&json).unwrap(), scope);
        }
        let long = format!("project:read={}", "x".repeat(PROJECT_BYTES + 1));
        for (text, part) in [
            ("project:all", "project:read=PROJECT"),
            ("", "sessions:all"),
            ("sessions:all=a", "no scope"),
            ("project:write=", "1 to 1024 bytes"),
            ("project:read=a\nb", "control"),
            (long.as_str(), "1 to 1024 bytes"),
        ] {
            let error = text.parse::<TokenScope>().unwrap_err().to_string();
            assert!(error.contains(part) && error.len() < 300, "{text}: {error}");
        }
    }

    #[test]
    fn a_path_is_normalized_and_a_relative_one_is_in_no_new_token() {
        for (given, expected) in [
            ("project:write=/w/a/", "project:write=/w/a"),
            ("project:read=//w/./a//", "project:read=/w/a"),
            ("project:read=/", "project:read=/"),
            ("project:write=name", "project:write=name"),
        ] {
            let scope: TokenScope = given.parse().unwrap();
            assert_eq!(scope.to_string(), expected);
            assert_eq!(check_scopes(&[scope]), Ok(()));
        }
        for relative in [".", "..", "./a", "a/b", "a/", "/w/../a"] {
            let scope: TokenScope = format!("project:read={relative}").parse().unwrap();
            let error = check_scopes(&[scope]).unwrap_err().to_string();
            assert!(error.contains("an absolute path"), "{relative}: {error}");
        }
    }

    #[test]
    fn a_token_names_so_many_projects_and_no_more() {
        let scopes = |count: usize| -> Vec<TokenScope> {
            let both = (0..count)
                .flat_map(|n| [format!("project:read={n}"), format!("project:write={n}")]);
            both.map(|text| text.parse().unwrap()).collect()
        };
        assert_eq!(check_scopes(&scopes(PROJECTS)), Ok(()));
        let error = check_scopes(&scopes(PROJECTS + 1)).unwrap_err();
        assert_eq!(error, ScopeError::TooMany(PROJECTS + 1));
    }
}
