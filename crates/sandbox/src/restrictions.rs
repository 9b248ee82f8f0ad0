//! The restrictions of one command, applied between clone and exec in the order in which each is
//! possible: capabilities, no_new_privs, Landlock while descriptors can still be opened, and last
//! before exec the seccomp filter, which would refuse some of the others.

use ostler_model::{Capability, SandboxSpec};
use rustix::io::Errno;
use rustix::thread::{CapabilitiesSecureBits, CapabilitySet, CapabilitySets};

use crate::{landlock, seccomp};

/// Prepared restrictions: nothing is decided or allocated between clone and exec.
#[derive(Debug, Clone)]
pub struct Restrictions {
    drop_capabilities: bool,
    no_new_privileges: bool,
    landlock: Option<landlock::LandlockRuleset>,
    seccomp: Option<seccomp::SeccompFilter>,
}

impl Restrictions {
    /// The restrictions of a specification, except those its `without` names.
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

    /// Whether a specification needs a jail; without namespaces and a root of its own there is
    /// nothing to enter.
    #[must_use]
    pub fn needs_jail(spec: &SandboxSpec) -> bool {
        let without = &spec.without;
        !without.contains(&Capability::Namespaces) && !without.contains(&Capability::OwnRoot)
    }

    /// Applies everything but the filter. Makes system calls on memory prepared before.
    pub(crate) fn apply(&self) -> Result<(), Errno> {
        if self.drop_capabilities {
            drop_capabilities()?;
        }
        if self.no_new_privileges {
            rustix::thread::set_no_new_privs(true)?;
        }
        // A session keyring may be inherited from the caller; the command must not read its
        // contents. Where the quota of keyrings is exhausted, the filter still refuses their use.
        join_session_keyring();
        match &self.landlock {
            Some(rules) => rules.install(),
            None => Ok(()),
        }
    }

    /// Installs the filter: only exec may follow.
    pub(crate) fn apply_seccomp(&self) -> Result<(), Errno> {
        match &self.seccomp {
            Some(program) => program.install(),
            None => Ok(()),
        }
    }
}

/// Drops all capabilities so that none can be regained: not by an inside root's exec, not from a
/// file.
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
            // Beyond the last capability that this kernel knows.
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
