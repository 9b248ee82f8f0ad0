//! What is protected and what is hidden within what is shown: the last steps, on top of all.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use ostler_model::Text;
use rustix::io::Errno;

use super::Draft;
use crate::cell::CellError;
use crate::cell::paths::{below_root, plain};
use crate::cell::step::Step;

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
                    let at = below_root(path)?;
                    self.after.push(Step::Mask { at });
                }
            }
        }
        Ok(())
    }
}
