//! Finds the mounted cgroup hierarchies and this process's cgroup in them: pure over the texts of
//! `/proc/self/cgroup` and `/proc/self/mountinfo` (cgroups(7), proc(5)).

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Component, Path, PathBuf};

use ostler_sys::mount_table::unescape;

/// A controller that we use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Controller {
    /// The number of processes and threads.
    Pids,
    /// Memory.
    Memory,
    /// Processor time.
    Cpu,
    /// Freezing, a controller in version 1 only.
    Freezer,
}

/// All of them.
pub const CONTROLLERS: [Controller; 4] = [
    Controller::Pids,
    Controller::Memory,
    Controller::Cpu,
    Controller::Freezer,
];

impl Controller {
    /// The kernel's name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Pids => "pids",
            Self::Memory => "memory",
            Self::Cpu => "cpu",
            Self::Freezer => "freezer",
        }
    }
}

/// One mounted hierarchy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hierarchy {
    /// Its mount point.
    pub mount: PathBuf,
    /// The directory of our own cgroup in it.
    pub own_cgroup: PathBuf,
}

/// The hierarchies of this process.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CgroupLayout {
    /// The unified hierarchy (version 2), possibly beside others.
    pub unified: Option<Hierarchy>,
    /// Hierarchies of version 1 by controller.
    pub legacy: BTreeMap<Controller, Hierarchy>,
    /// systemd's own hierarchy of version 1, by which it knows a unit's processes.
    pub systemd: Option<Hierarchy>,
}

/// A line of mountinfo that mounts a cgroup hierarchy.
struct CgroupMount {
    root: PathBuf,
    point: PathBuf,
    unified: bool,
    options: Vec<String>,
}

impl CgroupLayout {
    /// Reads the layout of this process.
    #[must_use]
    pub fn read() -> Self {
        let read = |path| fs::read_to_string(path).unwrap_or_default();
        Self::parse(&read("/proc/self/cgroup"), &read("/proc/self/mountinfo"))
    }

    /// Parses the texts of `/proc/<pid>/cgroup` and `/proc/<pid>/mountinfo`.
    #[must_use]
    pub fn parse(cgroup: &str, mountinfo: &str) -> Self {
        let mounts: Vec<CgroupMount> = mountinfo.lines().filter_map(parse_mount).collect();
        let mut layout = Self::default();
        for line in cgroup.lines() {
            let mut fields = line.splitn(3, ':');
            let (Some(_), Some(names), Some(path)) = (fields.next(), fields.next(), fields.next())
            else {
                continue;
            };
            layout.add(&mounts, names, Path::new(path));
        }
        layout
    }

    fn add(&mut self, mounts: &[CgroupMount], names: &str, path: &Path) {
        if names.is_empty() {
            let unified = mounts.iter().find(|mount| mount.unified);
            self.unified = unified.and_then(|mount| locate(mount, path));
            return;
        }
        for name in names.split(',') {
            let has_name = |mount: &&CgroupMount| {
                !mount.unified && mount.options.iter().any(|option| option == name)
            };
            let hierarchy = mounts
                .iter()
                .find(has_name)
                .and_then(|mount| locate(mount, path));
            let Some(hierarchy) = hierarchy else { continue };
            if name == "name=systemd" {
                self.systemd = Some(hierarchy);
            } else if let Some(known) = CONTROLLERS.into_iter().find(|known| known.name() == name) {
                self.legacy.insert(known, hierarchy);
            }
        }
    }
}

/// The directory of cgroup `path` under a mount; none where the mount does not show it.
fn locate(mount: &CgroupMount, path: &Path) -> Option<Hierarchy> {
    if path.components().any(|part| part == Component::ParentDir) {
        return None;
    }
    let below = path.strip_prefix(&mount.root).ok()?;
    Some(Hierarchy {
        mount: mount.point.clone(),
        own_cgroup: mount.point.join(below),
    })
}

fn parse_mount(line: &str) -> Option<CgroupMount> {
    let (before, after) = line.split_once(" - ")?;
    let mut after = after.split(' ');
    let kind = after.next()?;
    let options = after.nth(1).unwrap_or_default();
    let mut before = before.split(' ').skip(3);
    let unified = kind == "cgroup2";
    (unified || kind == "cgroup").then_some(())?;
    Some(CgroupMount {
        root: path(before.next()?),
        point: path(before.next()?),
        unified,
        options: options.split(',').map(str::to_owned).collect(),
    })
}

/// A path in the table of mounts.
fn path(field: &str) -> PathBuf {
    PathBuf::from(OsString::from_vec(unescape(field.as_bytes())))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HYBRID_CGROUP: &str = "9:name=systemd:/\n8:pids:/box\n4:memory:/box/deep\n\
        1:cpu,cpuacct:/\n0::/\n";
    const HYBRID_MOUNTS: &str = "\
31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755
32 31 0:29 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu,cpuacct
35 31 0:32 /box /sys/fs/cgroup/memory rw,relatime shared:9 - cgroup cgroup rw,memory
39 31 0:36 / /sys/fs/cgroup/pids rw,relatime - cgroup cgroup rw,pids
40 31 0:37 / /sys/fs/cgroup/systemd rw,relatime - cgroup cgroup rw,name=systemd
41 31 0:38 / /sys/fs/cgroup/uni\\040fied rw,relatime - cgroup2 cgroup2 rw
";

    fn hierarchy(mount: &str, own: &str) -> Hierarchy {
        Hierarchy {
            mount: PathBuf::from(mount),
            own_cgroup: PathBuf::from(own),
        }
    }

    #[test]
    fn hybrid_with_a_mount_of_a_part() {
        let layout = CgroupLayout::parse(HYBRID_CGROUP, HYBRID_MOUNTS);
        let unified = "/sys/fs/cgroup/uni fied";
        assert_eq!(layout.unified, Some(hierarchy(unified, unified)));
        assert_eq!(
            layout.legacy[&Controller::Memory],
            hierarchy("/sys/fs/cgroup/memory", "/sys/fs/cgroup/memory/deep")
        );
        assert_eq!(
            layout.legacy[&Controller::Pids],
            hierarchy("/sys/fs/cgroup/pids", "/sys/fs/cgroup/pids/box")
        );
        assert!(layout.legacy.contains_key(&Controller::Cpu));
        assert!(!layout.legacy.contains_key(&Controller::Freezer));
        assert!(layout.systemd.is_some());
    }

    #[test]
    fn pure_second_version() {
        let mounts = "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw,nsdelegate";
        let layout = CgroupLayout::parse("0::/user.slice/user-1000.slice\n", mounts);
        let own = "/sys/fs/cgroup/user.slice/user-1000.slice";
        assert_eq!(layout.unified, Some(hierarchy("/sys/fs/cgroup", own)));
        assert!(layout.legacy.is_empty());
    }

    #[test]
    fn nothing_mounted_and_outside_of_the_namespace() {
        assert_eq!(CgroupLayout::parse("0::/\n", ""), CgroupLayout::default());
        let mounts = "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw";
        assert_eq!(
            CgroupLayout::parse("0::/../other\n", mounts),
            CgroupLayout::default()
        );
    }
}
