//! Files that development tools execute or obey without an explicit request, found by their path
//! in a workspace ("autorun" files): one closed list, and the report of what a command made or
//! changed of it.
//!
//! Sources: gitrepository-layout(5), git-config(1), githooks(5), gitmodules(5), git-worktree(1),
//! and the manuals of the readers named in each line. Not listed: what runs only on request
//! (`Makefile`, `package.json`, a test), and what only chooses among programs that the user's own
//! configuration names (`.gitattributes`).

mod rules;

use serde::{Deserialize, Serialize};

use rules::LAST_COMPONENTS;
pub use rules::RULES;

use crate::byte_string::ByteString;
use crate::file_kind::FileKind;

/// The most findings that one report names.
pub const AUTORUN_MAX: usize = 20;

/// One line of the list: a path pattern and the tool that reads it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AutorunRule {
    /// Path components in a row, matched at any depth; everything below them belongs to the line.
    /// A `*` at one end of a component matches any text; a leading `/` anchors the pattern at the
    /// workspace root.
    pub path: &'static str,
    /// The tool that reads the file.
    pub reader: &'static str,
    /// What the tool does with it, for people.
    pub why: &'static str,
    /// What isolation level high does about it.
    pub guard: AutorunGuard,
    /// Which change of the file counts.
    pub test: AutorunTest,
}

/// What isolation level high does about a line. A change is reported in both cases: a protected
/// path too may have been created or written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AutorunGuard {
    /// The path in the workspace is read-only.
    Protected,
    /// The change is reported to the caller, and a commit of the overlay refuses it unless it is
    /// explicitly allowed.
    Reported,
}

/// Which change of a file counts as a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AutorunTest {
    /// The file exists.
    Presence,
    /// A git configuration key that is not known to be harmless.
    GitConfig,
    /// A git link (`.git` file) that leads out of the workspace, or to nothing.
    GitLink,
    /// A common directory other than that of the worktree's repository.
    GitCommon,
    /// A hook, samples (`*.sample`) excepted.
    GitHook,
    /// A step of a rebase todo list that runs a command.
    GitTodo,
}

/// One file that was made or changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AutorunFinding {
    /// The path relative to the workspace.
    pub path: ByteString,
    /// The tool that reads it.
    pub reader: String,
    /// What the tool does with it.
    pub why: String,
}

/// What a command made or changed that tools execute unasked afterwards. It is sent to the daemon
/// in a serialization without field names, so no field may be skipped.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct AutorunReport {
    /// The findings: at most [`AUTORUN_MAX`], sorted by path.
    #[serde(default)]
    pub found: Vec<AutorunFinding>,
    /// The number of further findings.
    #[serde(default)]
    pub more: u64,
    /// Why the search was incomplete, where it was.
    #[serde(default)]
    pub incomplete: Option<String>,
}

impl AutorunReport {
    /// Whether there is nothing to report.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.found.is_empty() && self.more == 0 && self.incomplete.is_none()
    }

    /// Whether something was found.
    #[must_use]
    pub const fn has_found(&self) -> bool {
        !self.found.is_empty() || self.more > 0
    }

    /// Adds one finding, unless its path is already in the report.
    pub fn add(&mut self, new: AutorunFinding) {
        match self.found.binary_search_by(|it| it.path.cmp(&new.path)) {
            Ok(_) => {}
            Err(_) if self.found.len() >= AUTORUN_MAX => self.more += 1,
            Err(at) => self.found.insert(at, new),
        }
    }

    /// Adds the findings of another attempt.
    pub fn merge(&mut self, other: &Self) {
        for one in &other.found {
            self.add(one.clone());
        }
        self.more += other.more;
        if self.incomplete.is_none() {
            self.incomplete.clone_from(&other.incomplete);
        }
    }
}

/// The paths that isolation level high protects in a workspace.
pub fn protected_paths() -> impl Iterator<Item = &'static str> {
    let lines = RULES
        .iter()
        .filter(|it| it.guard == AutorunGuard::Protected);
    lines.map(|it| it.path.trim_start_matches('/'))
}

/// The line that a relative path belongs to. A directory itself belongs to none; the files in
/// it may. A symbolic link in the place of a listed directory belongs to its line.
#[must_use]
pub fn rule_for(path: &[u8], kind: FileKind) -> Option<&'static AutorunRule> {
    if kind == FileKind::Directory {
        return None;
    }
    RULES.iter().find(|line| line.covers(path, kind))
}

impl AutorunRule {
    fn covers(&self, path: &[u8], kind: FileKind) -> bool {
        let (rule_path, rooted) = match self.path.strip_prefix('/') {
            Some(wanted) => (wanted, true),
            None => (self.path, false),
        };
        let mut rest = Some(path);
        while let Some(from) = rest {
            if self.matches_prefix(rule_path.as_bytes(), from, kind) {
                return true;
            }
            rest = from
                .iter()
                .position(|byte| *byte == b'/')
                .map(|at| &from[at + 1..]);
            if rooted {
                break;
            }
        }
        false
    }

    /// Whether a path begins with these components; the first of them may be a symbolic link.
    fn matches_prefix(&self, rule_path: &[u8], path: &[u8], kind: FileKind) -> bool {
        let mut names = path.split(|byte| *byte == b'/');
        for pattern in rule_path.split(|byte| *byte == b'/') {
            match names.next() {
                Some(name) if is_named(pattern, name) => {}
                None if kind == FileKind::Symlink => return true,
                Some(_) | None => return false,
            }
        }
        // Paths below a `.git` have lines of their own.
        self.test != AutorunTest::GitLink || names.next().is_none()
    }
}

/// Whether a file of this name can belong to a line that no directory above it belongs to: a
/// cheap pre-filter that rejects most names.
#[must_use]
pub fn may_match_last_component(name: &[u8]) -> bool {
    let Some(first) = name.first().map(u8::to_ascii_lowercase) else {
        return false;
    };
    let begins = |last: &[u8]| last[0] == b'*' || last[0].to_ascii_lowercase() == first;
    LAST_COMPONENTS
        .iter()
        .any(|last| begins(last) && is_named(last, name))
}

/// Compares names without regard to ASCII case, as case-insensitive file systems do.
fn is_named(pattern: &[u8], name: &[u8]) -> bool {
    match pattern {
        [b'*', end @ ..] => {
            let at = name.len().checked_sub(end.len());
            at.is_some_and(|at| name[at..].eq_ignore_ascii_case(end))
        }
        [start @ .., b'*'] => {
            let begin = name.get(..start.len());
            begin.is_some_and(|it| it.eq_ignore_ascii_case(start))
        }
        whole => name.eq_ignore_ascii_case(whole),
    }
}

#[cfg(test)]
mod tests;
