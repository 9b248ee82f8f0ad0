//! [`Store`]: the layers of one execution and what is known of them.

use std::collections::BTreeSet;
use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use ostler_model::{AutorunReport, ChangeKind, Changes, Conflict, Fate, Text};
use rustix::fs::{Gid, Mode, Uid};

use super::baseline::Baseline;
use super::beneath::Root;
use super::commit::{self, Commit};
use super::error::OverlayError;
use super::records::{
    BASELINE, Decision, FATE, Head, INTENT, Intent, LOCK, LOG, Log, failed, load, save,
};
use super::scan::{Act, Edit, Sides};
use super::seen::Kind;
use super::{conflict, diff, remove};
use crate::autorun;

/// Entries a workspace may have to be put under an overlay, and a layer to be looked at.
pub const OVERLAY_ENTRIES_MAX: usize = 500_000;
/// Changes that are still listed after the decision.
pub const DECIDED_LISTED_MAX: usize = 10_000;

const UPPER: &str = "upper";
const WORK: &str = "work";

/// What an overlay is made for.
#[derive(Debug, Clone, Copy)]
pub struct Wanted<'a> {
    /// The directory below the overlay, absolute and without symbolic links.
    pub workspace: &'a Path,
    /// Paths below it that are never written, relative or absolute.
    pub protect: &'a [Text],
}

/// The directories to mount: lower is the workspace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layers {
    /// What the command writes.
    pub upper: PathBuf,
    /// The kernel's own, on the same file system.
    pub work: PathBuf,
}

/// Makes the layers in `store` (the directory `overlay` of an execution, made where it is
/// missing) and writes down what the command will see. What is there from an earlier attempt
/// stays as it is.
///
/// # Errors
/// [`OverlayError::TooMany`] for a workspace with more than [`OVERLAY_ENTRIES_MAX`] entries,
/// [`OverlayError::Io`].
pub fn prepare(store: &Path, wanted: &Wanted<'_>) -> Result<Layers, OverlayError> {
    let layers = Layers {
        upper: store.join(UPPER),
        work: store.join(WORK),
    };
    make(store)?;
    if store.join(BASELINE).exists() {
        return Ok(layers);
    }
    make(&layers.upper)?;
    make(&layers.work)?;
    like(&layers.upper, wanted.workspace)
        .map_err(|source| failed("cannot prepare", &layers.upper, source))?;
    let protect = wanted.protect.iter();
    let head = Head {
        workspace: wanted.workspace.as_os_str().as_bytes().to_vec(),
        protect: protect
            .map(|path| relative(path, wanted.workspace))
            .collect(),
        then: Baseline::take(wanted.workspace)?,
    };
    save(store, BASELINE, &head)?;
    Ok(layers)
}

fn make(path: &Path) -> Result<(), OverlayError> {
    const PRIVATE: u32 = 0o700;
    DirBuilder::new()
        .recursive(true)
        .mode(PRIVATE)
        .create(path)
        .map_err(|source| failed("cannot make", path, source))
}

/// The upper layer's directory is the one that the command sees: its owner and mode are those
/// of the workspace.
fn like(upper: &Path, workspace: &Path) -> io::Result<()> {
    let stat = Root::open(workspace)?.stat()?;
    if rustix::process::geteuid().is_root() {
        let (uid, gid) = (Uid::from_raw(stat.st_uid), Gid::from_raw(stat.st_gid));
        rustix::fs::chown(upper, Some(uid), Some(gid))?;
    }
    Ok(rustix::fs::chmod(
        upper,
        Mode::from_raw_mode(stat.st_mode & 0o7777),
    )?)
}

fn relative(path: &Text, workspace: &Path) -> Vec<u8> {
    let path = path.as_path();
    let path = path.strip_prefix(workspace).unwrap_or(path);
    path.as_os_str().as_bytes().to_vec()
}

/// The overlay of an execution.
#[derive(Debug)]
pub struct Store {
    dir: PathBuf,
    /// Decisions and looks come one after the other, from whatever process.
    _lock: File,
}

/// What came of a commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The changes are on the host.
    Committed(Changes),
    /// What is run or obeyed unasked is among them; nothing is committed.
    Autorun(AutorunReport),
    /// The host changed meanwhile; nothing is committed.
    Conflicts(Vec<Conflict>),
}

impl Store {
    /// Opens the directory that [`prepare`] made, and waits until nobody else works with it.
    ///
    /// # Errors
    /// [`OverlayError::None`] where there is none.
    pub fn open(store: &Path) -> Result<Self, OverlayError> {
        if !store.join(BASELINE).exists() && !store.join(FATE).exists() {
            return Err(OverlayError::None);
        }
        let path = store.join(LOCK);
        let lock = File::options().create(true).append(true).open(&path);
        let lock = lock.and_then(|file| file.lock().map(|()| file));
        Ok(Self {
            _lock: lock.map_err(|source| failed("cannot lock", &path, source))?,
            dir: store.to_owned(),
        })
    }

    /// What the command changed, at most `limit` of them sorted by path (0 counts them and
    /// judges nothing), and what became of it. Also after the decision; a commit that was begun and not finished is carried on
    /// with first.
    ///
    /// # Errors
    /// When the layers cannot be read, or the commit cannot go on.
    pub fn changes(&self, limit: usize) -> Result<Changes, OverlayError> {
        self.resume()?;
        if let Some(decision) = Decision::load(&self.dir)? {
            let mut changes = decision.changes;
            changes.changes.truncate(limit);
            return Ok(changes);
        }
        let (mut sides, head) = self.sides(false)?;
        let edits = edits(&mut sides, &head)?;
        let mut changes = listed(&edits, limit, Fate::Open);
        if limit > 0 {
            changes.autorun = self.autorun(&head, &edits);
        }
        Ok(changes)
    }

    /// What of these edits is run or obeyed unasked.
    fn autorun(&self, head: &Head, edits: &[Edit]) -> AutorunReport {
        let workspace = Path::new(std::ffi::OsStr::from_bytes(&head.workspace));
        let paths = edits.iter().filter(|edit| edit.new.is_some());
        let paths: BTreeSet<&[u8]> = paths.map(|edit| edit.path.as_slice()).collect();
        autorun::of_changes(
            workspace,
            &self.dir.join(UPPER),
            &paths,
            OVERLAY_ENTRIES_MAX,
        )
    }

    /// The changes below `paths` (all where empty) as a unified diff of at most `limit_bytes`,
    /// whether more was to be said, and what of all changes is run or obeyed unasked.
    ///
    /// # Errors
    /// As [`Store::changes`]; [`OverlayError::Decided`].
    pub fn diff(
        &self,
        paths: &[Text],
        limit_bytes: usize,
    ) -> Result<(String, bool, AutorunReport), OverlayError> {
        self.resume()?;
        self.check_open()?;
        let (mut sides, head) = self.sides(false)?;
        let edits = edits(&mut sides, &head)?;
        let autorun = self.autorun(&head, &edits);
        let (text, truncated) = diff::write(&mut sides, &edits, paths, limit_bytes);
        Ok((text, truncated, autorun))
    }

    /// Puts the changes on the host, or tells what changed there meanwhile, or what of them is
    /// run or obeyed unasked unless that is allowed. The command must have ended.
    ///
    /// # Errors
    /// [`OverlayError::Decided`], [`OverlayError::Protected`], [`OverlayError::Interrupted`].
    pub fn commit(&self, allow_autorun: bool) -> Result<Outcome, OverlayError> {
        if let Some(changes) = self.resume()? {
            return Ok(Outcome::Committed(changes));
        }
        self.check_open()?;
        let (mut sides, head) = self.sides(true)?;
        let mut edits = edits(&mut sides, &head)?;
        edits.retain(|edit| edit.act != Act::Leave);
        check_protected(&head, &edits)?;
        let autorun = self.autorun(&head, &edits);
        if !allow_autorun && !autorun.is_empty() {
            return Ok(Outcome::Autorun(autorun));
        }
        let conflicts = conflict::find(&mut sides.host, &sides.then, &edits);
        let workspace = Path::new(std::ffi::OsStr::from_bytes(&head.workspace));
        let conflicts = conflicts.map_err(|source| failed("cannot read", workspace, source))?;
        if !conflicts.is_empty() {
            return Ok(Outcome::Conflicts(conflicts));
        }
        commit::check_access(&mut sides, &edits)?;
        let intent = Intent { tag: tag(), edits };
        save(&self.dir, INTENT, &intent)?;
        let mut changes = self.carry_out(&mut sides, &intent)?;
        changes.autorun = autorun;
        Ok(Outcome::Committed(changes))
    }

    /// Forgets the changes. A commit that was begun and cannot go on ends here: what is on
    /// the host stays, is listed, and the rest is forgotten.
    ///
    /// # Errors
    /// [`OverlayError::Decided`], [`OverlayError::Io`].
    pub fn discard(&self) -> Result<(), OverlayError> {
        if let Err(error) = self.resume() {
            if !matches!(error, OverlayError::Interrupted { .. }) {
                return Err(error);
            }
            self.settle()?;
        }
        self.check_open()?;
        self.decide(listed(&[], 0, Fate::Discarded))
    }

    fn check_open(&self) -> Result<(), OverlayError> {
        match Decision::load(&self.dir)? {
            None => Ok(()),
            Some(decision) => Err(OverlayError::Decided {
                committed: decision.changes.fate == Fate::Committed,
            }),
        }
    }

    pub(super) fn sides(&self, may_unlock: bool) -> Result<(Sides, Head), OverlayError> {
        let damaged = OverlayError::Damaged { name: BASELINE };
        let mut head: Head = load(&self.dir, BASELINE)?.ok_or(OverlayError::None)?;
        let then = std::mem::take(&mut head.then);
        if !then.is_sound() {
            return Err(damaged);
        }
        let workspace = Path::new(std::ffi::OsStr::from_bytes(&head.workspace));
        let upper = self.dir.join(UPPER);
        let open =
            |path: &Path| Root::open(path).map_err(|source| failed("cannot open", path, source));
        let sides = Sides {
            then,
            host: open(workspace)?,
            // Our own directory may be reached by a link; what is below it is not followed.
            upper: open(&fs::canonicalize(&upper).unwrap_or(upper))?,
            may_unlock,
            compared: 0,
        };
        Ok((sides, head))
    }

    /// Goes on with a commit that was begun; none where there was none.
    fn resume(&self) -> Result<Option<Changes>, OverlayError> {
        if Decision::load(&self.dir)?.is_some() {
            self.clear()?;
            return Ok(None);
        }
        let Some(intent) = load::<Intent>(&self.dir, INTENT)? else {
            return Ok(None);
        };
        let (mut sides, _) = self.sides(true)?;
        self.carry_out(&mut sides, &intent).map(Some)
    }

    fn carry_out(&self, sides: &mut Sides, intent: &Intent) -> Result<Changes, OverlayError> {
        let log = Log::open(&self.dir);
        let log = log.map_err(|source| failed("cannot write", &self.dir.join(LOG), source))?;
        Commit { sides, intent, log }.run()?;
        let changes = listed(&intent.edits, DECIDED_LISTED_MAX, Fate::Committed);
        self.decide(changes.clone())?;
        Ok(changes)
    }

    /// Ends a commit where it stands.
    fn settle(&self) -> Result<(), OverlayError> {
        let Some(intent) = load::<Intent>(&self.dir, INTENT)? else {
            return Ok(());
        };
        let (mut sides, _) = self.sides(true)?;
        let log = Log::open(&self.dir);
        let log = log.map_err(|source| failed("cannot read", &self.dir.join(LOG), source))?;
        let done = Commit {
            sides: &mut sides,
            intent: &intent,
            log,
        }
        .done();
        self.decide(listed(&done, DECIDED_LISTED_MAX, Fate::Committed))
    }

    fn decide(&self, changes: Changes) -> Result<(), OverlayError> {
        Decision { changes }.save(&self.dir)?;
        self.clear()
    }

    /// Removes what a decision makes useless.
    fn clear(&self) -> Result<(), OverlayError> {
        for name in [INTENT, LOG, BASELINE] {
            match fs::remove_file(self.dir.join(name)) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(source) => return Err(failed("cannot remove", &self.dir.join(name), source)),
            }
        }
        remove::layers(&self.dir, &[UPPER, WORK])
            .map_err(|source| failed("cannot remove the layers in", &self.dir, source))
    }
}

/// The edits of a workspace, without what the walls themselves made: directories at protected
/// paths, to be mounted on.
pub(super) fn edits(sides: &mut Sides, head: &Head) -> Result<Vec<Edit>, OverlayError> {
    let mut edits = sides.scan()?;
    let paths: Vec<Vec<u8>> = edits.iter().map(|edit| edit.path.clone()).collect();
    let mut step = 0;
    edits.retain(|edit| {
        step += 1;
        let made = edit.old.is_none() && edit.new.is_some_and(|new| new.kind == Kind::Directory);
        let next = paths.get(step);
        let empty = next.is_none_or(|next| !is_within(next, &edit.path));
        !(made && empty && head.protect.contains(&edit.path))
    });
    Ok(edits)
}

fn check_protected(head: &Head, edits: &[Edit]) -> Result<(), OverlayError> {
    let protected = |path: &[u8]| head.protect.iter().any(|it| is_within(path, it));
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

fn listed(edits: &[Edit], limit: usize, fate: Fate) -> Changes {
    let mut totals = [0; 3];
    let mut changes = Vec::new();
    for edit in edits {
        let change = edit.change();
        totals[match change.kind {
            ChangeKind::Created => 0,
            ChangeKind::Changed => 1,
            ChangeKind::Deleted => 2,
        }] += 1;
        if changes.len() < limit {
            changes.push(change);
        }
    }
    Changes {
        changes,
        totals,
        fate,
        autorun: AutorunReport::default(),
    }
}

/// Something that no other commit is called.
fn tag() -> u64 {
    use std::hash::{BuildHasher, RandomState};
    RandomState::new().hash_one(std::process::id())
}
