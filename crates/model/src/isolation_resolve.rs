//! Resolution of a requested isolation level against the capabilities of a backend: what is in
//! force, what is missing, and whether that is allowed. Fails closed.

use crate::capability::{Capability, CapabilitySet, MissingCapability};
use crate::container::ContainerSpec;
use crate::isolation::{DEFAULT_PIDS, IsolationLevel, IsolationSpec, Limits};
use crate::sandbox_spec::{NetworkAccess, SandboxSpec};

/// The isolation that a request asks for.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct IsolationRequest {
    /// The requested level.
    pub level: IsolationLevel,
    /// The limits to apply; a field that is not set takes the level's default.
    pub limits: Limits,
    /// The limits that the request itself sets: no level drops these without the request's consent.
    pub demanded: Limits,
    /// The sandbox of level high; lower levels have none.
    pub confinement: Option<SandboxSpec>,
    /// The container of level container; other levels have none.
    pub container: Option<ContainerSpec>,
    /// The capabilities that may be missing without a refusal.
    pub degradable: Vec<Capability>,
}

/// The error for a level or a limit that cannot be enforced as requested.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("isolation level '{level}' cannot be had here: {}", list(.missing))]
pub struct UnmetIsolation {
    /// The requested level.
    pub level: IsolationLevel,
    /// The capabilities that are missing and were not declared dispensable.
    pub missing: Vec<MissingCapability>,
}

fn list(missing: &[MissingCapability]) -> String {
    let descriptions: Vec<String> = missing
        .iter()
        .map(|it| format!("{} ({})", it.ability.as_str(), it.reason))
        .collect();
    descriptions.join("; ")
}

/// Resolves a request against the capabilities of a backend.
///
/// # Errors
/// At levels high and container, when a capability is missing that was not declared dispensable; at
/// every level, when a limit is missing that the request itself sets.
pub fn resolve_isolation(
    request: IsolationRequest,
    abilities: &CapabilitySet,
) -> Result<IsolationSpec, UnmetIsolation> {
    let IsolationRequest {
        level,
        mut limits,
        mut demanded,
        confinement,
        container,
        degradable,
    } = request;
    if level >= IsolationLevel::Medium {
        limits.pids.get_or_insert(DEFAULT_PIDS);
    }
    // The default that every command gets is not a demand of this request.
    demanded.pids = demanded.pids.filter(|pids| *pids != DEFAULT_PIDS);
    let demanded: Vec<Capability> = limit_capabilities(demanded).collect();
    let mut required = match level {
        IsolationLevel::Container => container_capabilities(container.as_ref()),
        IsolationLevel::Basic | IsolationLevel::Medium | IsolationLevel::High => {
            required_capabilities(level, confinement.as_ref(), abilities.root)
        }
    };
    required.extend(limit_capabilities(limits));
    let is_available =
        |it: Capability| abilities.has(it) || is_limited_by_rlimit(it, level, abilities);
    let (in_force, unavailable): (Vec<_>, Vec<_>) =
        required.into_iter().partition(|it| is_available(*it));
    let missing: Vec<MissingCapability> = unavailable
        .into_iter()
        .map(|it| missing_capability(abilities, it))
        .collect();
    let refused: Vec<MissingCapability> = missing
        .iter()
        .filter(|it| {
            let is_enforced = level >= IsolationLevel::High || demanded.contains(&it.ability);
            is_enforced && !may_be_missing(it.ability, &degradable, abilities.root)
        })
        .cloned()
        .collect();
    if !refused.is_empty() {
        return Err(UnmetIsolation {
            level,
            missing: refused,
        });
    }
    // Level high always has a sandbox: without a requested one it gets the most restrictive.
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

/// In a user namespace of their own, processes are counted by setrlimit(2) as well as by a cgroup.
/// This is what an unprivileged user has without cgroup delegation.
fn is_limited_by_rlimit(
    ability: Capability,
    level: IsolationLevel,
    abilities: &CapabilitySet,
) -> bool {
    ability == Capability::PidsLimit
        && level == IsolationLevel::High
        && !abilities.root
        && abilities.has(Capability::Namespaces)
        && abilities.has(Capability::ProcessLimits)
}

/// Whether a capability may be missing. A sandboxed command of a root user must have ids that map
/// to no user of the host, else the sandbox is void: no request may do without. A cgroup isolates
/// nothing: an unprivileged user has none without delegation, and gets a warning; limits that need
/// one are reported missing by their own names.
fn may_be_missing(ability: Capability, degradable: &[Capability], root: bool) -> bool {
    let named = degradable.contains(&ability) && ability != Capability::SpareIds;
    named || (ability == Capability::OwnCgroup && !root)
}

/// The capabilities that a level other than container consists of.
fn required_capabilities(
    level: IsolationLevel,
    confinement: Option<&SandboxSpec>,
    root: bool,
) -> Vec<Capability> {
    use Capability::{
        CleanEnvironment, FreshProc, Gate, Landlock, MappedWorkspace, Namespaces, NetworkNamespace,
        NoCapabilities, NoNewPrivileges, Overlay, OwnCgroup, OwnGroup, OwnRoot, Seccomp, SpareIds,
        TreeKill,
    };
    let mut required = vec![CleanEnvironment, OwnGroup, TreeKill];
    if level >= IsolationLevel::Medium {
        required.push(OwnCgroup);
    }
    if level < IsolationLevel::High {
        return required;
    }
    required.extend([NoNewPrivileges, Namespaces, OwnRoot, FreshProc]);
    required.extend([NoCapabilities, Landlock, Seccomp]);
    if root {
        required.push(SpareIds);
    }
    let Some(confinement) = confinement else {
        return required;
    };
    let writes = confinement.workspace.is_some() || !confinement.write.is_empty();
    let conditional = [
        (root && writes, MappedWorkspace),
        (confinement.overlay, Overlay),
        (confinement.network != NetworkAccess::Full, NetworkNamespace),
        (needs_egress_proxy(confinement), Gate),
    ];
    required.extend(conditional.iter().filter(|(is, _)| *is).map(|(_, it)| *it));
    required
}

/// The capabilities that level container consists of. What a request was granted (a capability,
/// further privileges) is not among them; without a known container, all are.
fn container_capabilities(container: Option<&ContainerSpec>) -> Vec<Capability> {
    use Capability::{
        CleanEnvironment, FreshProc, Namespaces, NetworkNamespace, NoCapabilities, NoNewPrivileges,
        OwnCgroup, OwnGroup, OwnRoot, Seccomp, TreeKill,
    };
    let mut required = vec![CleanEnvironment, OwnGroup, TreeKill, OwnCgroup];
    required.extend([Namespaces, OwnRoot, FreshProc, Seccomp, NetworkNamespace]);
    let conditional = [
        (
            container.is_none_or(|it| it.cap_add.is_empty()),
            NoCapabilities,
        ),
        (
            container.is_none_or(|it| it.no_new_privileges),
            NoNewPrivileges,
        ),
    ];
    required.extend(conditional.iter().filter(|(is, _)| *is).map(|(_, it)| *it));
    required
}

/// Whether the sandbox needs the egress proxy, which carries connections into or out of it.
fn needs_egress_proxy(confinement: &SandboxSpec) -> bool {
    let listed = matches!(confinement.network, NetworkAccess::AllowList { .. });
    listed || !confinement.forwards.is_empty()
}

fn limit_capabilities(limits: Limits) -> impl Iterator<Item = Capability> {
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

fn missing_capability(abilities: &CapabilitySet, ability: Capability) -> MissingCapability {
    let known = abilities.missing.iter().find(|it| it.ability == ability);
    known.cloned().unwrap_or_else(|| MissingCapability {
        ability,
        reason: "this place cannot enforce it".to_owned(),
    })
}
