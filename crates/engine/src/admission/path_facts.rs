//! Collects the file system's facts about a directory, for [`super::writable_paths`].

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use ostler_sys::mount_table::unescape;

use super::writable_paths::PathFacts;

/// This process's mounts (proc_pid_mountinfo(5)).
const MOUNTINFO: &str = "/proc/self/mountinfo";

#[derive(Debug, Clone, PartialEq, Eq)]
struct MountInfoEntry {
    /// `major:minor` of the device.
    device: String,
    /// The mounted directory, as a path in the file system.
    root: PathBuf,
    /// The mount point.
    target: PathBuf,
    filesystem: String,
    source: PathBuf,
}

/// Reads the facts about a directory, whose path must contain no symbolic links.
///
/// # Errors
/// As stat(2), and when this process's mounts cannot be read.
pub(super) fn read_path_facts(path: &Path) -> io::Result<PathFacts> {
    let owner = path.metadata()?.uid();
    let parents = path.ancestors().skip(1);
    let ancestor_owners = parents
        .map(|parent| parent.metadata().map(|found| found.uid()))
        .collect::<io::Result<_>>()?;
    let mounts = parse_mountinfo(&fs::read(MOUNTINFO)?);
    let missing = || io::Error::other(format!("no mount of {MOUNTINFO} holds it"));
    let mount = mount_of(&mounts, path).ok_or_else(missing)?;
    let whole = mount.target == path && mount.root == Path::new("/");
    let on_device = || fs::metadata(&mount.source).is_ok_and(|it| it.file_type().is_block_device());
    Ok(PathFacts {
        path: path.to_owned(),
        aliases: aliases(&mounts, mount, path),
        owner,
        ancestor_owners,
        filesystem: mount.filesystem.clone(),
        is_device_root: whole && path != Path::new("/") && on_device(),
    })
}

/// Where the kernel's list of processes is mounted (proc(5)).
///
/// # Errors
/// When this process's mounts cannot be read.
pub(super) fn procfs_mounts() -> io::Result<Vec<PathBuf>> {
    let mounts = parse_mountinfo(&fs::read(MOUNTINFO)?).into_iter();
    let of_processes = mounts.filter(|mount| mount.filesystem == "proc");
    Ok(of_processes.map(|mount| mount.target).collect())
}

/// Parses the mounts; malformed lines are skipped.
fn parse_mountinfo(mountinfo: &[u8]) -> Vec<MountInfoEntry> {
    mountinfo
        .split(|byte| *byte == b'\n')
        .filter_map(parse_line)
        .collect()
}

/// Parses `36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw,errors=continue`.
fn parse_line(line: &[u8]) -> Option<MountInfoEntry> {
    let mut fields = line.split(|byte| *byte == b' ').skip(2);
    let device = String::from_utf8_lossy(fields.next()?).into_owned();
    let root = path(fields.next()?);
    let target = path(fields.next()?);
    // Optional fields end at a single hyphen.
    fields.find(|field| *field == b"-")?;
    let filesystem = String::from_utf8_lossy(fields.next()?).into_owned();
    let source = path(fields.next()?);
    Some(MountInfoEntry {
        device,
        root,
        target,
        filesystem,
        source,
    })
}

/// A path in the table of mounts.
fn path(field: &[u8]) -> PathBuf {
    PathBuf::from(OsString::from_vec(unescape(field)))
}

/// The mount that a path is on: the deepest one, and of several at one mount point the last.
fn mount_of<'a>(mounts: &'a [MountInfoEntry], path: &Path) -> Option<&'a MountInfoEntry> {
    let holding = mounts
        .iter()
        .filter(|mount| path.starts_with(&mount.target));
    holding.max_by_key(|mount| mount.target.as_os_str().as_bytes().len())
}

/// Other paths of the same directory: where its file system, or a part that contains it, is also
/// mounted. A path counts even if a later mount covers it.
fn aliases(mounts: &[MountInfoEntry], mount: &MountInfoEntry, path: &Path) -> Vec<PathBuf> {
    let Ok(below) = path.strip_prefix(&mount.target) else {
        return Vec::new();
    };
    let origin = mount.root.join(below);
    let same = mounts.iter().filter(|other| other.device == mount.device);
    let names = same.filter_map(|other| {
        let below = origin.strip_prefix(&other.root).ok()?;
        // Joining an empty path would add a slash.
        let at_root = below.as_os_str().is_empty();
        Some(if at_root {
            other.target.clone()
        } else {
            other.target.join(below)
        })
    });
    let mut names: Vec<PathBuf> = names.filter(|name| name != path).collect();
    names.sort_unstable();
    names.dedup();
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTS: &[u8] = b"\
22 1 254:0 / / rw,relatime - ext4 /dev/vda rw
23 22 0:5 / /dev rw - devtmpfs devtmpfs rw
30 22 254:0 /usr/lib /data/my\\040lib rw shared:1 master:2 - ext4 /dev/vda rw
31 22 254:16 / /mnt/disk rw - ext4 /dev/vdb rw
broken line
";

    #[test]
    fn a_bind_mount_shows_what_it_shows() {
        let mounts = parse_mountinfo(MOUNTS);
        assert_eq!(mounts.len(), 4);
        let path = Path::new("/data/my lib/python3");
        let mount = mount_of(&mounts, path).expect("a mount");
        assert_eq!(mount.root, Path::new("/usr/lib"));
        assert_eq!(
            aliases(&mounts, mount, path),
            [Path::new("/usr/lib/python3")]
        );
    }

    #[test]
    fn an_ordinary_directory_has_the_names_of_its_bind_mounts_only() {
        let mounts = parse_mountinfo(MOUNTS);
        for (path, names) in [
            ("/home/u/project", &[] as &[&str]),
            ("/usr/lib", &["/data/my lib"]),
            ("/mnt/disk/x", &[]),
        ] {
            let mount = mount_of(&mounts, Path::new(path)).expect("a mount");
            let expected: Vec<&Path> = names.iter().map(Path::new).collect();
            assert_eq!(aliases(&mounts, mount, Path::new(path)), expected, "{path}");
        }
    }

    #[test]
    fn facts_of_a_real_directory() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().canonicalize().expect("it is there");
        let facts = read_path_facts(&path).expect("facts");
        assert_eq!(facts.owner, rustix::process::geteuid().as_raw());
        assert_eq!(facts.ancestor_owners.len(), path.components().count() - 1);
        assert!(!facts.is_device_root);
    }
}
