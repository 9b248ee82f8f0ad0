//! [`OverlayStore`]: the layers of one execution and their records.

use std::collections::BTreeSet;
use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use ostler_model::{AutorunReport, ByteString, OverlayChanges, OverlayConflict, OverlayOutcome};
use rustix::fs::{Gid, Mode, Uid};

use super::baseline::Baseline;
use super::closed_directories::ClosedDirectories;
use super::commit::{self, Commit};
use super::commit_lock::CommitLock;
use super::compare::{EditAction, OverlayEdit, ThreeWay};
use super::decision::summarize;
use super::error::OverlayError;
use super::records::{
    BASELINE, BaselineRecord, CommitIntent, CommitLog, DECISION, INTENT, LOCK, LOG, io_error, load,
    save,
};
use super::{conflict, diff};
use crate::autorun;
use crate::openat2::BeneathRoot;
use crate::openat2::entry_stamp::EntryKind;

/// The most entries of a workspace under an overlay, and of a layer.
pub const OVERLAY_ENTRIES_MAX: usize = 500_000;
/// The most changes that are listed after the decision.
pub const DECIDED_LISTED_MAX: usize = 10_000;

pub(super) const UPPER: &str = "upper";
pub(super) const WORK: &str = "work";

/// What an overlay is created from.
#[derive(Debug, Clone, Copy)]
pub struct OverlayConfig<'a> {
    /// The directory below the overlay, absolute and without symbolic links.
    pub workspace: &'a Path,
    /// Paths below it that are never written, relative or absolute.
    pub protect: &'a [ByteString],
}

/// The directories to mount; the lower one is the workspace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OverlayLayers {
    /// The upper layer, which the command writes to.
    pub upper: PathBuf,
    /// The work directory of overlayfs, on the same file system.
    pub work: PathBuf,
}

/// Creates the layers in `store` (the directory `overlay` of an execution, created where it is
/// missing) and records what the command will see. Layers of an earlier attempt are kept.
///
/// # Errors
/// [`OverlayError::TooMany`] for a workspace with more than [`OVERLAY_ENTRIES_MAX`] entries,
/// [`OverlayError::Io`].
pub fn prepare(store: &Path, config: &OverlayConfig<'_>) -> Result<OverlayLayers, OverlayError> {
    let layers = OverlayLayers {
        upper: store.join(UPPER),
        work: store.join(WORK),
    };
    make_private_dir(store)?;
    if store.join(BASELINE).exists() {
        return Ok(layers);
    }
    make_private_dir(&layers.upper)?;
    make_private_dir(&layers.work)?;
    copy_owner_and_mode(&layers.upper, config.workspace)
        .map_err(|source| io_error("cannot prepare", &layers.upper, source))?;
    let protect = config.protect.iter();
    let record = BaselineRecord {
        workspace: config.workspace.as_os_str().as_bytes().to_vec(),
        protect: protect
            .map(|path| relative(path, config.workspace))
            .collect(),
        baseline: Baseline::capture(config.workspace)?,
    };
    // An overlay must be discarded also where the disk has no inode for a new file.
    open_lock(store)?;
    save(store, BASELINE, &record)?;
    Ok(layers)
}

fn make_private_dir(path: &Path) -> Result<(), OverlayError> {
    const PRIVATE: u32 = 0o700;
    DirBuilder::new()
        .recursive(true)
        .mode(PRIVATE)
        .create(path)
        .map_err(|source| io_error("cannot make", path, source))
}

/// Gives the upper layer's directory, which the command sees, owner and mode of the workspace.
fn copy_owner_and_mode(upper: &Path, workspace: &Path) -> io::Result<()> {
    let stat = BeneathRoot::open(workspace)?.stat()?;
    if rustix::process::geteuid().is_root() {
        let (uid, gid) = (Uid::from_raw(stat.st_uid), Gid::from_raw(stat.st_gid));
        rustix::fs::chown(upper, Some(uid), Some(gid))?;
    }
    Ok(rustix::fs::chmod(
        upper,
        Mode::from_raw_mode(stat.st_mode & 0o7777),
    )?)
}

fn relative(path: &ByteString, workspace: &Path) -> Vec<u8> {
    let path = path.as_path();
    let path = path.strip_prefix(workspace).unwrap_or(path);
    path.as_os_str().as_bytes().to_vec()
}

fn open_lock(store: &Path) -> Result<File, OverlayError> {
    let path = store.join(LOCK);
    let lock = File::options().create(true).append(true).open(&path);
    lock.map_err(|source| io_error("cannot open", &path, source))
}

/// The overlay of an execution.
#[derive(Debug)]
pub struct OverlayStore {
    pub(super) dir: PathBuf,
    /// Whether the command has ended.
    has_ended: bool,
    /// Serializes operations, across processes.
    _lock: File,
}

/// The purpose for which the layers are opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SidesUse {
    /// To show what there is, as far as it can be read.
    Review,
    /// To write all of it to the host. The command has ended.
    Commit,
}

/// The result of a commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CommitOutcome {
    /// The changes are on the host.
    Committed(OverlayChanges),
    /// The changes include files that run automatically; nothing is committed. None is listed.
    Autorun(OverlayChanges),
    /// The host changed meanwhile; nothing is committed. None is listed.
    Conflicts(OverlayChanges),
}

impl OverlayStore {
    /// Opens the directory that [`prepare`] created, and waits until no other operation uses it.
    ///
    /// # Errors
    /// [`OverlayError::None`] where there is none.
    pub fn open(store: &Path) -> Result<Self, OverlayError> {
        if !store.join(BASELINE).exists() && !store.join(DECISION).exists() {
            return Err(OverlayError::None);
        }
        let lock = open_lock(store)?;
        lock.lock()
            .map_err(|source| io_error("cannot lock", &store.join(LOCK), source))?;
        Ok(Self {
            _lock: lock,
            has_ended: false,
            dir: store.to_owned(),
        })
    }

    /// The same overlay, of a command that has ended: directories that it closed to their owner are
    /// opened, so that changes and diff show what a commit writes.
    #[must_use]
    pub fn of_ended_command(self) -> Self {
        Self {
            has_ended: true,
            ..self
        }
    }

    /// The changes of the command, at most `limit` of them sorted by path (0 only counts them), and
    /// whether they were committed or discarded. Works after the decision too; a commit that was
    /// interrupted is resumed first.
    ///
    /// # Errors
    /// When the layers cannot be read, or the commit cannot be resumed.
    pub fn changes(&self, limit: usize) -> Result<OverlayChanges, OverlayError> {
        self.resume_commit()?;
        if let Some(decision) = self.decision()? {
            let mut changes = decision.changes;
            changes.changes.truncate(limit);
            return Ok(changes);
        }
        let (mut sides, head) = self.open_sides(SidesUse::Review)?;
        let edits = collect_edits(&mut sides, &head)?;
        let mut changes = summarize(&edits, limit, OverlayOutcome::Open);
        if limit > 0 {
            changes.autorun = self.autorun_as_far_as_read(&sides, &head, &edits);
            changes.changed_on_host = changed_on_host(&mut sides, &edits);
        }
        Ok(changes)
    }

    /// Automatically run files among these edits.
    fn autorun(&self, record: &BaselineRecord, edits: &[OverlayEdit]) -> AutorunReport {
        let workspace = Path::new(std::ffi::OsStr::from_bytes(&record.workspace));
        let paths = edits.iter().filter(|edit| edit.new.is_some());
        let paths: BTreeSet<&[u8]> = paths.map(|edit| edit.path.as_slice()).collect();
        autorun::scan_changes(
            workspace,
            &self.dir.join(UPPER),
            &paths,
            OVERLAY_ENTRIES_MAX,
        )
    }

    /// As [`Self::autorun`]; a directory that the command has closed is named.
    fn autorun_as_far_as_read(
        &self,
        sides: &ThreeWay,
        record: &BaselineRecord,
        edits: &[OverlayEdit],
    ) -> AutorunReport {
        let mut report = self.autorun(record, edits);
        if let Some(path) = &sides.unread {
            let path = String::from_utf8_lossy(path);
            let reason = if self.has_ended {
                "could not be opened"
            } else {
                "is closed to its owner while the command runs"
            };
            report.incomplete = Some(format!("{path} {reason}: what is in it is not listed"));
        }
        report
    }

    /// The changes below `paths` (all where empty) as a unified diff of at most `limit_bytes`,
    /// whether it was truncated, and all changes without the list. The diff compares with the host
    /// as it is now: what changed there since the start is named, below the same paths.
    ///
    /// # Errors
    /// As [`OverlayStore::changes`]; [`OverlayError::Decided`].
    pub fn diff(
        &self,
        paths: &[ByteString],
        limit_bytes: usize,
    ) -> Result<(String, bool, OverlayChanges), OverlayError> {
        self.resume_commit()?;
        self.check_undecided()?;
        let (mut sides, head) = self.open_sides(SidesUse::Review)?;
        let mut edits = collect_edits(&mut sides, &head)?;
        let mut changes = summarize(&edits, 0, OverlayOutcome::Open);
        changes.autorun = self.autorun_as_far_as_read(&sides, &head, &edits);
        edits.retain(|edit| diff::is_selected(&edit.path, paths));
        let (text, truncated) = diff::write_diff(&mut sides, &edits, limit_bytes);
        changes.changed_on_host = changed_on_host(&mut sides, &edits);
        Ok((text, truncated, changes))
    }

    /// Writes the changes to the host; or returns the conflicting changes of the host, or the
    /// automatically run files among the changes unless they are allowed. The command must have
    /// ended.
    ///
    /// # Errors
    /// [`OverlayError::Decided`], [`OverlayError::Protected`], [`OverlayError::Interrupted`],
    /// [`OverlayError::Locked`].
    pub fn commit(&self, allow_autorun: bool) -> Result<CommitOutcome, OverlayError> {
        if let Some(changes) = self.resume_commit()? {
            return Ok(CommitOutcome::Committed(changes));
        }
        self.check_undecided()?;
        let (mut sides, head) = self.open_sides(SidesUse::Commit)?;
        let workspace = Path::new(std::ffi::OsStr::from_bytes(&head.workspace));
        let _lock = CommitLock::acquire(workspace)?;
        let mut edits = collect_edits(&mut sides, &head)?;
        edits.retain(|edit| edit.action != EditAction::Skip);
        check_protected(&head, &edits)?;
        let mut refused = summarize(&edits, 0, OverlayOutcome::Open);
        let autorun = self.autorun(&head, &edits);
        if !allow_autorun && !autorun.is_empty() {
            refused.autorun = autorun;
            return Ok(CommitOutcome::Autorun(refused));
        }
        let conflicts = conflict::find_conflicts(&mut sides.host, &sides.baseline, &edits);
        refused.changed_on_host =
            conflicts.map_err(|source| io_error("cannot read", workspace, source))?;
        if !refused.changed_on_host.is_empty() {
            return Ok(CommitOutcome::Conflicts(refused));
        }
        commit::check_access(&mut sides, &edits)?;
        let intent = CommitIntent {
            tag: random_tag(),
            edits,
        };
        save(&self.dir, INTENT, &intent)?;
        let mut changes = self.run_commit(&mut sides, &intent)?;
        changes.autorun = autorun;
        Ok(CommitOutcome::Committed(changes))
    }

    /// Discards the changes. A commit that was interrupted and cannot be resumed ends here: its
    /// changes on the host stay and are returned as committed, and the rest is discarded.
    ///
    /// # Errors
    /// [`OverlayError::Decided`], [`OverlayError::Io`].
    pub fn discard(&self) -> Result<OverlayChanges, OverlayError> {
        match self.resume_commit() {
            Ok(_) => {}
            // The list is what is on the host.
            Err(OverlayError::Interrupted { .. } | OverlayError::Io { .. })
                if self.dir.join(INTENT).exists() =>
            {
                let changes = self.interrupted_changes()?;
                self.record_decision(changes.clone())?;
                return Ok(changes);
            }
            Err(error) => return Err(error),
        }
        self.check_undecided()?;
        let changes = summarize(&[], 0, OverlayOutcome::Discarded);
        self.record_decision(changes.clone())?;
        Ok(changes)
    }

    fn check_undecided(&self) -> Result<(), OverlayError> {
        match self.decision()? {
            None => Ok(()),
            Some(decision) => Err(OverlayError::Decided {
                committed: decision.changes.fate == OverlayOutcome::Committed,
            }),
        }
    }

    pub(super) fn open_sides(
        &self,
        purpose: SidesUse,
    ) -> Result<(ThreeWay, BaselineRecord), OverlayError> {
        let damaged = OverlayError::Damaged { name: BASELINE };
        let mut record: BaselineRecord = load(&self.dir, BASELINE)?.ok_or(OverlayError::None)?;
        let then = std::mem::take(&mut record.baseline);
        if !then.is_valid() {
            return Err(damaged);
        }
        let workspace = Path::new(std::ffi::OsStr::from_bytes(&record.workspace));
        let upper = self.dir.join(UPPER);
        let must_read_all = purpose == SidesUse::Commit;
        let mut closed =
            ClosedDirectories::load(&self.dir, self.has_ended || purpose == SidesUse::Commit)?;
        closed
            .open_top(&upper)
            .map_err(|source| io_error("cannot open", &upper, source))?;
        let open = |path: &Path| {
            BeneathRoot::open(path).map_err(|source| io_error("cannot open", path, source))
        };
        let sides = ThreeWay {
            baseline: then,
            host: open(workspace)?,
            // The state directory may be reached through a link; paths below it are not followed
            // through links.
            upper: open(&fs::canonicalize(&upper).unwrap_or(upper))?,
            closed,
            must_read_all,
            unread: None,
            compared: 0,
        };
        Ok((sides, record))
    }

    /// Resumes an interrupted commit; none where there was none.
    fn resume_commit(&self) -> Result<Option<OverlayChanges>, OverlayError> {
        if let Some(decision) = self.decision()? {
            self.complete_decision(decision)?;
            return Ok(None);
        }
        let Some(intent) = load::<CommitIntent>(&self.dir, INTENT)? else {
            return Ok(None);
        };
        let (mut sides, head) = self.open_sides(SidesUse::Commit)?;
        let _lock = CommitLock::acquire(Path::new(std::ffi::OsStr::from_bytes(&head.workspace)))?;
        self.run_commit(&mut sides, &intent).map(Some)
    }

    fn run_commit(
        &self,
        sides: &mut ThreeWay,
        intent: &CommitIntent,
    ) -> Result<OverlayChanges, OverlayError> {
        let log = CommitLog::open(&self.dir);
        let log = log.map_err(|source| io_error("cannot write", &self.dir.join(LOG), source))?;
        Commit { sides, intent, log }.run()?;
        let changes = summarize(&intent.edits, DECIDED_LISTED_MAX, OverlayOutcome::Committed);
        self.record_decision(changes.clone())?;
        Ok(changes)
    }
}

/// What changed on the host since the start among these edits. What cannot be read there is left
/// out: only a commit, which cannot be executed then, reports it.
fn changed_on_host(sides: &mut ThreeWay, edits: &[OverlayEdit]) -> Vec<OverlayConflict> {
    conflict::find_conflicts(&mut sides.host, &sides.baseline, edits).unwrap_or_default()
}

/// The edits of a workspace, except those the jail itself made: directories created at protected
/// paths to mount on.
pub(super) fn collect_edits(
    sides: &mut ThreeWay,
    record: &BaselineRecord,
) -> Result<Vec<OverlayEdit>, OverlayError> {
    let mut edits = sides.find_edits()?;
    let paths: Vec<Vec<u8>> = edits.iter().map(|edit| edit.path.clone()).collect();
    let mut step = 0;
    edits.retain(|edit| {
        step += 1;
        let made =
            edit.old.is_none() && edit.new.is_some_and(|new| new.kind == EntryKind::Directory);
        let next = paths.get(step);
        let empty = next.is_none_or(|next| !is_within(next, &edit.path));
        !(made && empty && record.protect.contains(&edit.path))
    });
    Ok(edits)
}

fn check_protected(record: &BaselineRecord, edits: &[OverlayEdit]) -> Result<(), OverlayError> {
    let protected = |path: &[u8]| record.protect.iter().any(|it| is_within(path, it));
    match edits.iter().find(|edit| protected(&edit.path)) {
        Some(edit) => Err(OverlayError::Protected {
            path: edit.path.clone().into(),
        }),
        None => Ok(()),
    }
}

/// Whether a path is another or below it.
fn is_within(path: &[u8], above: &[u8]) -> bool {
    let rest = path.strip_prefix(above);
    !above.is_empty() && rest.is_some_and(|rest| rest.is_empty() || rest[0] == b'/')
}

/// A tag that no other commit has.
fn random_tag() -> u64 {
    use std::hash::{BuildHasher, RandomState};
    RandomState::new().hash_one(std::process::id())
}
