//! The facts about the host that a plan depends on, read once and passed on as data.

use std::collections::BTreeMap;
use std::ffi::{CString, OsString};
use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use ostler_model::{ByteString, SandboxSpec};

use crate::autorun;

/// System directories that are shown read-only, where they exist.
pub(super) const SYSTEM_PATHS: &[&str] = &[
    "/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc", "/opt", "/nix", "/gnu",
    "/snap",
];
/// What programs read of `/sys`: the number of processors and memory nodes, and the sizes of huge
/// pages. The rest of it reveals the host's devices, networks and cgroups.
pub(super) const SYS_PATHS: &[&str] = &[
    "/sys/devices/system/cpu",
    "/sys/devices/system/node",
    "/sys/kernel/mm/transparent_hugepage",
];
/// What ordinary tools read of `/var` and `/run`.
pub(super) const VAR_PATHS: &[&str] = &[
    "/var/lib/dpkg",
    "/var/lib/apt",
    "/var/lib/rpm",
    "/var/lib/pacman",
    "/var/lib/ca-certificates",
    "/var/lib/texmf",
    "/var/cache/fontconfig",
    "/var/cache/man",
    "/var/run",
    "/var/lock",
    "/run/current-system",
    "/run/opengl-driver",
];
/// Devices, all of them harmless.
pub(super) const DEVICES: &[&str] = &[
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
    "/dev/tty",
];
/// The resolver configuration.
pub(super) const RESOLV_CONF: &str = "/etc/resolv.conf";
/// The host's table of names (hosts(5)).
pub(super) const HOSTS: &str = "/etc/hosts";

/// Where this is protected, the configuration of submodules is, too.
const GIT_CONFIG: &str = ".git/config";

/// What exists at a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum HostEntry {
    Directory,
    File,
    /// A symbolic link and its target.
    Link(PathBuf),
}

/// The target of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ResolvedPath {
    /// The path without symbolic links.
    pub(super) path: PathBuf,
    /// Whether it is a directory.
    pub(super) directory: bool,
}

/// The facts about the host that a plan depends on.
#[derive(Debug, Clone, Default)]
pub struct HostFacts {
    pub(super) entries: BTreeMap<PathBuf, HostEntry>,
    pub(super) resolved: BTreeMap<PathBuf, ResolvedPath>,
    /// The limits of a jail on what the kernel counts per user.
    pub(super) quotas: Vec<UserQuota>,
    /// Protected paths that contain symbolic links, with their targets.
    pub(super) protected: BTreeMap<PathBuf, PathBuf>,
    /// Repositories of submodules, below the workspace.
    pub(super) submodules: Vec<PathBuf>,
}

impl HostFacts {
    /// Reads the system's directories and every path a sandbox names.
    #[must_use]
    pub fn read(spec: &SandboxSpec) -> Self {
        let mut host = Self {
            quotas: QUOTAS
                .iter()
                .filter_map(|name| UserQuota::read(name))
                .collect(),
            ..Self::default()
        };
        for path in SYSTEM_PATHS
            .iter()
            .chain(SYS_PATHS)
            .chain(VAR_PATHS)
            .chain(DEVICES)
        {
            if let Some(entry) = inspect(Path::new(path)) {
                host.entries.insert(PathBuf::from(path), entry);
            }
        }
        let named = [&spec.read, &spec.write, &spec.hide];
        let named = named.into_iter().flatten();
        let named = named.chain(&spec.workspace).chain(&spec.home);
        let named = named.chain(&spec.scripts);
        for path in named
            .map(ByteString::as_path)
            .chain([RESOLV_CONF, HOSTS].map(Path::new))
        {
            if let Ok(real) = fs::canonicalize(path) {
                let directory = real.is_dir();
                let resolved = ResolvedPath {
                    path: real,
                    directory,
                };
                host.resolved.insert(path.to_owned(), resolved);
            }
        }
        host.resolve_protected(spec);
        host
    }

    fn resolve_protected(&mut self, spec: &SandboxSpec) {
        let Some(workspace) = spec.workspace.as_ref().map(ByteString::as_path) else {
            return;
        };
        if spec
            .protect
            .iter()
            .any(|it| it.as_path() == Path::new(GIT_CONFIG))
        {
            let found = autorun::repositories(workspace).into_iter().skip(1);
            let path = |it: Vec<u8>| workspace.join(OsString::from_vec(it));
            self.submodules = found.map(path).collect();
        }
        for named in spec.protect.iter().map(ByteString::as_path) {
            if let Some(real) = resolve(&workspace.join(named)) {
                self.protected.insert(named.to_owned(), real);
            }
        }
    }
}

/// Per-user limits of namespaces(7) that are divided among jails; their files are in
/// `/proc/sys/user`.
const QUOTAS: &[&str] = &["max_inotify_instances", "max_inotify_watches"];
/// The share of a jail in a user's limit: one part in this many.
const QUOTA_SHARE: u64 = 4;

/// A limit of a jail.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct UserQuota {
    /// The file, relative to the root.
    pub(super) file: CString,
    pub(super) limit: u64,
}

impl UserQuota {
    /// Reads a limit; none where the kernel does not have it.
    fn read(name: &str) -> Option<Self> {
        let file = format!("proc/sys/user/{name}");
        let text = fs::read_to_string(Path::new("/").join(&file)).ok()?;
        let users: u64 = text.trim().parse().ok()?;
        Some(Self {
            file: CString::new(file).ok()?,
            limit: (users / QUOTA_SHARE).max(1),
        })
    }
}

/// Resolves a path whose last component may be missing.
fn resolve(path: &Path) -> Option<PathBuf> {
    if let Ok(real) = fs::canonicalize(path) {
        return Some(real);
    }
    let above = fs::canonicalize(path.parent()?).ok()?;
    Some(above.join(path.file_name()?))
}

fn inspect(path: &Path) -> Option<HostEntry> {
    let metadata = fs::symlink_metadata(path).ok()?;
    if metadata.is_symlink() {
        return fs::read_link(path).ok().map(HostEntry::Link);
    }
    Some(if metadata.is_dir() {
        HostEntry::Directory
    } else {
        HostEntry::File
    })
}
