//! Protected and hidden paths within the visible directories: the last operations, on top of all
//! others.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use ostler_model::ByteString;
use rustix::io::Errno;

use super::{AROUND_SCRIPTS, JailPlanBuilder};
use crate::jail::JailError;
use crate::jail::mount_op::{MountAccess, MountOp};
use crate::jail::paths::{is_plain, relative_to_root};

/// The protected paths of a submodule's repository, where they exist. Its configuration is not
/// protected, since `git submodule update` writes it.
const GIT_PROTECTED: [&str; 2] = ["hooks", "config.worktree"];

impl JailPlanBuilder<'_> {
    /// Makes each parent directory a mount point, so that none can be renamed away.
    pub(super) fn protect_paths(&mut self) -> Result<(), JailError> {
        let Some(workspace) = self.workspace.clone() else {
            return Ok(());
        };
        let mut protected = BTreeSet::new();
        for named in self.spec.protect.iter().map(ByteString::as_path) {
            let path = workspace.join(named);
            let create = self.is_created(path.strip_prefix(&workspace).unwrap_or(named));
            self.protect_path(&workspace, &path, create, &mut protected)?;
            // The target as well, where it lies inside.
            if let Some(real) = self.host.protected.get(named)
                && *real != path
                && real.starts_with(&workspace)
            {
                self.protect_path(&workspace, real, create, &mut protected)?;
            }
        }
        for module in &self.host.submodules {
            for name in GIT_PROTECTED {
                self.protect_path(&workspace, &module.join(name), false, &mut protected)?;
            }
        }
        Ok(())
    }

    fn protect_path(
        &mut self,
        workspace: &Path,
        path: &Path,
        create: bool,
        protected: &mut BTreeSet<(PathBuf, bool)>,
    ) -> Result<(), JailError> {
        let Ok(below) = path.strip_prefix(workspace) else {
            return Ok(());
        };
        if !is_plain(path) || below.as_os_str().is_empty() {
            return Err(JailError::on("protected path", Errno::INVAL, path));
        }
        let mut at = workspace.to_owned();
        let last = below.components().count() - 1;
        for (index, name) in below.components().enumerate() {
            at.push(name);
            let read_only = index == last;
            if protected.insert((at.clone(), read_only)) {
                let create = read_only && create;
                let at = relative_to_root(&at)?;
                self.after_seal.push(MountOp::Protect {
                    at,
                    read_only,
                    create,
                });
            }
        }
        Ok(())
    }

    /// Missing hooks could be created; an overlay's commit refuses them anyway.
    fn is_created(&self, below: &Path) -> bool {
        below == Path::new(".git/hooks") && !self.spec.overlay
    }

    /// Makes what leads to a hidden path in a writable directory a mount point: with another name, the
    /// next command would see what it hides.
    pub(super) fn keep_ways_to_hidden_paths(&mut self) -> Result<(), JailError> {
        let mut kept = BTreeSet::new();
        for named in self.spec.hide.iter().map(ByteString::as_path) {
            let Some(resolved) = self.host.resolved.get(named) else {
                continue;
            };
            let target = resolved.path.as_path();
            // The last component, too, of a name that is a symbolic link.
            let ways = named.ancestors().skip(usize::from(named == target));
            let ways = ways.chain(target.ancestors().skip(1));
            let is_inside = |way: &&Path| {
                let mut roots = self.writable.iter();
                roots.any(|root| way.starts_with(root) && *way != root)
            };
            kept.extend(ways.filter(is_inside).map(Path::to_owned));
        }
        // A directory comes before those in it.
        for way in kept {
            let at = relative_to_root(&way)?;
            self.after_seal.push(MountOp::Protect {
                at,
                read_only: false,
                create: false,
            });
        }
        Ok(())
    }

    pub(super) fn mask_hidden_paths(&mut self) -> Result<(), JailError> {
        for named in &self.spec.hide {
            let named = named.as_path();
            if !is_plain(named) {
                return Err(JailError::on("hidden path", Errno::INVAL, named));
            }
            let resolved = self.host.resolved.get(named).map(|it| it.path.as_path());
            let both: BTreeSet<&Path> = [Some(named), resolved].into_iter().flatten().collect();
            for path in both {
                if self.workspace.iter().any(|it| it.starts_with(path)) {
                    return Err(JailError::on("hidden path", Errno::INVAL, path));
                }
                let holds = self.bind_mounted.iter().any(|it| it.starts_with(path));
                if self.is_covered(path) || holds {
                    self.mask_path(path)?;
                }
            }
        }
        Ok(())
    }

    fn mask_path(&mut self, path: &Path) -> Result<(), JailError> {
        let at = relative_to_root(path)?;
        let mount_point = self.scripts_path().and_then(|scripts| {
            let way = scripts.strip_prefix(path).ok()?;
            Some(Path::new(AROUND_SCRIPTS).join(way))
        });
        let Some(mount_point) = mount_point else {
            self.after_seal.push(MountOp::Mask { at });
            return Ok(());
        };
        self.add_directories(&mount_point, 0o755, false)?;
        let from = relative_to_root(Path::new(AROUND_SCRIPTS))?;
        self.after_seal.push(MountOp::BindWithin { from, at });
        Ok(())
    }

    /// The path of a shell's scripts, where they exist.
    fn scripts_path(&self) -> Option<PathBuf> {
        let named = self.spec.scripts.as_ref()?;
        let resolved = self.host.resolved.get(named.as_path());
        resolved.filter(|it| it.directory).map(|it| it.path.clone())
    }

    /// Attached after everything that hides: the surroundings of the scripts stay hidden.
    pub(super) fn add_scripts(&mut self) -> Result<(), JailError> {
        let named = self.spec.scripts.as_ref().map(ByteString::as_path);
        let (Some(named), Some(path)) = (named, self.scripts_path()) else {
            return Ok(());
        };
        self.add_directories(&path, 0o755, self.is_private(&path))?;
        let source = self.add_source(&path, MountAccess::Read, false, false)?;
        let at = relative_to_root(&path)?;
        self.after_seal.push(MountOp::Bind { source, at });
        self.add_alias(named, &path)
    }
}
