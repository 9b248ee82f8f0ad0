//! One thing tried on one directory; the answer is none for success, else the reason.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use super::kernel;
use super::scratch::{Scratch, Sides};
use super::sources::kind_of;
use crate::landlock;

/// A rule on the directory is made and thrown away; nobody is restricted.
pub(super) fn landlock(directory: &File) -> Option<String> {
    if let Some(why) = landlock::missing() {
        return Some(why);
    }
    let errno = landlock::try_rule(directory.as_fd(), landlock::abi()).err()?;
    let kind = kind_of(directory);
    Some(format!("Landlock takes no rule on {kind}: {errno}"))
}

/// A detached mount of the directory with the ids of a throw-away namespace.
pub(super) fn mapped(directory: &File) -> Option<String> {
    let scratch = match Scratch::new() {
        Ok(scratch) => scratch,
        Err(error) => return Some(format!("no user namespace to try it with: {error}")),
    };
    let error = mapped_clone(directory, &scratch).err()?;
    let kind = kind_of(directory);
    Some(format!("{kind} cannot be mounted with other ids: {error}"))
}

/// An overlay over the directory in a throw-away mount namespace, its upper side in `beside`,
/// by the same way as a command gets it.
pub(super) fn overlay(lower: &Path, beside: &Path) -> Option<String> {
    overlay_or_why(lower, beside).err()
}

fn overlay_or_why(lower: &Path, beside: &Path) -> Result<(), String> {
    let scratch =
        Scratch::new().map_err(|error| format!("no user namespace to try it in: {error}"))?;
    let sides = Sides::make(beside).map_err(|error| format!("{}: {error}", beside.display()))?;
    let lower_file = File::open(lower).map_err(|error| error.to_string())?;
    let kind = kind_of(&lower_file);
    let mounts = mounts(&lower_file, &sides, &scratch)
        .map_err(|error| format!("{kind} cannot be mounted with other ids: {error}"))?;
    scratch
        .try_overlay((lower, sides.path()), mounts.as_ref())
        .map_err(|error| format!("no overlay over {kind}: {error}"))
}

/// The lower side and the directory of the other two with the ids of the scratch namespace:
/// only for root, whose command has others.
fn mounts(lower: &File, sides: &Sides, scratch: &Scratch) -> io::Result<Option<[OwnedFd; 2]>> {
    if !rustix::process::geteuid().is_root() {
        return Ok(None);
    }
    let beside = File::open(sides.path())?;
    let lower = mapped_clone(lower, scratch)?;
    Ok(Some([lower, mapped_clone(&beside, scratch)?]))
}

fn mapped_clone(directory: &File, scratch: &Scratch) -> io::Result<OwnedFd> {
    let mount = kernel::clone_mount(directory.as_fd())?;
    kernel::map_ids(mount.as_fd(), scratch.user_namespace())?;
    Ok(mount)
}
