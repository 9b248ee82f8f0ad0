//! Probes of one feature on one directory; the result is none for success, else the reason.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use super::fs_type::fs_type_of;
use super::scratch_ns::{ScratchDirs, ScratchNamespace};
use super::sys;
use crate::landlock;

/// Creates a rule on the directory and discards it; nothing is restricted.
pub(super) fn check_landlock(directory: &File) -> Option<String> {
    if let Some(why) = landlock::unavailable_reason() {
        return Some(why);
    }
    let errno = landlock::try_rule(directory.as_fd(), landlock::abi()).err()?;
    let kind = fs_type_of(directory);
    Some(format!("Landlock takes no rule on {kind}: {errno}"))
}

/// Creates a detached mount of the directory with the ids of a temporary namespace.
pub(super) fn check_idmapped(directory: &File) -> Option<String> {
    let scratch = match ScratchNamespace::new() {
        Ok(scratch) => scratch,
        Err(error) => return Some(format!("no user namespace to try it with: {error}")),
    };
    let error = clone_idmapped(directory, &scratch).err()?;
    let kind = fs_type_of(directory);
    Some(format!("{kind} cannot be mounted with other ids: {error}"))
}

/// Mounts an overlay over the directory in a temporary mount namespace, its upper layer in
/// `beside`, in the same way as for a command.
pub(super) fn check_overlay(lower: &Path, beside: &Path) -> Option<String> {
    try_overlay(lower, beside).err()
}

fn try_overlay(lower: &Path, beside: &Path) -> Result<(), String> {
    let scratch = ScratchNamespace::new()
        .map_err(|error| format!("no user namespace to try it in: {error}"))?;
    let dirs =
        ScratchDirs::make(beside).map_err(|error| format!("{}: {error}", beside.display()))?;
    let lower_file = File::open(lower).map_err(|error| error.to_string())?;
    let kind = fs_type_of(&lower_file);
    let mounts = idmapped_mounts(&lower_file, &dirs, &scratch)
        .map_err(|error| format!("{kind} cannot be mounted with other ids: {error}"))?;
    scratch
        .try_overlay(lower, dirs.path(), mounts.as_ref())
        .map_err(|error| format!("no overlay over {kind}: {error}"))
}

/// The lower layer and the directory of the other two with the ids of the scratch namespace: only
/// for root, whose command has other ids.
fn idmapped_mounts(
    lower: &File,
    dirs: &ScratchDirs,
    scratch: &ScratchNamespace,
) -> io::Result<Option<[OwnedFd; 2]>> {
    if !rustix::process::geteuid().is_root() {
        return Ok(None);
    }
    let beside = File::open(dirs.path())?;
    let lower = clone_idmapped(lower, scratch)?;
    Ok(Some([lower, clone_idmapped(&beside, scratch)?]))
}

fn clone_idmapped(directory: &File, scratch: &ScratchNamespace) -> io::Result<OwnedFd> {
    let mount = sys::clone_mount(directory.as_fd())?;
    sys::map_ids(mount.as_fd(), scratch.user_namespace())?;
    Ok(mount)
}
