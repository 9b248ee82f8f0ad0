//! The repositories that a workspace has before a command: the one at its top and its
//! submodules.

use std::path::Path;

use ostler_model::FileKind;

use super::config::{self, Entry};
use super::view::{New, View, resolve};
use crate::overlay::beneath::join;

/// Submodules whose repositories are protected.
pub(super) const MODULES_MAX: usize = 32;
/// Directories that are looked at for them.
const DIRECTORIES_MAX: usize = 256;
/// Names of one of these directories that are looked at.
const NAMES_MAX: usize = 1_000;

/// Names of files of configuration in a repository.
const CONFIGURATIONS: [&[u8]; 2] = [b"config", b"config.worktree"];

/// A repository, and what its configuration says that may run something or lead elsewhere.
#[derive(Debug)]
pub(super) struct Repository {
    pub(super) path: Vec<u8>,
    pub(super) entries: Vec<Entry>,
}

/// The repositories of a workspace, with what their configuration says.
pub(super) fn read(workspace: &Path) -> Vec<Repository> {
    let Ok(mut view) = View::open(workspace, None, New::Layer) else {
        return Vec::new();
    };
    let found = find(workspace, &mut view).into_iter();
    found
        .map(|path| {
            let files = CONFIGURATIONS.into_iter().map(|name| join(&path, name));
            let entries = files
                .filter_map(|file| config::read(&view, &file))
                .flatten();
            let entries = entries.filter(|entry| !entry.is_harmless()).collect();
            Repository { path, entries }
        })
        .collect()
}

/// Relative paths of the repositories, that of the workspace first; empty where it has none.
pub(crate) fn repositories(workspace: &Path) -> Vec<Vec<u8>> {
    let view = View::open(workspace, None, New::Layer);
    view.map_or_else(|_| Vec::new(), |mut view| find(workspace, &mut view))
}

fn find(workspace: &Path, view: &mut View<'_>) -> Vec<Vec<u8>> {
    let top = match view.kind(b".git") {
        Some(FileKind::Directory) => b".git".to_vec(),
        Some(FileKind::Symlink) => match linked(workspace) {
            Some(top) => top,
            None => return Vec::new(),
        },
        Some(FileKind::File | FileKind::Special) | None => return Vec::new(),
    };
    let mut open = vec![join(&top, b"modules")];
    let mut found = vec![top];
    let mut looked_at = 0;
    while let Some(path) = open.pop() {
        looked_at += 1;
        if looked_at > DIRECTORIES_MAX || found.len() > MODULES_MAX {
            break;
        }
        let Ok((names, _)) = view.list(&path, true, NAMES_MAX) else {
            continue;
        };
        if is_repository(names.iter().map(|(name, _)| name.as_slice())) {
            open.push(join(&path, b"modules"));
            found.push(path);
            continue;
        }
        let directories = names
            .iter()
            .filter(|(_, kind)| *kind == FileKind::Directory);
        open.extend(directories.map(|(name, _)| join(&path, name)));
    }
    found
}

/// Where a link in the place of the repository leads within the workspace.
fn linked(workspace: &Path) -> Option<Vec<u8>> {
    use std::os::unix::ffi::OsStrExt;
    let real = std::fs::canonicalize(workspace.join(".git")).ok()?;
    resolve(
        workspace.as_os_str().as_bytes(),
        b"",
        real.as_os_str().as_bytes(),
    )
}

/// Whether git takes a directory with these names for a repository.
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
