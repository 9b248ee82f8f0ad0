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

/// What containers of this engine enforce.
pub(crate) fn container_capabilities(local: &CapabilitySet, engine: &EngineFacts) -> CapabilitySet {
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
    for (ability, is_present, reason) in [
        (
            Capability::PidsLimit,
            engine.limits_pids,
            "the container engine limits no processes here",
        ),
        (
            Capability::MemoryLimit,
            engine.limits_memory,
            "the container engine limits no memory here",
        ),
        (
            Capability::CpuLimit,
            engine.limits_cpu,
            "the container engine limits no processor time here",
        ),
        (
            Capability::Seccomp,
            engine.has_seccomp,
            "the container engine filters no system calls here",
        ),
        (
            Capability::SpareIds,
            engine.rootless || engine.remaps_users,
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
        backend: if engine.cgroup_version == "1" {
            LimitBackend::CgroupV1
        } else {
            LimitBackend::CgroupV2
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
    use crate::fixtures;

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
        check(&container_capabilities(&local, &fixtures::engine_facts()));
        local.missing = vec![lack(Capability::Durable, "no keeper")];
        local.present = vec![Capability::DiskLimit];
        let mut engine = fixtures::engine_facts();
        engine.limits_memory = false;
        let set = container_capabilities(&local, &engine);
        check(&set);
        assert!(!set.has(Capability::MemoryLimit), "as the engine says");
        assert!(!set.has(Capability::Durable), "as the local backend");
    }
}
