//! The level asked, resolved once against what the place can do (D8): what is in force, what
//! is missing, and whether that is allowed. Fails closed.

use crate::isolation::{DEFAULT_PIDS, IsolationLevel, IsolationSpec, Limits, MissingCapability};
use crate::sandbox_spec::{NetworkAccess, SandboxSpec};
use crate::snapshot::{Capability, CapabilitySet};

/// What a request asks for.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct IsolationRequest {
    /// The level.
    pub level: IsolationLevel,
    /// Limits; none of a field takes the level's default.
    pub limits: Limits,
    /// Those of the limits that the request itself asks for: at no level are they dropped
    /// without its consent.
    pub demanded: Limits,
    /// The walls of level high; lower levels have none.
    pub confinement: Option<SandboxSpec>,
    /// What may be missing without a refusal.
    pub degradable: Vec<Capability>,
}

/// A level, or a limit, cannot be had as it was asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("isolation level '{level}' cannot be had here: {}", list(.missing))]
pub struct UnmetIsolation {
    /// What was asked.
    pub level: IsolationLevel,
    /// What is missing and was not allowed to be.
    pub missing: Vec<MissingCapability>,
}

fn list(missing: &[MissingCapability]) -> String {
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
pub fn resolve_isolation(
    asked: IsolationRequest,
    abilities: &CapabilitySet,
) -> Result<IsolationSpec, UnmetIsolation> {
    let IsolationRequest {
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
    let demanded: Vec<Capability> = by_limits(demanded).collect();
    let mut wanted = wanted(level, confinement.as_ref(), abilities.root);
    wanted.extend(by_limits(limits));
    let is_there = |it: Capability| abilities.has(it) || is_counted(it, level, abilities);
    let (in_force, absent): (Vec<_>, Vec<_>) = wanted.into_iter().partition(|it| is_there(*it));
    let missing: Vec<MissingCapability> =
        absent.into_iter().map(|it| reason(abilities, it)).collect();
    let closed: Vec<MissingCapability> = missing
        .iter()
        .filter(|it| {
            let held = level >= IsolationLevel::High || demanded.contains(&it.ability);
            held && !may_lack(it.ability, &degradable, abilities.root)
        })
        .cloned()
        .collect();
    if !closed.is_empty() {
        return Err(UnmetIsolation {
            level,
            missing: closed,
        });
    }
    // Level high is never without walls: nothing asked for means the tightest there are.
    let confinement = (level == IsolationLevel::High).then(|| SandboxSpec {
        without: missing.iter().map(|it| it.ability).collect(),
        ..confinement.unwrap_or_default()
    });
    Ok(IsolationSpec {
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
fn is_counted(ability: Capability, level: IsolationLevel, abilities: &CapabilitySet) -> bool {
    ability == Capability::PidsLimit
        && level == IsolationLevel::High
        && !abilities.root
        && abilities.has(Capability::Namespaces)
        && abilities.has(Capability::ProcessLimits)
}

/// Root behind walls is nobody on the host, or the walls are none: no request does without. A
/// cgroup is no wall: an ordinary user has none without delegation, and is told so; limits that
/// need one are missing by their own names.
fn may_lack(ability: Capability, degradable: &[Capability], root: bool) -> bool {
    let named = degradable.contains(&ability) && ability != Capability::SpareIds;
    named || (ability == Capability::OwnCgroup && !root)
}

/// What a level consists of.
fn wanted(level: IsolationLevel, confinement: Option<&SandboxSpec>, root: bool) -> Vec<Capability> {
    use Capability::{
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
        (confinement.network != NetworkAccess::Full, NetworkNamespace),
        (needs_gate(confinement), Gate),
    ];
    wanted.extend(by_need.iter().filter(|(is, _)| *is).map(|(_, it)| *it));
    wanted
}

/// Whether somebody must carry connections into or out of it.
fn needs_gate(confinement: &SandboxSpec) -> bool {
    let listed = matches!(confinement.network, NetworkAccess::AllowList { .. });
    listed || !confinement.forwards.is_empty()
}

fn by_limits(limits: Limits) -> impl Iterator<Item = Capability> {
    let processes = limits.open_files.is_some() || limits.file_bytes.is_some();
    [
        (limits.pids.is_some(), Capability::PidsLimit),
        (limits.memory_bytes.is_some(), Capability::MemoryLimit),
        (limits.cpu_millis.is_some(), Capability::CpuLimit),
        (processes, Capability::ProcessLimits),
        (limits.disk_bytes.is_some(), Capability::DiskLimit),
    ]
    .into_iter()
    .filter(|(is, _)| *is)
    .map(|(_, it)| it)
}

fn reason(abilities: &CapabilitySet, ability: Capability) -> MissingCapability {
    let told = abilities.missing.iter().find(|it| it.ability == ability);
    told.cloned().unwrap_or_else(|| MissingCapability {
        ability,
        reason: "this place cannot enforce it".to_owned(),
    })
}
