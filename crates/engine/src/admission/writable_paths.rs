//! Which directories isolation level high, and a container, may expose writable. The decision depends on where a
//! directory lies under every name it has, who owns it and its parents, and which file system it is
//! on. Pure; the facts come from [`super::path_facts`].

use std::fmt;
use std::path::{Path, PathBuf};

/// Trees of the operating system (hier(7), file-hierarchy(7)): writing there changes what other
/// users run. Workspaces below them must be listed in the settings.
const SYSTEM_TREES: [&str; 20] = [
    "/bin",
    "/boot",
    "/dev",
    "/etc",
    "/gnu",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/nix",
    "/opt",
    "/proc",
    "/run",
    "/sbin",
    "/snap",
    "/srv",
    "/sys",
    "/usr",
    "/var",
    "/lost+found",
];
/// Below a system tree, but shared by all users.
const TEMPORARY: &str = "/var/tmp";
/// Directories that contain those of several users; a directory below them may be a workspace.
const SHARED: [&str; 8] = [
    "/", "/home", "/media", "/mnt", "/root", "/tmp", "/var/tmp", "/Users",
];

/// The facts about one directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PathFacts {
    /// Its path without symbolic links.
    pub(super) path: PathBuf,
    /// Other paths of the same directory, by other mounts.
    pub(super) aliases: Vec<PathBuf>,
    /// The owner's user id.
    pub(super) owner: u32,
    /// The owners of its ancestors, from its parent up to the root.
    pub(super) ancestor_owners: Vec<u32>,
    /// The type of its file system, as in /proc/self/mountinfo.
    pub(super) filesystem: String,
    /// Whether it is the mount point of a whole block device.
    pub(super) is_device_root: bool,
}

/// The rules for writable directories.
#[derive(Debug, Clone, Default)]
pub(super) struct WritableRules<'a> {
    /// The engine's user id.
    pub(super) uid: u32,
    /// The home directory of the engine's user, without symbolic links: the only one that may lie
    /// in a system tree, since a request cannot name it.
    pub(super) own_home: Option<&'a Path>,
    /// Other home directories: that of the request.
    pub(super) other_homes: Vec<&'a Path>,
    /// Directories below a home directory from which programs are run.
    pub(super) toolchains: Vec<&'a Path>,
    /// The engine's own directories, and those that the settings hide.
    pub(super) hidden: Vec<&'a Path>,
    /// The permitted workspaces of the settings, without symbolic links; none permits the caller's
    /// own directories.
    pub(super) workspaces: Option<Vec<&'a Path>>,
    /// Whether directories of other users are permitted, too.
    pub(super) any_owner: bool,
    /// The directory that the engine created for the context of this start: permitted wherever it is.
    pub(super) context: Option<&'a Path>,
}

impl WritableRules<'_> {
    fn homes(&self) -> impl Iterator<Item = &Path> {
        self.own_home.iter().chain(&self.other_homes).copied()
    }
}

/// Why a directory may not be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum UnwritableReason {
    /// It is in this tree of the operating system.
    System(PathBuf),
    /// Directories of several users lie in it.
    Shared,
    /// It is the home directory, or contains it.
    HoldsHome,
    /// A directory of the home that holds settings and credentials.
    HomeSettings(PathBuf),
    /// A directory of the home from which programs are run.
    Toolchain(PathBuf),
    /// It belongs to the engine, or the settings hide it.
    Hidden,
    /// It, or one of its parents, belongs to another user.
    OtherOwner { owner: u32, ancestor: bool },
    /// A pseudo file system of the kernel.
    PseudoFilesystem(String),
    /// The root of a mounted device.
    DeviceRoot,
    /// It is in none of the workspaces that the settings list.
    NotListed,
}

impl fmt::Display for UnwritableReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let listed = "the setting isolation.workspaces can permit it";
        match self {
            Self::System(name) => {
                let name = name.display();
                write!(f, "it belongs to the system ({name}); {listed}")
            }
            Self::Shared => {
                f.write_str("it is shared by everything on this machine; name a directory below it")
            }
            Self::HoldsHome => f.write_str(
                "it holds the home directory, which levels high and container hide; name a directory below it",
            ),
            Self::HomeSettings(path) => {
                let path = path.display();
                write!(
                    f,
                    "{path} holds settings or credentials of the user; {listed}"
                )
            }
            Self::Toolchain(path) => {
                let path = path.display();
                write!(f, "programs of the user are run from {path}; {listed}")
            }
            Self::Hidden => f.write_str("it belongs to Ostler, or the settings hide it"),
            Self::OtherOwner { owner, ancestor } => {
                let what = if *ancestor {
                    "a directory that leads to it"
                } else {
                    "it"
                };
                write!(f, "{what} belongs to another user (uid {owner}); {listed}")
            }
            Self::PseudoFilesystem(name) => {
                write!(f, "it is on a file system of the kernel ({name})")
            }
            Self::DeviceRoot => write!(
                f,
                "a whole device is mounted there; name a directory below it, or {listed}"
            ),
            Self::NotListed => {
                f.write_str("the setting isolation.workspaces permits other directories only")
            }
        }
    }
}

/// File systems whose files are the kernel's controls, not data (proc(5), sysfs(5), filesystems(5)).
const PSEUDO_FILESYSTEMS: [&str; 21] = [
    "autofs",
    "binfmt_misc",
    "bpf",
    "cgroup",
    "cgroup2",
    "configfs",
    "debugfs",
    "devpts",
    "devtmpfs",
    "efivarfs",
    "fusectl",
    "hugetlbfs",
    "mqueue",
    "nsfs",
    "proc",
    "pstore",
    "ramfs",
    "rpc_pipefs",
    "securityfs",
    "sysfs",
    "tracefs",
];

/// Whether level high may show this directory writable.
///
/// # Errors
/// The first reason against it. Permission by the settings overrides reasons of location and owner,
/// but not what the engine hides and not pseudo file systems.
pub(super) fn check(facts: &PathFacts, rules: &WritableRules<'_>) -> Result<(), UnwritableReason> {
    let names = || std::iter::once(&facts.path).chain(&facts.aliases);
    let within = |dirs: &[&Path]| names().any(|name| dirs.iter().any(|dir| name.starts_with(dir)));
    if within(&rules.hidden) {
        return Err(UnwritableReason::Hidden);
    }
    if PSEUDO_FILESYSTEMS.contains(&facts.filesystem.as_str()) {
        return Err(UnwritableReason::PseudoFilesystem(facts.filesystem.clone()));
    }
    if names().any(|name| rules.homes().any(|home| home.starts_with(name))) {
        return Err(UnwritableReason::HoldsHome);
    }
    if names().any(|name| SHARED.iter().any(|shared| name == Path::new(shared))) {
        return Err(UnwritableReason::Shared);
    }
    if rules
        .context
        .is_some_and(|context| facts.path.starts_with(context))
    {
        return check_owner(facts, rules);
    }
    if let Some(permitted) = &rules.workspaces {
        // By its own path only: an alias may be permitted because of a neighbouring directory.
        let listed = permitted.iter().any(|root| facts.path.starts_with(root));
        return if listed {
            Ok(())
        } else {
            Err(UnwritableReason::NotListed)
        };
    }
    for name in names() {
        check_system_tree(name, rules.own_home)?;
        check_home(name, rules)?;
    }
    if facts.is_device_root {
        return Err(UnwritableReason::DeviceRoot);
    }
    check_owner(facts, rules)
}

/// A home may lie in such a tree, as those of service accounts do.
fn check_system_tree(name: &Path, own_home: Option<&Path>) -> Result<(), UnwritableReason> {
    if own_home.is_some_and(|home| name.starts_with(home)) || name.starts_with(TEMPORARY) {
        return Ok(());
    }
    let trees = || SYSTEM_TREES.iter().map(Path::new);
    match trees().find(|tree| name.starts_with(tree)) {
        Some(_) => Err(UnwritableReason::System(name.to_owned())),
        None => Ok(()),
    }
}

/// Dot directories hold settings, keys and tokens; others hold programs that are run by name.
fn check_home(name: &Path, rules: &WritableRules<'_>) -> Result<(), UnwritableReason> {
    for home in rules.homes() {
        let Ok(below) = name.strip_prefix(home) else {
            continue;
        };
        let first = below.components().next();
        let dotted =
            first.is_some_and(|first| first.as_os_str().as_encoded_bytes().starts_with(b"."));
        if dotted {
            return Err(UnwritableReason::HomeSettings(name.to_owned()));
        }
        let toolchain = rules.toolchains.iter().find(|it| below.starts_with(it));
        if let Some(toolchain) = toolchain {
            return Err(UnwritableReason::Toolchain(home.join(toolchain)));
        }
    }
    Ok(())
}

/// The rule that git applies to repositories (`safe.directory` in git-config(1)), also for all
/// parent directories: those of root cannot be replaced by others.
fn check_owner(facts: &PathFacts, rules: &WritableRules<'_>) -> Result<(), UnwritableReason> {
    let uid = rules.uid;
    if rules.any_owner {
        return Ok(());
    }
    if facts.owner != uid {
        let (owner, ancestor) = (facts.owner, false);
        return Err(UnwritableReason::OtherOwner { owner, ancestor });
    }
    // In a user namespace that does not map it, root appears as the overflow id: the owner of the
    // root directory (user_namespaces(7)).
    let system = facts.ancestor_owners.last().copied().unwrap_or(0);
    let is_foreign = |owner: &&u32| ![uid, 0, system].contains(*owner);
    match facts.ancestor_owners.iter().find(is_foreign) {
        Some(&owner) => Err(UnwritableReason::OtherOwner {
            owner,
            ancestor: true,
        }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(path: &str) -> PathFacts {
        PathFacts {
            path: PathBuf::from(path),
            aliases: Vec::new(),
            owner: 0,
            ancestor_owners: vec![0, 0],
            filesystem: "ext4".to_owned(),
            is_device_root: false,
        }
    }

    fn grounds() -> WritableRules<'static> {
        WritableRules {
            any_owner: false,
            uid: 0,
            own_home: Some(Path::new("/home/admin")),
            other_homes: Vec::new(),
            toolchains: vec![Path::new("bin"), Path::new("go/bin")],
            hidden: vec![Path::new("/home/admin/state")],
            workspaces: None,
            context: None,
        }
    }

    fn refusal(facts: &PathFacts) -> Option<UnwritableReason> {
        check(facts, &grounds()).err()
    }

    #[test]
    fn root_owns_the_system_and_may_not_work_there() {
        for path in [
            "/usr/bin",
            "/usr/local/share/x",
            "/usr/lib/systemd/system",
            "/usr/lib/python3/dist-packages",
            "/var/lib/x",
            "/var/www/html",
            "/srv/www",
            "/opt/tool",
            "/etc/ssl",
            "/boot/grub",
        ] {
            let actual = refusal(&facts(path));
            assert_eq!(
                actual,
                Some(UnwritableReason::System(PathBuf::from(path))),
                "{path}"
            );
        }
        for path in [
            "/home/admin/project",
            "/workspace",
            "/data/x",
            "/tmp/x",
            "/var/tmp/x",
            "/mnt/d/x",
        ] {
            assert_eq!(refusal(&facts(path)), None, "{path}");
        }
    }

    #[test]
    fn a_request_opens_no_system_tree_by_naming_it_home() {
        let service = WritableRules {
            own_home: Some(Path::new("/var/lib/agent")),
            other_homes: vec![Path::new("/usr/lib")],
            ..grounds()
        };
        assert_eq!(check(&facts("/var/lib/agent/x"), &service), Ok(()));
        let actual = check(&facts("/usr/lib/x"), &service);
        assert!(matches!(actual, Err(UnwritableReason::System(_))));
    }

    #[test]
    fn another_name_of_a_directory_counts_as_its_own() {
        let mut bound = facts("/workspace/lib");
        bound.aliases = vec![PathBuf::from("/usr/lib")];
        assert!(matches!(refusal(&bound), Some(UnwritableReason::System(_))));
        bound.aliases = vec![PathBuf::from("/home/admin/.ssh")];
        assert!(matches!(
            refusal(&bound),
            Some(UnwritableReason::HomeSettings(_))
        ));
        bound.aliases = vec![PathBuf::from("/home/admin/state/executions")];
        assert_eq!(refusal(&bound), Some(UnwritableReason::Hidden));
        bound.aliases = vec![PathBuf::from("/home/admin")];
        assert_eq!(refusal(&bound), Some(UnwritableReason::HoldsHome));
    }

    #[test]
    fn a_home_lends_its_projects_only() {
        for path in [
            "/home/admin/.ssh",
            "/home/admin/.config/x",
            "/home/admin/.local/share",
        ] {
            assert!(
                matches!(
                    refusal(&facts(path)),
                    Some(UnwritableReason::HomeSettings(_))
                ),
                "{path}"
            );
        }
        for path in ["/home/admin/bin", "/home/admin/go/bin/x"] {
            assert!(
                matches!(refusal(&facts(path)), Some(UnwritableReason::Toolchain(_))),
                "{path}"
            );
        }
        assert_eq!(refusal(&facts("/home/admin/go/src/x")), None);
    }

    #[test]
    fn directories_of_other_users_are_refused() {
        let mut theirs = facts("/home/alice/project");
        theirs.ancestor_owners = vec![1000, 0, 0];
        let ancestor = UnwritableReason::OtherOwner {
            owner: 1000,
            ancestor: true,
        };
        assert_eq!(refusal(&theirs), Some(ancestor));
        theirs.owner = 1000;
        let own = UnwritableReason::OtherOwner {
            owner: 1000,
            ancestor: false,
        };
        assert_eq!(refusal(&theirs), Some(own));
        let mut unmapped = facts("/home/alice/project");
        unmapped.owner = 1000;
        unmapped.ancestor_owners = vec![1000, 65_534, 65_534];
        let alice = WritableRules {
            uid: 1000,
            own_home: Some(Path::new("/home/alice")),
            ..WritableRules::default()
        };
        assert_eq!(check(&theirs, &alice), Ok(()));
        assert_eq!(check(&unmapped, &alice), Ok(()));
    }

    #[test]
    fn controls_of_the_kernel_and_whole_devices_are_no_workspace() {
        let mut control = facts("/workspace/x");
        control.filesystem = "cgroup2".to_owned();
        assert!(matches!(
            refusal(&control),
            Some(UnwritableReason::PseudoFilesystem(_))
        ));
        let mut device = facts("/mnt/disk");
        device.is_device_root = true;
        assert_eq!(refusal(&device), Some(UnwritableReason::DeviceRoot));
    }

    #[test]
    fn the_directory_of_its_context_is_permitted_and_no_other_of_them() {
        let dotted = Path::new("/home/admin/.local/contexts/ctx-1");
        let in_context = WritableRules {
            context: Some(dotted),
            ..grounds()
        };
        let own = facts("/home/admin/.local/contexts/ctx-1/src");
        assert_eq!(check(&own, &in_context), Ok(()));
        assert!(check(&own, &grounds()).is_err());
        let other = facts("/home/admin/.local/contexts/ctx-2");
        assert!(check(&other, &in_context).is_err());
        let mut theirs = own;
        theirs.owner = 1000;
        assert!(check(&theirs, &in_context).is_err());
    }

    #[test]
    fn settings_permit_and_confine() {
        let listed = WritableRules {
            workspaces: Some(vec![Path::new("/var/www/site"), Path::new("/home/admin")]),
            ..grounds()
        };
        assert_eq!(check(&facts("/var/www/site/a"), &listed), Ok(()));
        assert_eq!(check(&facts("/home/admin/.dotfiles"), &listed), Ok(()));
        assert_eq!(
            check(&facts("/workspace"), &listed),
            Err(UnwritableReason::NotListed)
        );
        assert_eq!(
            check(&facts("/home/admin/state/x"), &listed),
            Err(UnwritableReason::Hidden)
        );
        assert_eq!(
            check(&facts("/home/admin"), &listed),
            Err(UnwritableReason::HoldsHome)
        );
    }
}
