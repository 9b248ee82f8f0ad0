//! [`AutorunScanner`] walks a workspace breadth-first, the upper levels first.

use std::collections::{BTreeSet, VecDeque};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use ostler_model::autorun::{AutorunRule, AutorunTest, may_match_last_component, rule_for};
use ostler_model::{AutorunFinding, AutorunReport, FileKind};
use rustix::io::Errno;
use rustix::time::{ClockId, clock_gettime};

use super::git_config::{self, GitConfigEntry};
use super::repositories::{Repository, is_repository};
use super::view::{WorkspaceView, resolve};
use crate::openat2::{is_absent, join, split};

/// The largest `.git` file that is read, in bytes.
const READ_BYTES: u64 = 64 * 1024;
/// The most files followed from one configuration.
const INCLUDES_MAX: usize = 16;
/// The most keys of one configuration that are reported.
const KEYS_MAX: usize = 3;
/// The key that names a hooks directory.
const HOOKS_PATH: &str = "core.hookspath";
/// The longest reported path, in bytes.
const PATH_BYTES: usize = 1_024;
/// Directories of a repository that can contain files of the list.
const PARTS_LISTED: [&[u8]; 2] = [b"hooks", b"rebase-merge"];
/// Directories of a repository that contain further repositories.
const REPOSITORIES: [&[u8]; 2] = [b"modules", b"worktrees"];

/// The bounds of a scan.
#[derive(Debug, Clone, Copy)]
pub(super) struct ScanBounds {
    pub(super) entries: usize,
    pub(super) cpu_ms: Option<u64>,
}

/// A directory that is still to be scanned.
#[derive(Debug, Default)]
struct PendingDir {
    path: Vec<u8>,
    /// Its path within a repository, where it is a repository or a part of one.
    inside_repository: Option<Vec<u8>>,
    /// Whether everything in it counts as new.
    all_new: bool,
}

pub(super) struct AutorunScanner<'a> {
    workspace: &'a [u8],
    view: WorkspaceView<'a>,
    repositories: &'a [Repository],
    bounds: ScanBounds,
    since_ms: u64,
    pending: VecDeque<PendingDir>,
    /// Repositories that were reached through a link.
    followed: BTreeSet<Vec<u8>>,
    report: AutorunReport,
}

impl<'a> AutorunScanner<'a> {
    pub(super) fn new(
        workspace: &'a Path,
        view: WorkspaceView<'a>,
        repositories: &'a [Repository],
        bounds: ScanBounds,
    ) -> Self {
        Self {
            workspace: workspace.as_os_str().as_bytes(),
            view,
            repositories,
            bounds,
            since_ms: cpu_ms(),
            pending: VecDeque::from([PendingDir::default()]),
            followed: BTreeSet::new(),
            report: AutorunReport::default(),
        }
    }

    pub(super) fn run(mut self) -> AutorunReport {
        for repository in self.repositories {
            self.scan_named_files(&repository.path);
        }
        let mut left = self.bounds.entries;
        while let Some(directory) = self.pending.pop_front() {
            let spent = cpu_ms().saturating_sub(self.since_ms);
            if left == 0 || self.bounds.cpu_ms.is_some_and(|limit| spent > limit) {
                let visited = self.bounds.entries - left;
                self.set_incomplete(format!(
                    "only {visited} entries of the workspace were looked at"
                ));
                break;
            }
            match self.view.list(&directory.path, directory.all_new, left) {
                Ok((names, _)) => {
                    left -= names.len().min(left);
                    self.scan_directory(&directory, names);
                }
                Err(error) => self.unreadable(&directory, &error),
            }
        }
        self.report
    }

    fn known_repository(&self, repository: &[u8]) -> Option<&'a Repository> {
        self.repositories.iter().find(|it| it.path == repository)
    }

    fn set_incomplete(&mut self, reason: String) {
        self.report.incomplete.get_or_insert(reason);
    }

    /// Records an unreadable directory, unless it was unreadable before the command.
    fn unreadable(&mut self, directory: &PendingDir, error: &io::Error) {
        let another = Errno::from_io_error(error) == Some(Errno::XDEV);
        if another
            || (!is_absent(error) && (directory.all_new || self.view.is_new(&directory.path)))
        {
            let path = String::from_utf8_lossy(&directory.path).into_owned();
            let reason = if another {
                "another file system is mounted there".to_owned()
            } else {
                error.to_string()
            };
            self.set_incomplete(format!("{path} was not looked at: {reason}"));
        }
    }

    fn scan_directory(&mut self, open: &PendingDir, names: Vec<(Vec<u8>, FileKind)>) {
        let mut within = open.inside_repository.clone();
        let mut all = open.all_new;
        if within.is_none() && self.is_repository(&open.path, &names) {
            within = Some(Vec::new());
        }
        if within.as_ref().is_some_and(Vec::is_empty) && self.known_repository(&open.path).is_none()
        {
            all = all || self.is_assembled(&open.path);
            self.scan_named_files(&open.path);
        }
        // Entries of a directory that is a line belong to it.
        let listed = within.is_none() && rule_for(&open.path, FileKind::File).is_some();
        for (name, kind) in names {
            let likely = listed || kind != FileKind::File || within.is_some();
            if !likely && !may_match_last_component(&name) {
                continue;
            }
            let path = join(&open.path, &name);
            let inner = within.as_ref().map(|it| join(it, &name));
            if kind == FileKind::Directory {
                self.queue_directory(path, inner, all);
                continue;
            }
            let listed_path = match &inner {
                Some(inner) => join(b".git", inner),
                None => path.clone(),
            };
            if let Some(line) = rule_for(&listed_path, kind)
                && (all || self.view.is_new(&path))
            {
                self.check_line(line, &path, kind);
            }
        }
    }

    /// Whether git treats the directory as a repository. A `.git` becomes one once it is complete.
    fn is_repository(&mut self, path: &[u8], names: &[(Vec<u8>, FileKind)]) -> bool {
        const PARTS: [&[u8]; 4] = [b"HEAD", b"objects", b"refs", b"commondir"];
        if split(path).1.eq_ignore_ascii_case(b".git") {
            return true;
        }
        // With an overlay, the listing may contain new names only.
        let mut likely = PARTS
            .into_iter()
            .chain([b"config".as_slice(), b"hooks", b"rebase-merge"]);
        if !likely.any(|it| names.iter().any(|(name, _)| it.eq_ignore_ascii_case(name))) {
            return false;
        }
        let there: Vec<&[u8]> = PARTS
            .into_iter()
            .filter(|it| self.view.kind(&join(path, it)).is_some())
            .collect();
        let listed = names.iter().map(|(name, _)| name.as_slice());
        is_repository(listed.chain(there))
    }

    /// Whether a repository may have been assembled in this directory: it changed.
    fn is_assembled(&mut self, path: &[u8]) -> bool {
        let parts: [&[u8]; 3] = [b"HEAD", b"objects", b"refs"];
        self.view.is_new(path)
            || parts
                .into_iter()
                .any(|it| self.view.is_new(&join(path, it)))
    }

    /// Queues a directory; within a repository, only those that can contain files of the list.
    fn queue_directory(&mut self, path: Vec<u8>, inner: Option<Vec<u8>>, all: bool) {
        let is_one_of =
            |names: &[&[u8]], it: &[u8]| names.iter().any(|name| name.eq_ignore_ascii_case(it));
        let within = match inner {
            Some(inner) if is_one_of(&PARTS_LISTED, &inner) => Some(inner),
            Some(inner) if !is_one_of(&REPOSITORIES, &inner) => return,
            Some(_) | None => None,
        };
        self.pending.push_back(PendingDir {
            path,
            inside_repository: within,
            all_new: all,
        });
    }

    fn check_line(&mut self, line: &'static AutorunRule, path: &[u8], kind: FileKind) {
        let reason = match line.test {
            AutorunTest::GitHook if path.ends_with(b".sample") => None,
            _ if kind != FileKind::File => Some(line.why.to_owned()),
            AutorunTest::Presence | AutorunTest::GitHook => Some(line.why.to_owned()),
            AutorunTest::GitConfig => self.describe_keys(path),
            AutorunTest::GitLink => self.is_foreign_link(path).then(|| line.why.to_owned()),
            AutorunTest::GitCommon => self.is_foreign_commondir(path).then(|| line.why.to_owned()),
            AutorunTest::GitTodo => self.has_commands(path).then(|| line.why.to_owned()),
        };
        if let Some(why) = reason {
            self.report(path, line.reader, why);
        }
    }

    fn report(&mut self, path: &[u8], reader: &str, reason: String) {
        let path = &path[..path.len().min(PATH_BYTES)];
        self.report.add(AutorunFinding {
            path: path.to_vec().into(),
            reader: reader.to_owned(),
            why: reason,
        });
    }

    /// Describes the keys of a configuration that may run a program or refer to another place.
    fn describe_keys(&mut self, path: &[u8]) -> Option<String> {
        let Some(entries) = git_config::read_config(&self.view, path) else {
            return Some("is its configuration, and cannot be understood here".to_owned());
        };
        let directory = split(path).0;
        let before = self
            .known_repository(directory)
            .map_or(&[][..], |it| it.entries.as_slice());
        let inside = |entry: &GitConfigEntry| {
            entry.is_worktree() && resolve(self.workspace, directory, &entry.value).is_some()
        };
        let keys: BTreeSet<String> = entries
            .iter()
            .filter(|entry| !entry.is_harmless() && !inside(entry) && !before.contains(entry))
            .map(GitConfigEntry::key)
            .collect();
        if keys.is_empty() {
            return None;
        }
        let count = keys.len();
        let mut named: Vec<String> = keys.into_iter().take(KEYS_MAX).collect();
        if count > KEYS_MAX {
            named.push(format!("{} more", count - KEYS_MAX));
        }
        Some(format!(
            "is its configuration, with keys that can run programs or lead elsewhere: {}",
            named.join(", ")
        ))
    }

    /// Whether a `.git` that is a file refers to a place outside the workspace. A target within it
    /// is scanned.
    fn is_foreign_link(&mut self, path: &[u8]) -> bool {
        let text = self.view.read(path, READ_BYTES).unwrap_or_default();
        let named = text.strip_prefix(b"gitdir:").map(<[u8]>::trim_ascii);
        let target = named.and_then(|it| resolve(self.workspace, split(path).0, it));
        match target {
            Some(target) => !self.queue_repository(target),
            None => true,
        }
    }

    fn is_foreign_commondir(&mut self, path: &[u8]) -> bool {
        let directory = split(path).0;
        let text = self.view.read(path, READ_BYTES).unwrap_or_default();
        let Some(target) = resolve(self.workspace, directory, text.trim_ascii()) else {
            return true;
        };
        let (above, _) = split(directory);
        let (repository, name) = split(above);
        let usual = name == b"worktrees" && target == repository;
        !self.queue_repository(target) || !usual
    }

    /// Queues a directory that a link names; true if it is a repository.
    fn queue_repository(&mut self, target: Vec<u8>) -> bool {
        if self.known_repository(&target).is_some() || self.followed.contains(&target) {
            return true;
        }
        let is_directory = self.view.kind(&target) == Some(FileKind::Directory);
        if is_directory {
            self.followed.insert(target.clone());
            self.pending.push_back(PendingDir {
                path: target,
                inside_repository: Some(Vec::new()),
                all_new: true,
            });
        }
        is_directory
    }

    fn has_commands(&self, path: &[u8]) -> bool {
        let Ok(text) = self.view.read(path, READ_BYTES) else {
            return true;
        };
        let runs = |line: &[u8]| {
            let word = line
                .trim_ascii_start()
                .split(u8::is_ascii_whitespace)
                .next();
            word.is_some_and(|it| it == b"exec" || it == b"x")
        };
        text.len() as u64 > READ_BYTES || text.split(|byte| *byte == b'\n').any(runs)
    }

    /// Reports files within the workspace that a repository's configuration names.
    fn scan_named_files(&mut self, repository: &[u8]) {
        let mut files: VecDeque<Vec<u8>> = [b"config".as_slice(), b"config.worktree"]
            .into_iter()
            .map(|name| join(repository, name))
            .collect();
        for _ in 0..INCLUDES_MAX {
            let Some(file) = files.pop_front() else {
                return;
            };
            for entry in git_config::read_config(&self.view, &file).unwrap_or_default() {
                if entry.is_harmless() || entry.is_worktree() {
                    continue;
                }
                if entry.is_include() {
                    let found = resolve(self.workspace, split(&file).0, &entry.value);
                    files.extend(found.clone());
                    self.report_named(found, &entry);
                    continue;
                }
                let top = split(repository).0;
                let whole = resolve(self.workspace, top, &entry.value);
                self.report_named(whole, &entry);
                for word in entry.value.split(u8::is_ascii_whitespace) {
                    self.report_named(resolve(self.workspace, top, unquoted(word)), &entry);
                }
            }
        }
    }

    fn report_named(&mut self, path: Option<Vec<u8>>, entry: &GitConfigEntry) {
        let Some(path) = path.filter(|it| !it.is_empty()) else {
            return;
        };
        let reason = format!(
            "is what {} of a repository's configuration names",
            entry.key()
        );
        match self.view.kind(&path) {
            // A word of a command may be the name of a directory by chance.
            Some(FileKind::Directory) if entry.key() != HOOKS_PATH => {}
            Some(FileKind::Directory) => {
                let listed = self.view.list(&path, true, self.bounds.entries);
                for (name, kind) in listed.map(|(names, _)| names).unwrap_or_default() {
                    let below = join(&path, &name);
                    if kind != FileKind::Directory && self.view.is_new(&below) {
                        self.report(&below, "git", reason.clone());
                    }
                }
            }
            Some(_) if self.view.is_new(&path) => self.report(&path, "git", reason),
            Some(_) | None => {}
        }
    }
}

/// A word of a command without quotes and without the prefix characters of shell or git.
fn unquoted(word: &[u8]) -> &[u8] {
    let is_mark = |byte: &u8| b"'\"!;&|".contains(byte);
    let start = word
        .iter()
        .position(|byte| !is_mark(byte))
        .unwrap_or(word.len());
    let end = word
        .iter()
        .rposition(|byte| !is_mark(byte))
        .map_or(start, |at| at + 1);
    &word[start..end]
}

/// Processor time of this thread, in milliseconds.
fn cpu_ms() -> u64 {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    let number = |value: i64| u64::try_from(value).unwrap_or(0);
    number(now.tv_sec) * 1_000 + number(now.tv_nsec) / 1_000_000
}
