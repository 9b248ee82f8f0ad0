//! The level asked, resolved once against what the place can do (D8): what is in force, what
//! is missing, and whether that is allowed. Fails closed.

use crate::confinement::{Confinement, Network};
use crate::evidence::{Abilities, Ability};
use crate::policy::{DEFAULT_PIDS, Degraded, IsolationLevel, Limits, Policy};

/// What a request asks for.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Asked {
    /// The level.
    pub level: IsolationLevel,
    /// Limits; none of a field takes the level's default.
    pub limits: Limits,
    /// Those of the limits that the request itself asks for: at no level are they dropped
    /// without its consent.
    pub demanded: Limits,
    /// The walls of level high; lower levels have none.
    pub confinement: Option<Confinement>,
    /// What may be missing without a refusal.
    pub degradable: Vec<Ability>,
}

/// A level, or a limit, cannot be had as it was asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("isolation level '{level}' cannot be had here: {}", list(.missing))]
pub struct Unmet {
    /// What was asked.
    pub level: IsolationLevel,
    /// What is missing and was not allowed to be.
    pub missing: Vec<Degraded>,
}

fn list(missing: &[Degraded]) -> String {
    let told: Vec<String> = missing
        .iter()
        .map(|it| format!("{} ({})", it.ability.as_str(), it.reason))
        .collect();
    told.join("; ")
}

/// What was asked, what is in force, what is missing.
///
/// # Errors
/// At level high and container, what is missing and was not said to be dispensable; at every
/// level, limits the request itself asks for.
pub fn resolve(asked: Asked, abilities: &Abilities) -> Result<Policy, Unmet> {
    let Asked {
        level,
        mut limits,
        mut demanded,
        confinement,
        degradable,
    } = asked;
    if level >= IsolationLevel::Medium {
        limits.pids.get_or_insert(DEFAULT_PIDS);
    }
    // What every command gets is nobody's demand.
    demanded.pids = demanded.pids.filter(|pids| *pids != DEFAULT_PIDS);
    let demanded: Vec<Ability> = by_limits(demanded).collect();
    let mut wanted = wanted(level, confinement.as_ref(), abilities.root);
    wanted.extend(by_limits(limits));
    let is_there = |it: Ability| abilities.has(it) || is_counted(it, level, abilities);
    let (in_force, absent): (Vec<_>, Vec<_>) = wanted.into_iter().partition(|it| is_there(*it));
    let missing: Vec<Degraded> = absent.into_iter().map(|it| reason(abilities, it)).collect();
    let closed: Vec<Degraded> = missing
        .iter()
        .filter(|it| {
            let held = level >= IsolationLevel::High || demanded.contains(&it.ability);
            held && !may_lack(it.ability, &degradable, abilities.root)
        })
        .cloned()
        .collect();
    if !closed.is_empty() {
        return Err(Unmet {
            level,
            missing: closed,
        });
    }
    // Level high is never without walls: nothing asked for means the tightest there are.
    let confinement = (level == IsolationLevel::High).then(|| Confinement {
        without: missing.iter().map(|it| it.ability).collect(),
        ..confinement.unwrap_or_default()
    });
    Ok(Policy {
        level,
        confinement,
        limits,
        backend: abilities.backend,
        in_force,
        missing,
    })
}

/// In a user namespace of their own, processes are counted by setrlimit(2) as well as by a
/// cgroup: what an ordinary user has without delegation.
fn is_counted(ability: Ability, level: IsolationLevel, abilities: &Abilities) -> bool {
    ability == Ability::PidsLimit
        && level == IsolationLevel::High
        && !abilities.root
        && abilities.has(Ability::Namespaces)
        && abilities.has(Ability::ProcessLimits)
}

/// Root behind walls is nobody on the host, or the walls are none: no request does without. A
/// cgroup is no wall: an ordinary user has none without delegation, and is told so; limits that
/// need one are missing by their own names.
fn may_lack(ability: Ability, degradable: &[Ability], root: bool) -> bool {
    let named = degradable.contains(&ability) && ability != Ability::SpareIds;
    named || (ability == Ability::OwnCgroup && !root)
}

/// What a level consists of.
fn wanted(level: IsolationLevel, confinement: Option<&Confinement>, root: bool) -> Vec<Ability> {
    use Ability::{
        CleanEnvironment, FreshProc, Gate, Landlock, MappedWorkspace, Namespaces, NetworkNamespace,
        NoCapabilities, NoNewPrivileges, Overlay, OwnCgroup, OwnGroup, OwnRoot, Seccomp, SpareIds,
        TreeKill,
    };
    let mut wanted = vec![CleanEnvironment, OwnGroup, TreeKill];
    if level >= IsolationLevel::Medium {
        wanted.push(OwnCgroup);
    }
    if level < IsolationLevel::High {
        return wanted;
    }
    wanted.extend([NoNewPrivileges, Namespaces, OwnRoot, FreshProc]);
    wanted.extend([NoCapabilities, Landlock, Seccomp]);
    if root {
        wanted.push(SpareIds);
    }
    let Some(confinement) = confinement else {
        return wanted;
    };
    let writes = confinement.workspace.is_some() || !confinement.write.is_empty();
    let by_need = [
        (root && writes, MappedWorkspace),
        (confinement.overlay, Overlay),
        (confinement.network != Network::Full, NetworkNamespace),
        (needs_gate(confinement), Gate),
    ];
    wanted.extend(by_need.iter().filter(|(is, _)| *is).map(|(_, it)| *it));
    wanted
}

/// Whether somebody must carry connections into or out of it.
fn needs_gate(confinement: &Confinement) -> bool {
    let listed = matches!(confinement.network, Network::AllowList { .. });
    listed || !confinement.forwards.is_empty()
}

fn by_limits(limits: Limits) -> impl Iterator<Item = Ability> {
    let processes = limits.open_files.is_some() || limits.file_bytes.is_some();
    [
        (limits.pids.is_some(), Ability::PidsLimit),
        (limits.memory_bytes.is_some(), Ability::MemoryLimit),
        (limits.cpu_millis.is_some(), Ability::CpuLimit),
        (processes, Ability::ProcessLimits),
        (limits.disk_bytes.is_some(), Ability::DiskLimit),
    ]
    .into_iter()
    .filter(|(is, _)| *is)
    .map(|(_, it)| it)
}

fn reason(abilities: &Abilities, ability: Ability) -> Degraded {
    let told = abilities.missing.iter().find(|it| it.ability == ability);
    told.cloned().unwrap_or_else(|| Degraded {
        ability,
        reason: "this place cannot enforce it".to_owned(),
    })
}
