//! Probes what this machine and user can enforce; each missing feature has its reason.

mod full_sandbox;

use std::fs;
use std::io;
use std::path::Path;

use ostler_model::{Capability, CapabilitySet, LimitBackend, MissingCapability};

use crate::cgroup::root::CgroupVersion;
use crate::cgroup::{CgroupLayout, CgroupRoot, CgroupRootError, Controller};

/// Probes by doing it: creates our cgroups, and moves this process into them (`adopt`) or a child
/// that exits at once. The root is for slots; the capabilities state what works. The caller adds
/// [`Capability::Durable`].
#[must_use]
pub fn probe(adopt: bool) -> (CgroupRoot, CapabilitySet) {
    let layout = CgroupLayout::read();
    let (root, error) = CgroupRoot::open(&layout, |leaf| enter(leaf, adopt));
    let mut capabilities = CapabilitySet {
        present: vec![
            Capability::CleanEnvironment,
            Capability::OwnGroup,
            Capability::ProcessLimits,
        ],
        ..CapabilitySet::default()
    };
    let reason = error
        .as_ref()
        .map(CgroupRootError::to_string)
        .unwrap_or_default();
    capabilities.record(Capability::TreeKill, true, "");
    capabilities.record(Capability::OwnCgroup, root.has_unified(), &reason);
    for (capability, controller) in [
        (Capability::PidsLimit, Controller::Pids),
        (Capability::MemoryLimit, Controller::Memory),
        (Capability::CpuLimit, Controller::Cpu),
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
        capabilities.record(
            capability,
            root.limit_version(controller).is_some(),
            &reason,
        );
    }
    capabilities.backend = backend(&root);
    let no_freezer = "neither the unified hierarchy nor a freezer of version 1 is ours to write";
    capabilities.record(Capability::Freezer, root.has_freezer(), no_freezer);
    // Enforced by accounting: measuring a workspace needs no feature.
    capabilities.record(Capability::DiskLimit, true, "");
    full_sandbox::probe_sandbox(&mut capabilities);
    (root, capabilities)
}

pub(crate) trait RecordCapability {
    fn record(&mut self, capability: Capability, present: bool, reason: &str);
}

impl RecordCapability for CapabilitySet {
    fn record(&mut self, capability: Capability, present: bool, reason: &str) {
        if present {
            self.present.push(capability);
        } else {
            self.missing.push(MissingCapability {
                ability: capability,
                reason: reason.to_owned(),
            });
        }
    }
}

fn backend(root: &CgroupRoot) -> LimitBackend {
    match root
        .limit_version(Controller::Pids)
        .or(root.limit_version(Controller::Memory))
    {
        Some(CgroupVersion::Two) => LimitBackend::CgroupV2,
        Some(CgroupVersion::One) => LimitBackend::CgroupV1,
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

/// Moves a child that exits: the kernel checks the same permissions as for a command, and this
/// process stays where it is.
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
    // SAFETY: the out-pointer is valid; `child` is a child of this process and ends at once.
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
