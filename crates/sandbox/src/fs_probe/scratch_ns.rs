//! A temporary user namespace, mapped as a command's would be, and the probes made in it.

use std::ffi::CString;
use std::fs;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use super::sys::{self, OverlayCheck};

/// The map of root's commands: inside ids to spare ids outside.
const SPARE_MAP: &str = "0 100000 65536";

/// The namespace; it ends with this value.
#[derive(Debug)]
pub(super) struct ScratchNamespace {
    user_namespace: OwnedFd,
}

impl ScratchNamespace {
    /// Maps root to spare ids, any other user to itself.
    pub(super) fn new() -> io::Result<Self> {
        let user_namespace = sys::user_namespace(map_ids)?;
        Ok(Self { user_namespace })
    }

    pub(super) fn user_namespace(&self) -> BorrowedFd<'_> {
        self.user_namespace.as_fd()
    }

    /// Mounts an overlay in a child and discards it: of `mounts` where given, else of `paths`; the
    /// second of each contains the upper and the work directory.
    pub(super) fn try_overlay(
        &self,
        lower: &Path,
        dirs: &Path,
        mounts: Option<&[OwnedFd; 2]>,
    ) -> io::Result<()> {
        let text = |path: &Path| CString::new(path.as_os_str().as_bytes());
        let overlay = OverlayCheck {
            user_namespace: self.user_namespace(),
            paths: [text(lower)?, text(dirs)?],
            mounts: mounts.map(|[lower, sides]| [lower.as_fd(), sides.as_fd()]),
        };
        sys::try_overlay(&overlay)
    }
}

/// Writes the id maps of the process with this directory below `/proc`.
fn map_ids(process: &Path) -> io::Result<()> {
    let (uid, gid) = (rustix::process::geteuid(), rustix::process::getegid());
    let own = |id: u32| format!("{id} {id} 1");
    let (uids, gids) = if uid.is_root() {
        (SPARE_MAP.to_owned(), SPARE_MAP.to_owned())
    } else {
        fs::write(process.join("setgroups"), "deny")?;
        (own(uid.as_raw()), own(gid.as_raw()))
    };
    fs::write(process.join("uid_map"), uids)?;
    fs::write(process.join("gid_map"), gids)
}

/// A directory with an upper and a work directory, removed on drop.
#[derive(Debug)]
pub(super) struct ScratchDirs {
    path: PathBuf,
}

impl ScratchDirs {
    pub(super) fn make(beside: &Path) -> io::Result<Self> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let serial = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!(".ostler-survey-{}-{serial}", std::process::id());
        let dirs = Self {
            path: beside.join(name),
        };
        fs::create_dir(&dirs.path)?;
        fs::create_dir(dirs.path.join("upper"))?;
        fs::create_dir(dirs.path.join("work"))?;
        Ok(dirs)
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for ScratchDirs {
    fn drop(&mut self) {
        // The kernel creates `work/work` without any permission: it can be removed, not read.
        for inner in ["work/work", "work", "upper", ""] {
            let _left_behind = fs::remove_dir(self.path.join(inner));
        }
    }
}
