//! What containers enforce.

use ostler_model::{Capability, CapabilitySet, LimitBackend, MissingCapability};

use crate::engine::EngineFacts;

/// What every container has, by the runner and the shim or by how it is made.
const ALWAYS: [Capability; 10] = [
    // The runner is given all variables, and adds the image's.
    Capability::CleanEnvironment,
    Capability::OwnGroup,
    Capability::TreeKill,
    Capability::OwnCgroup,
    Capability::ProcessLimits,
    Capability::NoNewPrivileges,
    Capability::Namespaces,
    Capability::OwnRoot,
    Capability::FreshProc,
    // But those that the settings allow and the request names.
    Capability::NoCapabilities,
];

/// What containers have as the local backend has it: both are matters of shims.
const OF_LOCAL: [Capability; 2] = [Capability::Durable, Capability::DiskLimit];

/// What no container has, and why.
const NEVER: [(Capability, &str); 5] = [
    (
        Capability::MappedWorkspace,
        "a container's workspace has the host's owners",
    ),
    (
        Capability::Overlay,
        "a container writes to the workspace itself",
    ),
    (
        Capability::Landlock,
        "a container sees nothing that Landlock would hide: only what is mounted in it",
    ),
    (
        Capability::Gate,
        "hosts are not listed for containers: their network is all or nothing",
    ),
    (
        Capability::Freezer,
        "processes of a container are stopped by signals, which they can see",
    ),
];

/// What containers enforce, by an engine that was found, or by any where none was found yet:
/// [`check_container`](ostler_backend::Backend::check_container) refuses without one.
pub(crate) fn container_capabilities(
    local: &CapabilitySet,
    engine: Option<&EngineFacts>,
) -> CapabilitySet {
    let mut present: Vec<Capability> = ALWAYS.to_vec();
    present.push(Capability::NetworkNamespace);
    let mut missing = Vec::new();
    for (ability, reason) in NEVER {
        missing.push(lack(ability, reason));
    }
    for ability in OF_LOCAL {
        if local.has(ability) {
            present.push(ability);
        } else {
            missing.extend(
                local
                    .missing
                    .iter()
                    .find(|it| it.ability == ability)
                    .cloned(),
            );
        }
    }
    let says = |has: fn(&EngineFacts) -> bool| engine.is_none_or(has);
    let own_users = |it: &EngineFacts| it.rootless || it.remaps_users;
    for (ability, is_present, reason) in [
        (
            Capability::PidsLimit,
            says(|it| it.limits_pids),
            "the container engine limits no processes here",
        ),
        (
            Capability::MemoryLimit,
            says(|it| it.limits_memory),
            "the container engine limits no memory here",
        ),
        (
            Capability::CpuLimit,
            says(|it| it.limits_cpu),
            "the container engine limits no processor time here",
        ),
        (
            Capability::Seccomp,
            says(|it| it.has_seccomp),
            "the container engine filters no system calls here",
        ),
        (
            Capability::SpareIds,
            engine.is_some_and(own_users),
            "the container engine maps users of containers to those of the host",
        ),
    ] {
        if is_present {
            present.push(ability);
        } else {
            missing.push(lack(ability, reason));
        }
    }
    CapabilitySet {
        present,
        missing,
        backend: match engine.map(|it| it.cgroup_version.as_str()) {
            Some("1") => LimitBackend::CgroupV1,
            _ => LimitBackend::CgroupV2,
        },
        // Commands are started by the engine, whoever asks for them.
        root: false,
    }
}

fn lack(ability: Capability, reason: &str) -> MissingCapability {
    MissingCapability {
        ability,
        reason: reason.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_capability_is_present_or_missing_with_a_reason() {
        let mut local = CapabilitySet {
            present: vec![Capability::Durable, Capability::DiskLimit],
            ..CapabilitySet::default()
        };
        let check = |set: &CapabilitySet| {
            for ability in Capability::ALL {
                let missing = set.missing.iter().filter(|it| it.ability == ability);
                let count = usize::from(set.has(ability)) + missing.count();
                assert_eq!(count, 1, "{}", ability.as_str());
            }
        };
        check(&container_capabilities(&local, None));
        local.missing = vec![lack(Capability::Durable, "no keeper")];
        local.present = vec![Capability::DiskLimit];
        let set = container_capabilities(&local, None);
        check(&set);
        assert!(!set.has(Capability::Durable), "as the local backend");
    }
}
