//! Probes level high as a whole: spawns once into a temporary jail. Reading settings would not be
//! enough: some kernels grant namespaces and then refuse what is done in them.

use std::ffi::CString;
use std::os::fd::AsFd;

use ostler_model::{Capability, CapabilitySet, SandboxSpec};
use rustix::fs::{Mode, OFlags, open};

use super::RecordCapability;
use crate::jail::namespace_hint;
use crate::spawn::{self, CArray, Pages, STACK_BYTES, SpawnSpec, SpawnStep, SpawnStepError};
use crate::{HostFacts, Jail, JailError, JailOptions, JailPlan, Restrictions, landlock, seccomp};

/// A path without a file: a spawn that fails only at exec has applied every restriction.
const MISSING_PROGRAM: &std::ffi::CStr = c"/nothing-is-here";

/// Records every isolation feature, each missing one with the step at which it fails and advice.
pub(super) fn probe_sandbox(capabilities: &mut CapabilitySet) {
    capabilities.root = rustix::process::geteuid().is_root();
    let mut without = Vec::new();
    let mut jail = try_build(&without);
    // Without the features that can be probed separately, the rest may work.
    for _ in [Capability::NetworkNamespace, Capability::FreshProc] {
        let Err(error) = &jail else { break };
        let Some(ability) = separable_capability(error, &without) else {
            break;
        };
        let reason = describe(error);
        without.push(ability);
        let next = try_build(&without);
        let helped = next.as_ref().is_ok_and(|_| true)
            || next.as_ref().is_err_and(|it| it.step != error.step);
        if helped {
            capabilities.record(ability, false, &reason);
            jail = next;
        } else {
            without.pop();
            break;
        }
    }
    record_jail(capabilities, &jail, &without);
    record_restrictions(capabilities, jail.ok(), &without);
}

/// The one capability a failure may be due to.
fn separable_capability(error: &JailError, without: &[Capability]) -> Option<Capability> {
    let capability = match error.step {
        "namespaces" | "loopback" => Capability::NetworkNamespace,
        // Limits are set through it.
        "fresh /proc" | "quota of the kernel" => Capability::FreshProc,
        _ => return None,
    };
    (!without.contains(&capability)).then_some(capability)
}

fn minimal_spec(without: &[Capability]) -> SandboxSpec {
    SandboxSpec {
        without: without.to_vec(),
        ..SandboxSpec::default()
    }
}

fn try_build(without: &[Capability]) -> Result<Jail, JailError> {
    let spec = minimal_spec(without);
    let plan = JailPlan::compile(&spec, &HostFacts::read(&spec))?;
    Jail::build(&plan, JailOptions::default())
}

/// A failure as text: the step, the kernel's error, what to do.
fn describe(error: &JailError) -> String {
    match namespace_hint() {
        Some(remedy) => format!("{error}; {remedy}"),
        None => error.to_string(),
    }
}

fn record_jail(
    capabilities: &mut CapabilitySet,
    jail: &Result<Jail, JailError>,
    without: &[Capability],
) {
    let (namespaces, root, spare) = match jail {
        Ok(_) => (None, None, None),
        Err(error) => match error.step {
            "spare ids" | "id map" if capabilities.root => (
                Some(describe(error)),
                Some(describe(error)),
                Some(describe(error)),
            ),
            "namespaces" | "id map" | "socket" | "warden" => {
                (Some(describe(error)), Some(describe(error)), None)
            }
            _ => (None, Some(describe(error)), None),
        },
    };
    let record = |abilities: &mut CapabilitySet, ability, reason: &Option<String>| {
        if !without.contains(&ability) {
            let reason = reason.as_deref();
            abilities.record(ability, reason.is_none(), reason.unwrap_or_default());
        }
    };
    record(capabilities, Capability::Namespaces, &namespaces);
    record(capabilities, Capability::NetworkNamespace, &namespaces);
    record(capabilities, Capability::OwnRoot, &root);
    record(capabilities, Capability::FreshProc, &root);
    // Whether a given file system supports these is probed by `fs_probe`.
    record(capabilities, Capability::Overlay, &root);
    if capabilities.root {
        record(capabilities, Capability::SpareIds, &spare);
        record(capabilities, Capability::MappedWorkspace, &root);
    }
}

/// Applies the restrictions to a command that does not exist.
fn record_restrictions(
    capabilities: &mut CapabilitySet,
    jail: Option<Jail>,
    without: &[Capability],
) {
    let landlock = landlock::unavailable_reason();
    let seccomp = seccomp::unavailable_reason();
    let mut spec = minimal_spec(without);
    if landlock.is_some() {
        spec.without.push(Capability::Landlock);
    }
    if seccomp.is_some() {
        spec.without.push(Capability::Seccomp);
    }
    let result = try_spawn(&Restrictions::new(&spec), jail.as_ref());
    let failed = result.err().map(|failure| {
        let reason = std::io::Error::from_raw_os_error(failure.errno.raw_os_error());
        format!("{}: {reason}", failure.step.name())
    });
    for (ability, missing) in [
        (Capability::NoNewPrivileges, None),
        (Capability::NoCapabilities, None),
        (Capability::Landlock, landlock),
        (Capability::Seccomp, seccomp),
    ] {
        let missing = missing.or_else(|| failed.clone());
        capabilities.record(ability, missing.is_none(), &missing.unwrap_or_default());
    }
}

fn try_spawn(restrictions: &Restrictions, jail: Option<&Jail>) -> Result<(), SpawnStepError> {
    let at = |step| move |errno| SpawnStepError { step, errno };
    let null = open(c"/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty());
    let null = null.map_err(at(SpawnStep::Stdio))?;
    let null = rustix::io::fcntl_dupfd_cloexec(&null, 3).map_err(at(SpawnStep::Stdio))?;
    let none = CArray::new(Vec::<CString>::new());
    let spec = SpawnSpec {
        program: MISSING_PROGRAM,
        expected: None,
        argv: &none,
        env: &none,
        cwd: c"/",
        stdio: [null.as_fd(), null.as_fd(), null.as_fd()],
        terminal: false,
        leads_session: false,
        cgroup_procs: &[],
        cgroup: None,
        dies_with_parent: false,
        reset_signals: &[],
        soft_open_files: None,
        rlimits: &[],
        jail,
        restrictions: Some(restrictions),
    };
    let mut stack = Pages::map(STACK_BYTES).map_err(at(SpawnStep::Clone))?;
    match spawn::spawn(&spec, &mut stack) {
        Ok(child) => {
            spawn::wait::reap_blocking(child.pid);
            Ok(())
        }
        Err(failure) if failure.step == SpawnStep::Exec => Ok(()),
        Err(failure) => Err(failure),
    }
}
