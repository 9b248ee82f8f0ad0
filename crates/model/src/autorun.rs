//! What tools of a person run or obey without being asked to, found by its path in a directory:
//! one closed list, and what was found of it after a command.
//!
//! Sources: gitrepository-layout(5), git-config(1), githooks(5), gitmodules(5), git-worktree(1),
//! and the manuals of the readers that the lines name. Not listed: what runs when somebody asks
//! for it (`Makefile`, `package.json`, a test), and what only chooses among programs that a
//! configuration of the person names (`.gitattributes`).

mod rules;

use serde::{Deserialize, Serialize};

use rules::LASTS;
pub use rules::LINES;

use crate::byte_string::ByteString;
use crate::overlay::FileKind;

/// The most that one answer names.
pub const UNASKED_MAX: usize = 20;

/// One line of the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AutorunLine {
    /// Names in a row, at any depth; what is below them belongs to it. A `*` at one end of a name
    /// stands for anything, a `/` at the beginning for the workspace itself.
    pub path: &'static str,
    /// Who reads it.
    pub reader: &'static str,
    /// What that does.
    pub why: &'static str,
    /// What level high does about it.
    pub guard: AutorunGuard,
    /// What of it makes a difference.
    pub test: AutorunTest,
}

/// What level high does about a line. Everything is told, too: where it was made anew, or
/// where it could be written all the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AutorunGuard {
    /// In the workspace itself it cannot be written.
    Protected,
    /// Whoever asked for the command is told that it was made or changed, and a commit refuses
    /// it unless told otherwise.
    Reported,
}

/// What of a file makes a difference.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AutorunTest {
    /// That it is there.
    Presence,
    /// A key of git's configuration that is not known to be harmless.
    GitConfig,
    /// A link of git's that leads out of the workspace, or to nothing.
    GitLink,
    /// Another common directory than the repository of a worktree.
    GitCommon,
    /// A hook, unless it is a sample.
    GitHook,
    /// A step of a rebase that runs a command.
    GitTodo,
}

/// One thing that was made or changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AutorunFinding {
    /// Relative to the workspace.
    pub path: ByteString,
    /// Who reads it.
    pub reader: String,
    /// What that does.
    pub why: String,
}

/// What a command made or changed that runs unasked afterwards. It goes to the daemon in a form
/// without names, so no field is left out.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct AutorunReport {
    /// At most [`UNASKED_MAX`], sorted by path.
    #[serde(default)]
    pub found: Vec<AutorunFinding>,
    /// How many more there are.
    #[serde(default)]
    pub more: u64,
    /// Why not everything was looked at, where it was not.
    #[serde(default)]
    pub incomplete: Option<String>,
}

impl AutorunReport {
    /// Whether there is nothing to tell.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.found.is_empty() && self.more == 0 && self.incomplete.is_none()
    }

    /// Whether something was found.
    #[must_use]
    pub const fn has_found(&self) -> bool {
        !self.found.is_empty() || self.more > 0
    }

    /// Adds one, unless its path is there already.
    pub fn add(&mut self, new: AutorunFinding) {
        match self.found.binary_search_by(|it| it.path.cmp(&new.path)) {
            Ok(_) => {}
            Err(_) if self.found.len() >= UNASKED_MAX => self.more += 1,
            Err(at) => self.found.insert(at, new),
        }
    }

    /// Adds what another attempt left.
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

/// The paths that level high protects in a workspace.
pub fn protected() -> impl Iterator<Item = &'static str> {
    let lines = LINES
        .iter()
        .filter(|it| it.guard == AutorunGuard::Protected);
    lines.map(|it| it.path.trim_start_matches('/'))
}

/// The line that a relative path belongs to. A directory is none: what is in it may be. A
/// symbolic link in the place of a directory of a line is one.
#[must_use]
pub fn line_of(path: &[u8], kind: FileKind) -> Option<&'static AutorunLine> {
    if kind == FileKind::Directory {
        return None;
    }
    LINES.iter().find(|line| line.covers(path, kind))
}

impl AutorunLine {
    fn covers(&self, path: &[u8], kind: FileKind) -> bool {
        let (wanted, rooted) = match self.path.strip_prefix('/') {
            Some(wanted) => (wanted, true),
            None => (self.path, false),
        };
        let mut rest = Some(path);
        while let Some(from) = rest {
            if self.meets(wanted.as_bytes(), from, kind) {
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

    /// Whether a path begins with these names; a link may stand for the first of them.
    fn meets(&self, wanted: &[u8], path: &[u8], kind: FileKind) -> bool {
        let mut names = path.split(|byte| *byte == b'/');
        for pattern in wanted.split(|byte| *byte == b'/') {
            match names.next() {
                Some(name) if is_named(pattern, name) => {}
                None if kind == FileKind::Symlink => return true,
                Some(_) | None => return false,
            }
        }
        // What is below a `.git` has lines of its own.
        self.test != AutorunTest::GitLink || names.next().is_none()
    }
}

/// Whether a file of this name can belong to a line that no directory above it belongs to: a
/// quick answer for most of them.
#[must_use]
pub fn may_be_last(name: &[u8]) -> bool {
    let Some(first) = name.first().map(u8::to_ascii_lowercase) else {
        return false;
    };
    let begins = |last: &[u8]| last[0] == b'*' || last[0].to_ascii_lowercase() == first;
    LASTS
        .iter()
        .any(|last| begins(last) && is_named(last, name))
}

/// Names are compared as file systems without cases do.
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
