//! Recreates slots whose directories were removed: nothing protects empty cgroups against rmdir(2)
//! by their own user.

use std::path::Path;

use ostler_model::Limits;

use super::files;
use super::owner;
use super::root::CgroupRoot;
use super::slot::CgroupSlot;

impl CgroupSlot {
    /// Whether every directory that this slot uses is the one it created.
    #[must_use]
    pub fn is_intact(&self) -> bool {
        let unified = match (&self.unified, self.unified_path()) {
            (Some(opened), Some(path)) => owner::is_same_directory(opened, &path),
            (None, Some(_)) => false,
            (_, None) => true,
        };
        let lock = match (&self.lock, self.lock_path()) {
            (Some(opened), Some(path)) => owner::is_same_directory(opened, &path),
            (None, _) | (_, None) => true,
        };
        let applied = |limited: bool, controller| {
            let path = self.legacy_path(controller).filter(|_| limited);
            path.is_none_or(|path| path.is_dir())
        };
        unified
            && lock
            && self.root.is_intact()
            && applied(
                self.applied.memory_bytes.is_some(),
                super::Controller::Memory,
            )
            && applied(self.applied.cpu_millis.is_some(), super::Controller::Cpu)
    }

    /// Recreates removed directories, including parents. Limits are set again by the next
    /// [`prepare`](Self::prepare).
    pub fn recreate_missing(&mut self) {
        self.root.recreate_missing();
        self.forget_limits(Limits::default());
        self.lock = None;
        self.open();
        if self.own_pids > 0 {
            self.own_pids = 0;
            self.attach_shim();
        }
    }
}

impl CgroupRoot {
    fn is_intact(&self) -> bool {
        self.directories().all(|directory| directory.is_dir())
    }

    /// Recreates our directories, with the controllers that slots had.
    fn recreate_missing(&self) {
        if let Some(directory) = &self.unified
            && make_missing(directory)
        {
            for controller in &self.controllers {
                let switch = format!("+{}", controller.name());
                let _fails_at_the_limit =
                    files::write(&directory.join("cgroup.subtree_control"), &switch);
            }
        }
        for directory in self.legacy.values() {
            make_missing(directory);
        }
    }
}

/// Creates a directory that is missing; true if it was.
fn make_missing(directory: &Path) -> bool {
    !directory.is_dir() && files::make_dir(directory).is_ok()
}
