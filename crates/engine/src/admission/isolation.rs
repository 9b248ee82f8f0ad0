//! The level asked, resolved once against what the place can do (D8).

use ostler_model::policy::DEFAULT_PIDS;
use ostler_model::{Abilities, Ability, Degraded, IsolationLevel, Limits, Policy};

use crate::error::Error;

/// What was asked, what is in force, what is missing.
///
/// # Errors
/// For levels that are not built: they are refused, never faked.
pub fn resolve(
    level: IsolationLevel,
    asked: Limits,
    abilities: &Abilities,
) -> Result<Policy, Error> {
    let mut limits = asked;
    let mut wanted = vec![
        Ability::CleanEnvironment,
        Ability::OwnGroup,
        Ability::TreeKill,
    ];
    match level {
        IsolationLevel::Basic => {}
        IsolationLevel::Medium => {
            limits.pids.get_or_insert(DEFAULT_PIDS);
            wanted.push(Ability::OwnCgroup);
        }
        IsolationLevel::High | IsolationLevel::Container => {
            return Err(Error::LevelNotBuilt { level });
        }
    }
    let by_limit = [
        (limits.pids.is_some(), Ability::PidsLimit),
        (limits.memory_bytes.is_some(), Ability::MemoryLimit),
        (limits.cpu_millis.is_some(), Ability::CpuLimit),
        (
            limits.open_files.is_some() || limits.file_bytes.is_some(),
            Ability::ProcessLimits,
        ),
    ];
    wanted.extend(by_limit.iter().filter(|(is, _)| *is).map(|(_, it)| *it));
    let (in_force, absent): (Vec<_>, Vec<_>) =
        wanted.into_iter().partition(|it| abilities.has(*it));
    Ok(Policy {
        level,
        limits,
        backend: abilities.backend,
        in_force,
        missing: absent
            .into_iter()
            .map(|ability| missing(abilities, ability))
            .collect(),
    })
}

fn missing(abilities: &Abilities, ability: Ability) -> Degraded {
    let told = abilities.missing.iter().find(|it| it.ability == ability);
    told.cloned().unwrap_or_else(|| Degraded {
        ability,
        reason: "this place cannot enforce it".to_owned(),
    })
}
