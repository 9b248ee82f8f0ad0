//! Measures the growth of a workspace: allocated bytes now against those before the start, which
//! are stored in the execution's directory so that a later daemon can continue.

use std::collections::HashSet;
use std::fs;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use ostler_backend::{DiskScope, LaunchPlan};
use ostler_model::{ByteString, Capability};
use rustix::fs::FileType;
use serde::{Deserialize, Serialize};

use super::disk_usage::{BLOCK_BYTES, DiskUsage, UnreadDirectory, Writers, disk_usage};

/// The most descriptors of an execution's processes that are inspected.
const DESCRIPTORS_MAX: usize = 100_000;
/// The type of an overlay in statfs(2).
const OVERLAY_TYPE: rustix::fs::FsWord = 0x794c_7630;
/// The type of a tmpfs in statfs(2).
const TMPFS_TYPE: rustix::fs::FsWord = 0x0102_1994;
/// The file name in the execution's directory.
const BASE_FILE: &str = "disk.json";
/// The format's version.
const BASE_VERSION: u8 = 1;
/// The version of one that is about a private directory: what knows version 1 only must not measure
/// a path instead.
const PRIVATE_VERSION: u8 = 2;
/// The upper layer of an overlay, in the execution's directory.
const OVERLAY_UPPER: &str = "overlay/upper";

/// The state before the first attempt.
#[derive(Debug, Serialize, Deserialize)]
struct DiskBaseline {
    version: u8,
    /// The directory that is measured; relative to the execution's, or absolute. Empty where it is
    /// private.
    path: ByteString,
    /// Another one that counts with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    shared: Option<ByteString>,
    /// Who writes to them: processes in a container may have other ids.
    #[serde(default)]
    in_container: bool,
    /// Their allocated bytes; of a directory that executions share, as many as leave of the limit
    /// what the others have left.
    bytes: u64,
}

/// What is limited, and by how much.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct DiskQuota {
    target: QuotaTarget,
    limit_bytes: u64,
    shared: Option<DiskScope>,
    in_container: bool,
}

/// How much a workspace has grown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct DiskGrowth {
    /// The bytes that were found.
    pub(super) bytes: u64,
    /// Why there may be more, as text for the user.
    pub(super) unmeasured: Option<String>,
}

/// Records the size of a plan's workspace, where its growth is limited. Blocks for the length of a
/// walk. A later attempt keeps the baseline of the first one.
pub(super) fn record_baseline(execution: &Path, quota: &DiskQuota) -> io::Result<()> {
    let file = execution.join(BASE_FILE);
    if file.exists() {
        return Ok(());
    }
    let shared = quota.shared_directory();
    let path = match (&quota.target, &shared) {
        (QuotaTarget::Private, _) => PathBuf::new(),
        (QuotaTarget::Overlay, _) => PathBuf::from(OVERLAY_UPPER),
        // What it writes is in the shared directory.
        (QuotaTarget::Direct(_), Some((directory, _))) => directory.clone(),
        (QuotaTarget::Direct(path), None) => path.clone(),
    };
    let bytes = match (&quota.target, &shared) {
        (QuotaTarget::Private, _) | (QuotaTarget::Overlay, None) => 0,
        (QuotaTarget::Direct(_), None) => disk_usage(&path, quota.writers())?.bytes,
        (_, Some((directory, scope))) => {
            let now = disk_usage(directory, quota.writers())?.bytes;
            shared_baseline(scope, now, quota.limit_bytes)
        }
    };
    let shared = shared.filter(|_| quota.target == QuotaTarget::Overlay);
    let baseline = DiskBaseline {
        version: match quota.target {
            QuotaTarget::Private => PRIVATE_VERSION,
            QuotaTarget::Direct(_) | QuotaTarget::Overlay => BASE_VERSION,
        },
        path: ByteString::from(path),
        shared: shared.map(|(directory, _)| ByteString::from(directory)),
        in_container: quota.in_container,
        bytes,
    };
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(execution)?;
    fs::write(file, serde_json::to_vec(&baseline)?)
}

/// The bytes from which the growth counts of an execution whose own limit is `limit`, in a shared
/// directory that has `now` bytes: it may add its own limit, and no more than all of them may. Where
/// they have more already, nothing may be added, and what removes files runs.
fn shared_baseline(scope: &DiskScope, now: u64, limit: u64) -> u64 {
    let of_all = scope.base_bytes.saturating_add(scope.limit_bytes).max(now);
    let own = now.saturating_add(limit);
    of_all.min(own).saturating_sub(limit)
}

impl DiskQuota {
    /// The quota of a plan; none where nothing is limited.
    pub(super) fn from_plan(plan: &LaunchPlan) -> Option<Self> {
        Some(Self {
            target: QuotaTarget::from_plan(plan)?,
            limit_bytes: plan.limits.disk_bytes?,
            shared: plan.disk_scope.clone(),
            in_container: plan.container.is_some(),
        })
    }

    const fn writers(&self) -> Writers {
        writers(self.in_container)
    }

    /// The shared directory, where the target is in it.
    fn shared_directory(&self) -> Option<(PathBuf, &DiskScope)> {
        let scope = self.shared.as_ref()?;
        let directory = scope.directory.as_path();
        let is_inside = match &self.target {
            QuotaTarget::Private => false,
            QuotaTarget::Overlay => true,
            QuotaTarget::Direct(path) => path.starts_with(directory) || is_below(path, directory),
        };
        is_inside.then(|| (directory.to_owned(), scope))
    }
}

const fn writers(in_container: bool) -> Writers {
    if in_container {
        Writers::Any
    } else {
        Writers::Own
    }
}

/// Whether a path is in a directory, links resolved.
fn is_below(path: &Path, directory: &Path) -> bool {
    let real = |path: &Path| fs::canonicalize(path).ok();
    let both = real(path).zip(real(directory));
    both.is_some_and(|(path, directory)| path.starts_with(directory))
}

/// The directory whose growth is limited.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum QuotaTarget {
    /// A directory of the host.
    Direct(PathBuf),
    /// The upper layer of the execution's overlay.
    Overlay,
    /// What a jail without a workspace writes to: a file system of its own.
    Private,
}

impl QuotaTarget {
    /// The target of a plan; none where nothing is limited.
    fn from_plan(plan: &LaunchPlan) -> Option<Self> {
        plan.limits.disk_bytes?;
        if let Some(container) = &plan.container {
            return Some(Self::Direct(container.spec.workspace.as_path().to_owned()));
        }
        let Some(sandbox) = &plan.sandbox else {
            return Some(Self::Direct(plan.cwd.as_path().to_owned()));
        };
        let Some(workspace) = &sandbox.workspace else {
            let has_root = !sandbox.without.contains(&Capability::OwnRoot);
            return Some(if has_root {
                Self::Private
            } else {
                Self::Direct(plan.cwd.as_path().to_owned())
            });
        };
        if sandbox.overlay && !sandbox.without.contains(&Capability::Overlay) {
            return Some(Self::Overlay);
        }
        Some(Self::Direct(workspace.as_path().to_owned()))
    }
}

/// How many bytes the workspace has grown by, including deleted files that members have open; none
/// where there is no baseline.
pub(super) fn growth(execution: &Path, members: &[i32]) -> Option<DiskGrowth> {
    let baseline: DiskBaseline =
        serde_json::from_slice(&fs::read(execution.join(BASE_FILE)).ok()?).ok()?;
    match baseline.version {
        BASE_VERSION => Some(directory_growth(execution, &baseline, members)),
        PRIVATE_VERSION => Some(private_growth(members)),
        _ => None,
    }
}

fn directory_growth(execution: &Path, baseline: &DiskBaseline, members: &[i32]) -> DiskGrowth {
    let path = execution.join(baseline.path.as_path());
    let writers = writers(baseline.in_container);
    let mut usage = usage_now(&path, writers);
    if let Some(directory) = &baseline.shared {
        let shared = usage_now(directory.as_path(), writers);
        usage.bytes = usage.bytes.saturating_add(shared.bytes);
        usage.unread = usage.unread.or(shared.unread);
    }
    let scope = FileSystemScope::of(&path, baseline.path.as_path() == Path::new(OVERLAY_UPPER));
    let unlinked = scope.map_or(0, |scope| unlinked_bytes(members, scope));
    DiskGrowth {
        bytes: usage
            .bytes
            .saturating_add(unlinked)
            .saturating_sub(baseline.bytes),
        unmeasured: usage.unread.map(|it| {
            let (path, reason) = (it.path.display(), it.reason);
            format!(
                "the disk limit does not count what is in {path}, which cannot be read: {reason}"
            )
        }),
    }
}

/// What the file system that is a jail's root, and of which its private directories are parts, has
/// allocated: all of it since the start.
fn private_growth(members: &[i32]) -> DiskGrowth {
    let mut bytes = None;
    let mut failure = None;
    for pid in members {
        match private_bytes(*pid) {
            Ok(used) => bytes = bytes.max(used),
            // It has just ended.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => failure = Some(error),
        }
    }
    let failure = failure.filter(|_| bytes.is_none());
    DiskGrowth {
        bytes: bytes.unwrap_or(0),
        unmeasured: failure
            .map(|error| format!("the disk limit does not count the private directories: {error}")),
    }
}

/// The allocated bytes of the file system that is a process's root; none before it has entered the
/// jail.
fn private_bytes(pid: i32) -> io::Result<Option<u64>> {
    let root = format!("/proc/{pid}/root/");
    let is_inside = rustix::fs::stat(&root)?.st_dev != rustix::fs::stat("/")?.st_dev;
    let stat = rustix::fs::statfs(&root)?;
    if !is_inside || stat.f_type != TMPFS_TYPE {
        return Ok(None);
    }
    let used = stat.f_blocks.saturating_sub(stat.f_bfree);
    Ok(Some(used.saturating_mul(stat.f_bsize.unsigned_abs())))
}

/// The usage of a directory: of one that is gone or not there yet, nothing, and of one that cannot
/// be measured, what is known.
fn usage_now(path: &Path, writers: Writers) -> DiskUsage {
    let known = |bytes| DiskUsage {
        bytes,
        unread: None,
    };
    match disk_usage(path, writers) {
        Ok(usage) => usage,
        // More entries than can be counted were not there before.
        Err(error) if error.kind() == io::ErrorKind::QuotaExceeded => known(u64::MAX),
        Err(error) if error.kind() == io::ErrorKind::NotFound => known(0),
        Err(error) => DiskUsage {
            bytes: 0,
            unread: Some(UnreadDirectory {
                path: path.to_owned(),
                reason: error.to_string(),
            }),
        },
    }
}

/// The file systems on which deleted files count.
#[derive(Debug, Clone, Copy)]
enum FileSystemScope {
    /// The workspace's own device.
    Device(u64),
    /// The overlay, which has device numbers of its own.
    Overlay,
}

impl FileSystemScope {
    fn of(path: &Path, is_overlay: bool) -> Option<Self> {
        if is_overlay {
            return Some(Self::Overlay);
        }
        rustix::fs::stat(path)
            .ok()
            .map(|it| Self::Device(it.st_dev))
    }

    fn contains(self, file: &Path, stat: &rustix::fs::Stat) -> bool {
        match self {
            Self::Device(device) => stat.st_dev == device,
            Self::Overlay => rustix::fs::statfs(file).is_ok_and(|it| it.f_type == OVERLAY_TYPE),
        }
    }
}

/// Allocated bytes of files without a name that a process has open: they are in no directory, and
/// are allocated until they are closed.
fn unlinked_bytes(members: &[i32], scope: FileSystemScope) -> u64 {
    let mut counted = HashSet::new();
    let mut bytes = 0_u64;
    let directories = members
        .iter()
        .map(|pid| PathBuf::from(format!("/proc/{pid}/fd")));
    let entries = directories.flat_map(|it| fs::read_dir(it).into_iter().flatten().flatten());
    for entry in entries.take(DESCRIPTORS_MAX) {
        let path = entry.path();
        // Through the link: the file itself, which has no path.
        let Ok(stat) = rustix::fs::stat(&path) else {
            continue;
        };
        let is_file = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
        if is_file
            && stat.st_nlink == 0
            && scope.contains(&path, &stat)
            && counted.insert((stat.st_dev, stat.st_ino))
        {
            bytes = bytes.saturating_add(stat.st_blocks.unsigned_abs() * BLOCK_BYTES);
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn growth(execution: &Path, members: &[i32]) -> Option<u64> {
        let growth = super::growth(execution, members)?;
        assert_eq!(growth.unmeasured, None);
        Some(growth.bytes)
    }

    fn quota(target: QuotaTarget) -> DiskQuota {
        DiskQuota {
            target,
            limit_bytes: 1 << 30,
            shared: None,
            in_container: false,
        }
    }

    #[test]
    fn executions_that_share_a_directory_have_what_is_left_of_its_limit() {
        let scope = |base_bytes, limit_bytes| DiskScope {
            directory: "/srv".into(),
            base_bytes,
            limit_bytes,
        };
        let left = |scope: &DiskScope, now, limit| shared_baseline(scope, now, limit) + limit - now;
        assert_eq!(left(&scope(0, 100), 0, 100), 100);
        assert_eq!(left(&scope(0, 100), 60, 100), 40);
        assert_eq!(left(&scope(50, 100), 60, 100), 90);
        assert_eq!(left(&scope(50, 100), 60, 20), 20, "its own limit");
        assert_eq!(left(&scope(50, 100), 140, 20), 10);
        assert_eq!(left(&scope(0, 100), 150, 100), 0, "more than all may have");
        assert_eq!(left(&scope(50, 100), 20, 100), 100, "files were removed");
        assert_eq!(left(&scope(0, u64::MAX), 7, u64::MAX - 7), u64::MAX - 7);
    }

    #[test]
    fn an_overlay_counts_with_the_directory_that_it_is_over() {
        let scratch = tempfile::tempdir().expect("a directory");
        let (work, execution) = (scratch.path().join("work"), scratch.path().join("run"));
        fs::create_dir_all(&work).expect("made");
        fs::write(work.join("before"), vec![1; 1 << 20]).expect("written");
        let limit = 4 << 20;
        let quota = DiskQuota {
            target: QuotaTarget::Overlay,
            limit_bytes: limit,
            shared: Some(DiskScope {
                directory: ByteString::from(work.clone()),
                base_bytes: 0,
                limit_bytes: limit,
            }),
            in_container: false,
        };
        record_baseline(&execution, &quota).expect("taken down");
        let grown = growth(&execution, &[]).expect("known");
        assert!((1 << 20..(1 << 20) + 65_536).contains(&grown), "{grown}");
        fs::create_dir_all(execution.join(OVERLAY_UPPER)).expect("made");
        fs::write(execution.join(OVERLAY_UPPER).join("new"), vec![1; 1 << 20]).expect("written");
        let grown = growth(&execution, &[]).expect("known");
        assert!((2 << 20..(2 << 20) + 65_536).contains(&grown), "{grown}");
    }

    #[test]
    fn growth_counts_each_file_once_and_follows_nothing() {
        let scratch = tempfile::tempdir().expect("a directory");
        let (work, execution) = (scratch.path().join("work"), scratch.path().join("run"));
        fs::create_dir_all(work.join("sub")).expect("made");
        fs::write(work.join("before"), vec![1; 100_000]).expect("written");
        record_baseline(&execution, &quota(QuotaTarget::Direct(work.clone()))).expect("taken down");
        assert_eq!(growth(&execution, &[]), Some(0));
        fs::write(work.join("sub/new"), vec![1; 1 << 20]).expect("written");
        fs::hard_link(work.join("sub/new"), work.join("again")).expect("linked");
        std::os::unix::fs::symlink("/usr", work.join("usr")).expect("linked");
        let grown = growth(&execution, &[]).expect("known");
        assert!((1 << 20..(1 << 20) + 65_536).contains(&grown), "{grown}");
        fs::remove_dir_all(&work).expect("removed");
        assert_eq!(growth(&execution, &[]), Some(0));
    }

    #[test]
    fn an_overlay_is_all_growth() {
        let scratch = tempfile::tempdir().expect("a directory");
        record_baseline(scratch.path(), &quota(QuotaTarget::Overlay)).expect("taken down");
        assert_eq!(
            growth(scratch.path(), &[]),
            Some(0),
            "nothing was written yet"
        );
        let upper = scratch.path().join(OVERLAY_UPPER);
        fs::create_dir_all(&upper).expect("made");
        fs::write(upper.join("new"), vec![1; 8_192]).expect("written");
        assert!(growth(scratch.path(), &[]).is_some_and(|growth| growth >= 8_192));
    }

    #[test]
    fn what_has_no_name_and_is_open_counts_once() {
        let scratch = tempfile::tempdir().expect("a directory");
        let (work, execution) = (scratch.path().join("work"), scratch.path().join("run"));
        fs::create_dir_all(&work).expect("made");
        record_baseline(&execution, &quota(QuotaTarget::Direct(work.clone()))).expect("taken down");
        fs::write(work.join("gone"), vec![1; 1 << 20]).expect("written");
        let held = fs::File::open(work.join("gone")).expect("it is there");
        let again = held.try_clone().expect("a copy");
        fs::remove_file(work.join("gone")).expect("removed");
        let own = i32::try_from(std::process::id()).expect("a pid");
        let grown = growth(&execution, &[own, own]).expect("known");
        assert!((1 << 20..(1 << 20) + 65_536).contains(&grown), "{grown}");
        assert_eq!(growth(&execution, &[]), Some(0), "nobody is looked at");
        drop((held, again));
        assert_eq!(growth(&execution, &[own]), Some(0));
    }

    #[test]
    fn nothing_taken_down_is_nothing_known() {
        let scratch = tempfile::tempdir().expect("a directory");
        assert_eq!(growth(scratch.path(), &[]), None);
    }
}
