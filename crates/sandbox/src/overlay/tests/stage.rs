//! A workspace with an overlay that a script writes to.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;

use ostler_model::{ByteString, ChangeKind, ConflictReason, OverlayChanges, OverlayConflict};

use crate::overlay::{CommitOutcome, OverlayConfig, OverlayLayers, OverlayStore, prepare};

pub(super) struct OverlayFixture {
    pub(super) dir: tempfile::TempDir,
    protect: Vec<ByteString>,
    host: Option<PathBuf>,
}

impl OverlayFixture {
    /// Uses another directory as the workspace.
    pub(super) fn with_host(mut self, host: &Path) -> Self {
        self.host = Some(host.to_owned());
        self
    }

    /// Creates an empty workspace, then runs a script in it.
    pub(super) fn new(script: &str) -> Self {
        Self::within(&std::env::temp_dir(), script)
    }

    pub(super) fn within(parent: &Path, script: &str) -> Self {
        let dir = tempfile::Builder::new()
            .tempdir_in(parent)
            .expect("a directory");
        let stage = Self {
            dir,
            protect: Vec::new(),
            host: None,
        };
        for name in ["host", "mnt", "seen"] {
            fs::create_dir(stage.at(name)).expect("a directory");
        }
        stage.on_host(script);
        stage
    }

    pub(super) fn protecting(mut self, path: &str) -> Self {
        self.protect.push(ByteString::from(path));
        self
    }

    pub(super) fn at(&self, name: &str) -> PathBuf {
        if let (Some(host), "host") = (&self.host, name) {
            return host.clone();
        }
        let root = fs::canonicalize(self.dir.path()).expect("a path");
        root.join(name)
    }

    pub(super) fn host(&self, path: &str) -> PathBuf {
        self.at("host").join(path)
    }

    pub(super) fn store_dir(&self) -> PathBuf {
        self.at("store")
    }

    pub(super) fn prepare(&self) -> OverlayLayers {
        let wanted = OverlayConfig {
            workspace: &self.at("host"),
            protect: &self.protect,
        };
        prepare(&self.store_dir(), &wanted).expect("layers")
    }

    /// Runs a script on the host.
    pub(super) fn on_host(&self, script: &str) {
        shell(&self.at("host"), script);
    }

    /// Runs a script in the overlay, as the command. The tree it saw at its end is in `seen`.
    pub(super) fn command(&self, script: &str) {
        let layers = self.prepare();
        let (host, mnt, seen) = (self.at("host"), self.at("mnt"), self.at("seen"));
        let options = format!(
            "userxattr,xino=off,lowerdir={},upperdir={},workdir={}",
            host.display(),
            layers.upper.display(),
            layers.work.display()
        );
        let script = format!(
            "mount -t overlay overlay -o {options} {mnt} || exit 77\n\
             ( cd {mnt} || exit 77\n{script}\n)\n\
             cp -a {mnt}/. {seen}/ && chmod --reference={mnt} {seen}",
            mnt = mnt.display(),
            seen = seen.display(),
        );
        let root = rustix::process::geteuid().is_root();
        let namespaces = if root { "-m" } else { "-Urm" };
        let status = Command::new("unshare")
            .args([
                namespaces,
                "--propagation",
                "private",
                "bash",
                "-c",
                &script,
            ])
            .status()
            .expect("unshare");
        assert!(status.success(), "{script}");
    }

    pub(super) fn store(&self) -> OverlayStore {
        OverlayStore::open(&self.store_dir()).expect("a store")
    }

    pub(super) fn changes(&self) -> OverlayChanges {
        self.store().changes(1_000).expect("changes")
    }

    /// Changes as `+a`, `~b`, `-c`.
    pub(super) fn marks(&self) -> Vec<String> {
        let changes = self.changes().changes.into_iter();
        let marks = changes.map(|it| {
            let mark = match it.kind {
                ChangeKind::Created => '+',
                ChangeKind::Changed => '~',
                ChangeKind::Deleted => '-',
            };
            format!("{mark}{}", it.path)
        });
        marks.collect()
    }

    pub(super) fn commit(&self) {
        match self.store().commit(false).expect("a commit") {
            CommitOutcome::Committed(_) => {}
            other @ (CommitOutcome::Conflicts(_) | CommitOutcome::Autorun(_)) => {
                panic!("{other:?}")
            }
        }
    }

    pub(super) fn conflicts(&self) -> Vec<(String, ConflictReason)> {
        match self.store().commit(false).expect("an answer") {
            other @ (CommitOutcome::Committed(_) | CommitOutcome::Autorun(_)) => {
                panic!("{other:?}")
            }
            CommitOutcome::Conflicts(refused) => {
                refused.changed_on_host.into_iter().map(pair).collect()
            }
        }
    }
}

fn pair(conflict: OverlayConflict) -> (String, ConflictReason) {
    (conflict.path.to_string(), conflict.reason)
}

pub(super) fn shell(dir: &Path, script: &str) {
    let status = Command::new("bash")
        .args(["-c", &format!("{script}\n:")])
        .current_dir(dir)
        .stderr(std::process::Stdio::null())
        .status();
    assert!(status.expect("a shell").success(), "{script}");
}

/// Everything below a directory: mode, and content or target.
pub(super) fn tree(root: &Path) -> BTreeMap<Vec<u8>, (u32, Vec<u8>)> {
    let mut found = BTreeMap::new();
    let mut open = vec![root.to_owned()];
    let mode = |path: &Path| fs::symlink_metadata(path).expect("metadata").mode() & 0o177_777;
    found.insert(Vec::new(), (mode(root), Vec::new()));
    while let Some(dir) = open.pop() {
        for entry in fs::read_dir(dir).expect("a directory") {
            let path = entry.expect("an entry").path();
            let metadata = fs::symlink_metadata(&path).expect("metadata");
            let content = if metadata.is_dir() {
                open.push(path.clone());
                Vec::new()
            } else if metadata.is_symlink() {
                let target = fs::read_link(&path).expect("a target");
                target.as_os_str().as_bytes().to_vec()
            } else if metadata.is_file() {
                fs::read(&path).expect("content")
            } else {
                Vec::new()
            };
            let name = path.strip_prefix(root).expect("below");
            let mode = metadata.permissions().mode();
            found.insert(name.as_os_str().as_bytes().to_vec(), (mode, content));
        }
    }
    found
}
