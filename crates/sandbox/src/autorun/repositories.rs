//! Finds the git repositories of a workspace before a command runs: the one at its top and its
//! submodules.

use std::path::Path;

use ostler_model::FileKind;

use super::git_config::{self, GitConfigEntry};
use super::view::{ChangeFilter, WorkspaceView, resolve};
use crate::openat2::join;

/// The most submodules whose repositories are protected.
pub(super) const MODULES_MAX: usize = 32;
/// The most directories that are searched for them.
const DIRECTORIES_MAX: usize = 256;
/// The most names read in one of these directories.
const NAMES_MAX: usize = 1_000;

/// The names of configuration files in a repository.
const CONFIGURATIONS: [&[u8]; 2] = [b"config", b"config.worktree"];

/// A repository, and the entries of its configuration that may run a program or refer to another
/// place.
#[derive(Debug)]
pub(super) struct Repository {
    pub(super) path: Vec<u8>,
    pub(super) entries: Vec<GitConfigEntry>,
}

/// The repositories of a workspace with those entries.
pub(super) fn read_repositories(workspace: &Path) -> Vec<Repository> {
    let Ok(mut view) = WorkspaceView::open(workspace, None, ChangeFilter::Upper) else {
        return Vec::new();
    };
    let found = find_repositories(workspace, &mut view).into_iter();
    found
        .map(|path| {
            let files = CONFIGURATIONS.into_iter().map(|name| join(&path, name));
            let entries = files
                .filter_map(|file| git_config::read_config(&view, &file))
                .flatten();
            let entries = entries.filter(|entry| !entry.is_harmless()).collect();
            Repository { path, entries }
        })
        .collect()
}

/// Relative paths of the repositories, that of the workspace first; empty where it has none.
pub(crate) fn repositories(workspace: &Path) -> Vec<Vec<u8>> {
    let view = WorkspaceView::open(workspace, None, ChangeFilter::Upper);
    view.map_or_else(
        |_| Vec::new(),
        |mut view| find_repositories(workspace, &mut view),
    )
}

fn find_repositories(workspace: &Path, view: &mut WorkspaceView<'_>) -> Vec<Vec<u8>> {
    let top = match view.kind(b".git") {
        Some(FileKind::Directory) => b".git".to_vec(),
        Some(FileKind::Symlink) => match resolve_symlink(workspace) {
            Some(top) => top,
            None => return Vec::new(),
        },
        Some(FileKind::File | FileKind::Special) | None => return Vec::new(),
    };
    let mut pending = vec![join(&top, b"modules")];
    let mut found = vec![top];
    let mut visited = 0;
    while let Some(path) = pending.pop() {
        visited += 1;
        if visited > DIRECTORIES_MAX || found.len() > MODULES_MAX {
            break;
        }
        let Ok((names, _)) = view.list(&path, true, NAMES_MAX) else {
            continue;
        };
        if is_repository(names.iter().map(|(name, _)| name.as_slice())) {
            pending.push(join(&path, b"modules"));
            found.push(path);
            continue;
        }
        let directories = names
            .iter()
            .filter(|(_, kind)| *kind == FileKind::Directory);
        pending.extend(directories.map(|(name, _)| join(&path, name)));
    }
    found
}

/// Where a symbolic link in place of the repository leads within the workspace.
fn resolve_symlink(workspace: &Path) -> Option<Vec<u8>> {
    use std::os::unix::ffi::OsStrExt;
    let real = std::fs::canonicalize(workspace.join(".git")).ok()?;
    resolve(
        workspace.as_os_str().as_bytes(),
        b"",
        real.as_os_str().as_bytes(),
    )
}

/// Whether git treats a directory with these names as a repository.
pub(super) fn is_repository<'n>(names: impl Iterator<Item = &'n [u8]>) -> bool {
    let (mut head, mut common, mut objects, mut refs) = (false, false, false, false);
    for name in names {
        head |= name.eq_ignore_ascii_case(b"HEAD");
        common |= name.eq_ignore_ascii_case(b"commondir");
        objects |= name.eq_ignore_ascii_case(b"objects");
        refs |= name.eq_ignore_ascii_case(b"refs");
    }
    head && (common || (objects && refs))
}
