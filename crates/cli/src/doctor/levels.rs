//! What each level comes to on this machine.

use ostler_model::policy::Degraded;
use ostler_model::{
    Abilities, Ability, Asked, Confinement, IsolationLevel, Limits, Network, resolve,
};
use serde::Serialize;

use super::remedy;

/// One level.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Level {
    pub(super) level: IsolationLevel,
    /// Whether it is built at all.
    pub(super) built: bool,
    /// Whether nothing is missing.
    pub(super) whole: bool,
    pub(super) in_force: Vec<Ability>,
    pub(super) missing: Vec<Missing>,
}

/// A missing piece.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Missing {
    pub(super) ability: Ability,
    pub(super) reason: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) remedy: Option<&'static str>,
}

/// All levels. High is asked for with everything it can have: an overlay, an allow list, and
/// every limit.
pub(super) fn all(abilities: &Abilities) -> Vec<Level> {
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
        level(abilities, IsolationLevel::Basic, Limits::default()),
        level(abilities, IsolationLevel::Medium, medium),
        level(abilities, IsolationLevel::High, high),
        Level {
            level: IsolationLevel::Container,
            built: false,
            whole: false,
            in_force: Vec::new(),
            missing: Vec::new(),
        },
    ]
}

fn level(abilities: &Abilities, level: IsolationLevel, limits: Limits) -> Level {
    let confinement = (level == IsolationLevel::High).then(|| Confinement {
        workspace: Some("/".into()),
        overlay: true,
        network: Network::AllowList { hosts: Vec::new() },
        ..Confinement::default()
    });
    let asked = Asked {
        level,
        limits,
        demanded: Limits::default(),
        confinement,
        // Everything, so that all that is missing is told at once.
        degradable: Ability::ALL.to_vec(),
    };
    let (in_force, missing) = match resolve(asked, abilities) {
        Ok(policy) => (policy.in_force, policy.missing),
        Err(unmet) => (Vec::new(), unmet.missing),
    };
    Level {
        level,
        built: true,
        whole: missing.is_empty(),
        in_force,
        missing: missing.into_iter().map(told).collect(),
    }
}

fn told(missing: Degraded) -> Missing {
    Missing {
        ability: missing.ability,
        remedy: remedy::of(missing.ability),
        reason: missing.reason,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ostler_model::LimitBackend;

    #[test]
    fn a_machine_that_can_do_all_is_whole() {
        let abilities = Abilities {
            present: Ability::ALL.to_vec(),
            missing: Vec::new(),
            backend: LimitBackend::CgroupV2,
            root: true,
        };
        let whole = all(&abilities)
            .iter()
            .map(|it| it.whole)
            .collect::<Vec<_>>();
        assert_eq!(whole, [true, true, true, false]);
    }

    #[test]
    fn every_missing_piece_is_told_with_what_helps() {
        let abilities = Abilities {
            present: vec![
                Ability::CleanEnvironment,
                Ability::OwnGroup,
                Ability::TreeKill,
            ],
            ..Abilities::default()
        };
        let levels = all(&abilities);
        assert!(levels[0].whole && !levels[1].whole && !levels[2].whole);
        let lacks = |ability| levels[2].missing.iter().find(|it| it.ability == ability);
        for ability in [
            Ability::Landlock,
            Ability::Namespaces,
            Ability::Gate,
            Ability::Overlay,
        ] {
            assert!(
                lacks(ability).is_some_and(|it| it.remedy.is_some()),
                "{ability:?}"
            );
        }
    }
}
