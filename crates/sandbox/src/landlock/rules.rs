//! Assigns Landlock rights to paths for each version: a pure function of the sandbox specification.

use std::ffi::CString;

use ostler_model::sandbox_spec::{DEFAULT_PORTS, HostRule, NetworkAccess, SandboxSpec};
use ostler_model::{ByteString, Capability};

use super::rights;

/// System directories that may be read and executed, as the view shows them.
pub const SYSTEM: &[&str] = &[
    "/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc", "/opt", "/nix", "/gnu",
    "/snap", "/sys", "/var",
];
/// Kernel file systems: values may be written, where the mounts allow it.
const KERNEL_DIRS: &[&str] = &["/proc", "/dev"];
/// Directories private to the command.
const PRIVATE_DIRS: &[&str] = &["/tmp", "/var/tmp", "/dev/shm", "/run"];

/// A path and the rights on it and everything below.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathRule {
    /// The path inside the view; a missing one makes the rule void.
    pub path: CString,
    /// Bits of [`rights`].
    pub allowed: u64,
}

/// A TCP port and the rights on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PortRule {
    /// The port.
    pub(super) port: u16,
    /// Bits of [`rights`].
    pub(super) allowed: u64,
}

/// A ruleset, ready to be installed between clone and exec.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LandlockRuleset {
    pub(super) abi: u32,
    pub(super) handled_fs: u64,
    pub(super) handled_net: u64,
    pub(super) scoped: u64,
    pub(super) paths: Vec<PathRule>,
    pub(super) ports: Vec<PortRule>,
}

impl LandlockRuleset {
    /// The ruleset of this specification for a kernel of this version ([`super::abi`]); rights a
    /// version does not support are left out ([`rights::missing_rights`] names them).
    #[must_use]
    pub fn new(spec: &SandboxSpec, abi: u32) -> Self {
        let abi = abi.min(rights::ABI_MAX);
        let handled_fs = rights::fs(abi);
        let (restricted, ports) = network_rules(spec);
        let handled_net = if restricted { rights::net(abi) } else { 0 };
        Self {
            abi,
            handled_fs,
            handled_net,
            scoped: rights::scopes(abi),
            paths: path_rules(spec, handled_fs),
            ports: ports.into_iter().filter(|_| handled_net != 0).collect(),
        }
    }

    /// The version it was made for.
    #[must_use]
    pub const fn abi(&self) -> u32 {
        self.abi
    }

    /// The rules on paths.
    #[must_use]
    pub fn paths(&self) -> &[PathRule] {
        &self.paths
    }

    /// The rights these rules give on a path: the union over its ancestors.
    #[must_use]
    pub fn allowed(&self, path: &std::path::Path) -> u64 {
        use std::os::unix::ffi::OsStrExt;
        let above =
            |rule: &&PathRule| path.starts_with(std::ffi::OsStr::from_bytes(rule.path.as_bytes()));
        let rules = self.paths.iter().filter(above);
        rules.fold(0, |rights, rule| rights | rule.allowed)
    }
}

fn path_rules(spec: &SandboxSpec, handled: u64) -> Vec<PathRule> {
    let fixed = |paths: &'static [&str], allowed| {
        let rule = move |path: &&str| PathRule {
            path: CString::new(*path).expect("no path of ours holds a null"),
            allowed,
        };
        paths.iter().map(rule)
    };
    // Parents of visible directories can be listed: the view contains nothing else there.
    let fixed = fixed(&["/"], rights::READ_DIR)
        .chain(fixed(SYSTEM, rights::READ))
        .chain(fixed(KERNEL_DIRS, rights::USE))
        .chain(fixed(PRIVATE_DIRS, rights::ALL));
    let writable = spec.workspace.iter().chain(&spec.home);
    let writable = writable.chain(&spec.write);
    let requested = writable
        .map(|path| (path, rights::ALL))
        .chain(spec.read.iter().map(|path| (path, rights::READ)))
        .chain(spec.scripts.iter().map(|path| (path, rights::READ)));
    let requested = requested.filter_map(|(path, allowed)| path_rule(path, allowed));
    let bound = |rule: PathRule| PathRule {
        allowed: rule.allowed & handled,
        ..rule
    };
    fixed.chain(requested).map(bound).collect()
}

/// None for a path that cannot exist.
fn path_rule(path: &ByteString, allowed: u64) -> Option<PathRule> {
    let path = CString::new(path.as_bytes()).ok()?;
    Some(PathRule { path, allowed })
}

/// Whether TCP is restricted here, and the ports that are allowed: only where the network is to be
/// isolated without a network namespace.
fn network_rules(spec: &SandboxSpec) -> (bool, Vec<PortRule>) {
    let hosts: &[HostRule] = match &spec.network {
        NetworkAccess::Full => return (false, Vec::new()),
        NetworkAccess::None => &[],
        NetworkAccess::AllowList { hosts } => hosts,
    };
    if !spec.without.contains(&Capability::NetworkNamespace) {
        return (false, Vec::new());
    }
    let ports = hosts.iter().flat_map(|rule| {
        if rule.ports.is_empty() {
            DEFAULT_PORTS.to_vec()
        } else {
            rule.ports.clone()
        }
    });
    let connect = |port| PortRule {
        port,
        allowed: rights::CONNECT_TCP,
    };
    (true, ports.map(connect).collect())
}
