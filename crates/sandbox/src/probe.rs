//! What this machine and user can enforce, each missing piece with its reason.

mod walls;

use std::fs;
use std::io;
use std::path::Path;

use ostler_model::{Abilities, Ability, Degraded, LimitBackend};

use crate::cgroup::subtree::Version;
use crate::cgroup::{Controller, Layout, Subtree, SubtreeError};

/// Finds out by doing it: makes our cgroups, and moves this process into them (`adopt`) or a
/// child that ends at once. The subtree is for slots; the abilities say what it is good for.
/// [`Ability::Durable`] is the caller's to add.
#[must_use]
pub fn probe(adopt: bool) -> (Subtree, Abilities) {
    let layout = Layout::read();
    let (subtree, error) = Subtree::open(&layout, |leaf| enter(leaf, adopt));
    let mut abilities = Abilities {
        present: vec![
            Ability::CleanEnvironment,
            Ability::OwnGroup,
            Ability::ProcessLimits,
        ],
        ..Abilities::default()
    };
    let reason = error
        .as_ref()
        .map(SubtreeError::to_string)
        .unwrap_or_default();
    abilities.note(Ability::TreeKill, true, "");
    abilities.note(Ability::OwnCgroup, subtree.has_unified(), &reason);
    for (ability, controller) in [
        (Ability::PidsLimit, Controller::Pids),
        (Ability::MemoryLimit, Controller::Memory),
        (Ability::CpuLimit, Controller::Cpu),
    ] {
        let reason = format!(
            "no {} controller that this user may write, neither in the unified hierarchy ({}) \
             nor in one of version 1",
            controller.name(),
            if reason.is_empty() {
                "not available there"
            } else {
                &reason
            },
        );
        abilities.note(ability, subtree.limits(controller).is_some(), &reason);
    }
    abilities.backend = backend(&subtree);
    let no_freezer = "neither the unified hierarchy nor a freezer of version 1 is ours to write";
    abilities.note(Ability::Freezer, subtree.has_freezer(), no_freezer);
    // By accounting: a look at the workspace needs nothing.
    abilities.note(Ability::DiskLimit, true, "");
    walls::note(&mut abilities);
    (subtree, abilities)
}

pub(crate) trait Note {
    fn note(&mut self, ability: Ability, present: bool, reason: &str);
}

impl Note for Abilities {
    fn note(&mut self, ability: Ability, present: bool, reason: &str) {
        if present {
            self.present.push(ability);
        } else {
            self.missing.push(Degraded {
                ability,
                reason: reason.to_owned(),
            });
        }
    }
}

fn backend(subtree: &Subtree) -> LimitBackend {
    match subtree
        .limits(Controller::Pids)
        .or(subtree.limits(Controller::Memory))
    {
        Some(Version::Two) => LimitBackend::CgroupV2,
        Some(Version::One) => LimitBackend::CgroupV1,
        None => LimitBackend::Rlimits,
    }
}

fn enter(leaf: &Path, adopt: bool) -> io::Result<()> {
    let procs = fs::OpenOptions::new()
        .write(true)
        .open(leaf.join("cgroup.procs"))?;
    if adopt {
        return Ok(rustix::io::write(&procs, b"0").map(|_| ())?);
    }
    enter_by_child(&procs)
}

/// A child that moves itself and ends: the kernel checks the same permissions as for a
/// command, and this process stays where it is.
fn enter_by_child(procs: &fs::File) -> io::Result<()> {
    use std::os::fd::AsRawFd;
    let descriptor = procs.as_raw_fd();
    // SAFETY: the child makes two system calls on values of its own stack and exits; it
    // neither allocates nor returns, whatever other threads held when it was forked.
    let child = unsafe {
        match libc::fork() {
            0 => {
                let written = libc::write(descriptor, c"0".as_ptr().cast(), 1);
                let errno = if written < 0 {
                    *libc::__errno_location()
                } else {
                    0
                };
                libc::_exit(errno & 0x7f)
            }
            child => child,
        }
    };
    if child < 0 {
        return Err(io::Error::last_os_error());
    }
    let mut status = 0;
    // SAFETY: the out-pointer is valid; the child is ours and ends at once.
    while unsafe { libc::waitpid(child, &raw mut status, 0) } < 0 {
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
    match libc::WEXITSTATUS(status) {
        0 => Ok(()),
        errno => Err(io::Error::from_raw_os_error(errno)),
    }
}
