//! The walls around one command, raised between clone and exec, in the order that lets each be
//! raised: capabilities, no_new_privs, Landlock while descriptors can still be opened, and as
//! the very last thing before exec the filter that would refuse some of the others.

use ostler_model::{Capability, SandboxSpec};
use rustix::io::Errno;
use rustix::thread::{CapabilitiesSecureBits, CapabilitySet, CapabilitySets};

use crate::{landlock, seccomp};

/// What is raised, ready: nothing is decided or allocated between clone and exec.
#[derive(Debug, Clone)]
pub struct Restrictions {
    drop_capabilities: bool,
    no_new_privileges: bool,
    landlock: Option<landlock::LandlockRuleset>,
    seccomp: Option<seccomp::SeccompFilter>,
}

impl Restrictions {
    /// For commands of this confinement; what its `without` names is left out.
    #[must_use]
    pub fn new(spec: &SandboxSpec) -> Self {
        let is_required = |ability| !spec.without.contains(&ability);
        let abi = landlock::abi();
        Self {
            drop_capabilities: is_required(Capability::NoCapabilities),
            no_new_privileges: is_required(Capability::NoNewPrivileges),
            landlock: is_required(Capability::Landlock)
                .then(|| landlock::LandlockRuleset::new(spec, abi)),
            seccomp: is_required(Capability::Seccomp).then(|| seccomp::build_filter(spec)),
        }
    }

    /// Whether a confinement has its commands in a jail; without namespaces or a root of their
    /// own there is nothing to enter.
    #[must_use]
    pub fn needs_jail(spec: &SandboxSpec) -> bool {
        let without = &spec.without;
        !without.contains(&Capability::Namespaces) && !without.contains(&Capability::OwnRoot)
    }

    /// Everything but the filter. System calls on memory prepared before.
    pub(crate) fn apply(&self) -> Result<(), Errno> {
        if self.drop_capabilities {
            drop_capabilities()?;
        }
        if self.no_new_privileges {
            rustix::thread::set_no_new_privs(true)?;
        }
        // A session keyring may come with the caller; what it holds is not the command's. Where
        // the quota of keyrings is used up, the filter refuses their use all the same.
        join_session_keyring();
        match &self.landlock {
            Some(rules) => rules.install(),
            None => Ok(()),
        }
    }

    /// The filter: nothing but exec comes after.
    pub(crate) fn apply_seccomp(&self) -> Result<(), Errno> {
        match &self.seccomp {
            Some(program) => program.install(),
            None => Ok(()),
        }
    }
}

/// None is held, none can come back: not by an inside root's exec, not from a file.
fn drop_capabilities() -> Result<(), Errno> {
    let none = CapabilitySet::empty();
    let bits = CapabilitiesSecureBits::NO_ROOT
        | CapabilitiesSecureBits::NO_ROOT_LOCKED
        | CapabilitiesSecureBits::NO_CAP_AMBIENT_RAISE
        | CapabilitiesSecureBits::NO_CAP_AMBIENT_RAISE_LOCKED;
    // A caller outside a jail may lack the permission; then it has none to drop either.
    match rustix::thread::set_capabilities_secure_bits(bits) {
        Ok(()) => drop_bounding_set()?,
        Err(Errno::PERM) => {}
        Err(errno) => return Err(errno),
    }
    rustix::thread::clear_ambient_capability_set()?;
    rustix::thread::set_capabilities(
        None,
        CapabilitySets {
            effective: none,
            permitted: none,
            inheritable: none,
        },
    )
}

fn drop_bounding_set() -> Result<(), Errno> {
    for bit in 0..u64::BITS {
        let capability = CapabilitySet::from_bits_retain(1 << bit);
        match rustix::thread::remove_capability_from_bounding_set(capability) {
            Ok(()) => {}
            // Beyond the last one that this kernel knows.
            Err(Errno::INVAL) => return Ok(()),
            Err(errno) => return Err(errno),
        }
    }
    Ok(())
}

#[expect(unsafe_code, reason = "keyctl(2)")]
fn join_session_keyring() {
    const JOIN_SESSION_KEYRING: libc::c_long = 1;
    // SAFETY: an anonymous keyring; the kernel reads nothing.
    unsafe {
        libc::syscall(
            libc::SYS_keyctl,
            JOIN_SESSION_KEYRING,
            std::ptr::null::<libc::c_char>(),
        )
    };
}
