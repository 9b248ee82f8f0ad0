//! What each isolation level provides on this machine.

use ostler_model::MissingCapability;
use ostler_model::{
    Capability, CapabilitySet, IsolationLevel, IsolationRequest, Limits, NetworkAccess,
    SandboxSpec, resolve_isolation,
};
use serde::Serialize;

use super::remedy;

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct LevelReport {
    pub(super) level: IsolationLevel,
    /// Whether nothing is missing.
    pub(super) whole: bool,
    pub(super) in_force: Vec<Capability>,
    pub(super) missing: Vec<CapabilityGap>,
    /// Why nothing of it is in force, where that is so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) problem: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct CapabilityGap {
    pub(super) ability: Capability,
    pub(super) reason: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) remedy: Option<&'static str>,
}

/// The levels besides container. Level high is requested with all options: an overlay, an allow list, and every
/// limit.
pub(super) fn host_levels(capabilities: &CapabilitySet) -> Vec<LevelReport> {
    let medium = Limits {
        pids: Some(1),
        memory_bytes: Some(1),
        cpu_millis: Some(1),
        ..Limits::default()
    };
    let high = Limits {
        open_files: Some(1),
        disk_bytes: Some(1),
        ..medium
    };
    vec![
        level(capabilities, IsolationLevel::Basic, Limits::default()),
        level(capabilities, IsolationLevel::Medium, medium),
        level(capabilities, IsolationLevel::High, high),
    ]
}

fn level(capabilities: &CapabilitySet, level: IsolationLevel, limits: Limits) -> LevelReport {
    let confinement = (level == IsolationLevel::High).then(|| SandboxSpec {
        workspace: Some("/".into()),
        overlay: true,
        network: NetworkAccess::AllowList { hosts: Vec::new() },
        ..SandboxSpec::default()
    });
    let request = IsolationRequest {
        level,
        limits,
        confinement,
        // All capabilities, so that everything that is missing is reported at once.
        degradable: Capability::ALL.to_vec(),
        ..IsolationRequest::default()
    };
    resolved(request, capabilities)
}

/// The level of a request that may do without everything.
pub(super) fn resolved(request: IsolationRequest, capabilities: &CapabilitySet) -> LevelReport {
    let level = request.level;
    let (in_force, missing) = match resolve_isolation(request, capabilities) {
        Ok(policy) => (policy.in_force, policy.missing),
        Err(unmet) => (Vec::new(), unmet.missing),
    };
    LevelReport {
        level,
        whole: missing.is_empty(),
        in_force,
        missing: missing.into_iter().map(with_remedy).collect(),
        problem: None,
    }
}

fn with_remedy(missing: MissingCapability) -> CapabilityGap {
    CapabilityGap {
        ability: missing.ability,
        remedy: remedy::remedy_for(missing.ability),
        reason: missing.reason,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ostler_model::LimitBackend;

    #[test]
    fn a_machine_that_can_do_all_is_whole() {
        let abilities = CapabilitySet {
            present: Capability::ALL.to_vec(),
            missing: Vec::new(),
            backend: LimitBackend::CgroupV2,
            root: true,
        };
        let whole = host_levels(&abilities)
            .iter()
            .map(|it| it.whole)
            .collect::<Vec<_>>();
        assert_eq!(whole, [true, true, true]);
    }

    #[test]
    fn every_missing_capability_is_reported_with_advice() {
        let abilities = CapabilitySet {
            present: vec![
                Capability::CleanEnvironment,
                Capability::OwnGroup,
                Capability::TreeKill,
            ],
            ..CapabilitySet::default()
        };
        let levels = host_levels(&abilities);
        assert!(levels[0].whole && !levels[1].whole && !levels[2].whole);
        let lacks = |ability| levels[2].missing.iter().find(|it| it.ability == ability);
        for ability in [
            Capability::Landlock,
            Capability::Namespaces,
            Capability::Gate,
            Capability::Overlay,
        ] {
            assert!(
                lacks(ability).is_some_and(|it| it.remedy.is_some()),
                "{ability:?}"
            );
        }
    }
}
