//! The files that an answer may select: those of the host and, for a command that writes to an
//! overlay, what it wrote there.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

use ostler_model::{ChangeKind, FileKind, OverlayChange};

use super::question::Question;
use crate::engine_inner::EngineInner;
use crate::execution::ExecutionHandle;
use crate::overlay;
use crate::prompt::QuestionKind;

/// The files as the command of a question sees them; those of the host for a question without one.
#[derive(Debug, Clone, Default)]
pub(super) struct SelectableFiles {
    /// The directory that relative paths are relative to.
    pub(super) cwd: Option<PathBuf>,
    overlay: Option<OverlayFiles>,
}

/// What a command wrote to the overlay of its workspace.
#[derive(Debug, Clone)]
struct OverlayFiles {
    workspace: PathBuf,
    /// What is at a path relative to the workspace; none where it was deleted.
    changes: BTreeMap<PathBuf, Option<FileKind>>,
}

impl SelectableFiles {
    /// The files for the answers to a question about this execution.
    pub(super) async fn new(
        core: &EngineInner,
        entry: Option<&ExecutionHandle>,
        question: &Question,
    ) -> Self {
        let Some(entry) = entry else {
            return Self::default();
        };
        let selects_path =
            question.kind == QuestionKind::FileSelection && question.options.is_empty();
        let sandbox = entry.spec.policy.confinement.as_ref();
        let workspace = sandbox.and_then(|it| it.workspace.as_ref());
        let overlay = match workspace.filter(|_| selects_path) {
            Some(workspace) => overlay::open_changes(core, entry)
                .await
                .map(|it| OverlayFiles::new(workspace.as_path(), it.changes)),
            None => None,
        };
        Self {
            cwd: Some(entry.spec.cwd.as_path().to_owned()),
            overlay,
        }
    }

    /// The files of the host, relative to this directory.
    #[cfg(test)]
    pub(super) const fn of_host(cwd: PathBuf) -> Self {
        Self {
            cwd: Some(cwd),
            overlay: None,
        }
    }

    /// Whether this is an existing file that is below the workspace once links are resolved.
    pub(super) fn is_file_in(&self, workspace: &Path, path: &Path) -> bool {
        match self.find_changed(path) {
            // The list names what is below the workspace, and follows no link.
            Some(changed) => changed == Some(FileKind::File) && path.starts_with(workspace),
            None => is_host_file_in(workspace, path),
        }
    }

    /// Whether something is there.
    pub(super) fn exists(&self, path: &Path) -> bool {
        self.find_changed(path)
            .map_or_else(|| path.exists(), |changed| changed.is_some())
    }

    pub(super) fn is_dir(&self, path: &Path) -> bool {
        self.find_changed(path)
            .map_or_else(|| path.is_dir(), |it| it == Some(FileKind::Directory))
    }

    /// What the command left at a path it changed; none where the host's files are what it sees.
    fn find_changed(&self, path: &Path) -> Option<Option<FileKind>> {
        self.overlay.as_ref()?.find(path)
    }
}

impl OverlayFiles {
    fn new(workspace: &Path, changes: Vec<OverlayChange>) -> Self {
        let state = |it: OverlayChange| {
            let there = it.kind != ChangeKind::Deleted;
            (it.path.as_path().to_owned(), there.then_some(it.what))
        };
        Self {
            workspace: workspace.to_owned(),
            changes: changes.into_iter().map(state).collect(),
        }
    }

    /// As [`SelectableFiles::find_changed`]. Below what the command deleted, or replaced by
    /// something other than a directory, is nothing.
    fn find(&self, path: &Path) -> Option<Option<FileKind>> {
        let beneath = path.strip_prefix(&self.workspace).ok()?;
        if !beneath
            .components()
            .all(|it| matches!(it, Component::Normal(_)))
        {
            return None;
        }
        // A path that ends in a slash is that of a directory.
        let requires_directory = path.as_os_str().as_encoded_bytes().ends_with(b"/");
        if let Some(changed) = self.changes.get(beneath) {
            let fits = *changed == Some(FileKind::Directory) || !requires_directory;
            return Some(changed.filter(|_| fits));
        }
        let mut above = beneath.ancestors().skip(1);
        let is_hidden = above.any(|it| {
            let changed = self.changes.get(it);
            changed.is_some_and(|changed| *changed != Some(FileKind::Directory))
        });
        is_hidden.then_some(None)
    }
}

/// The same on the host.
fn is_host_file_in(workspace: &Path, path: &Path) -> bool {
    let (Ok(workspace), Ok(path)) = (workspace.canonicalize(), path.canonicalize()) else {
        return false;
    };
    path.starts_with(workspace) && path.is_file()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_command_wrote_to_its_overlay_hides_the_host() {
        let dir = tempfile::tempdir().expect("a directory");
        let workspace = dir.path().canonicalize().expect("resolved");
        for name in ["kept", "gone", "replaced", "closed/inside"] {
            let path = workspace.join(name);
            std::fs::create_dir_all(path.parent().expect("a parent")).expect("made");
            std::fs::write(path, "x").expect("written");
        }
        let change = |path: &str, kind, what| OverlayChange {
            path: path.into(),
            kind,
            what,
            bytes: 0,
            bytes_before: None,
        };
        let changes = vec![
            change("new", ChangeKind::Created, FileKind::File),
            change("deep", ChangeKind::Created, FileKind::Directory),
            change("deep/new", ChangeKind::Created, FileKind::File),
            change("link", ChangeKind::Created, FileKind::Symlink),
            change("gone", ChangeKind::Deleted, FileKind::File),
            change("replaced", ChangeKind::Changed, FileKind::Directory),
            change("closed", ChangeKind::Changed, FileKind::Symlink),
        ];
        let files = SelectableFiles {
            cwd: None,
            overlay: Some(OverlayFiles::new(&workspace, changes)),
        };
        for (name, is_file, exists) in [
            ("kept", true, true),
            ("new", true, true),
            ("./new", true, true),
            ("new/", false, false),
            ("deep", false, true),
            ("deep/new", true, true),
            ("deep/other", false, false),
            ("link", false, true),
            ("link/passwd", false, false),
            ("gone", false, false),
            ("replaced", false, true),
            ("closed/inside", false, false),
            ("deep/../../etc/passwd", false, false),
        ] {
            let path = workspace.join(name);
            let found = (files.is_file_in(&workspace, &path), files.exists(&path));
            assert_eq!(found, (is_file, exists), "{name}");
        }
        assert!(files.is_dir(&workspace.join("deep")) && !files.is_dir(&workspace.join("gone")));
        assert!(!files.is_file_in(&workspace.join("deep"), &workspace.join("new")));
    }
}
