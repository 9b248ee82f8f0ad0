//! What is protected and what is hidden within what is shown: the last steps, on top of all.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use ostler_model::Text;
use rustix::io::Errno;

use super::{AROUND_SCRIPTS, Draft};
use crate::cell::CellError;
use crate::cell::paths::{below_root, plain};
use crate::cell::step::{Access, Step};

/// What of a submodule's repository is protected, where it is there. Its configuration is
/// written by `git submodule update`, with what it says already.
const GIT_PROTECTED: [&str; 2] = ["hooks", "config.worktree"];

impl Draft<'_> {
    /// Each directory on the way becomes a mount point, so that none can be renamed away.
    pub(super) fn protected(&mut self) -> Result<(), CellError> {
        let Some(workspace) = self.workspace.clone() else {
            return Ok(());
        };
        let mut fenced = BTreeSet::new();
        for named in self.confinement.protect.iter().map(Text::as_path) {
            let path = workspace.join(named);
            let made = self.is_made(path.strip_prefix(&workspace).unwrap_or(named));
            self.fence(&workspace, &path, made, &mut fenced)?;
            // And what it leads to, where that lies inside.
            if let Some(real) = self.host.protected.get(named)
                && *real != path
                && real.starts_with(&workspace)
            {
                self.fence(&workspace, real, made, &mut fenced)?;
            }
        }
        for module in &self.host.modules {
            for name in GIT_PROTECTED {
                self.fence(&workspace, &module.join(name), false, &mut fenced)?;
            }
        }
        Ok(())
    }

    fn fence(
        &mut self,
        workspace: &Path,
        path: &Path,
        made: bool,
        fenced: &mut BTreeSet<(PathBuf, bool)>,
    ) -> Result<(), CellError> {
        let Ok(below) = path.strip_prefix(workspace) else {
            return Ok(());
        };
        if !plain(path) || below.as_os_str().is_empty() {
            return Err(CellError::on("protected path", Errno::INVAL, path));
        }
        let mut at = workspace.to_owned();
        let last = below.components().count() - 1;
        for (index, name) in below.components().enumerate() {
            at.push(name);
            let closed = index == last;
            if fenced.insert((at.clone(), closed)) {
                let make = closed && made;
                let at = below_root(&at)?;
                self.after.push(Step::Fence { at, closed, make });
            }
        }
        Ok(())
    }

    /// Hooks that are missing could be made; an overlay's commit refuses them anyway.
    fn is_made(&self, below: &Path) -> bool {
        below == Path::new(".git/hooks") && !self.confinement.overlay
    }

    pub(super) fn hidden(&mut self) -> Result<(), CellError> {
        for named in &self.confinement.hide {
            let named = named.as_path();
            if !plain(named) {
                return Err(CellError::on("hidden path", Errno::INVAL, named));
            }
            let resolved = self.host.resolved.get(named).map(|it| it.path.as_path());
            let both: BTreeSet<&Path> = [Some(named), resolved].into_iter().flatten().collect();
            for path in both {
                if self.workspace.iter().any(|it| it.starts_with(path)) {
                    return Err(CellError::on("hidden path", Errno::INVAL, path));
                }
                let holds = self.bound.iter().any(|it| it.starts_with(path));
                if self.covered(path) || holds {
                    self.mask(path)?;
                }
            }
        }
        Ok(())
    }

    fn mask(&mut self, path: &Path) -> Result<(), CellError> {
        let at = below_root(path)?;
        let way = self.scripts_at().and_then(|scripts| {
            let way = scripts.strip_prefix(path).ok()?;
            Some(Path::new(AROUND_SCRIPTS).join(way))
        });
        let Some(way) = way else {
            self.after.push(Step::Mask { at });
            return Ok(());
        };
        self.directories(&way, 0o755, false)?;
        let from = below_root(Path::new(AROUND_SCRIPTS))?;
        self.after.push(Step::Over { from, at });
        Ok(())
    }

    /// Where the scripts of a shell lie, where they are there.
    fn scripts_at(&self) -> Option<PathBuf> {
        let named = self.confinement.scripts.as_ref()?;
        let resolved = self.host.resolved.get(named.as_path());
        resolved.filter(|it| it.directory).map(|it| it.path.clone())
    }

    /// Shown after everything that hides: what is around them stays hidden.
    pub(super) fn scripts(&mut self) -> Result<(), CellError> {
        let named = self.confinement.scripts.as_ref().map(Text::as_path);
        let (Some(named), Some(path)) = (named, self.scripts_at()) else {
            return Ok(());
        };
        self.directories(&path, 0o755, self.is_private(&path))?;
        let source = self.source(&path, Access::Read, false, false)?;
        let at = below_root(&path)?;
        self.after.push(Step::Attach { source, at });
        self.alias(named, &path)
    }
}
