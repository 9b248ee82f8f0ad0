//! Writes the changes of an overlay to the host. Each step is applied to the host atomically, and
//! never replaces anything the command did not see:
//!
//! 1. entries of directories that become something else are removed,
//! 2. new and changed entries are staged beside their final path, logged, and exchanged with what
//!    is there; what the exchange returns must be what the command saw, or it is put back,
//! 3. deleted entries are removed, directories after their entries,
//! 4. directories get their modes, the deepest first.
//!
//! A step that was executed is recognised by its inode, so that a commit can be resumed where a
//! killed process left it. Nothing is flushed to the disk, as with most other programs that write
//! files: after a power loss the host has what its file system kept.

use std::collections::BTreeSet;
use std::io;

use rustix::fs::{Access, AtFlags, RenameFlags, accessat, renameat_with, statat, unlinkat};
use rustix::io::Errno;

use super::compare::{EditAction, OverlayEdit, ThreeWay};
use super::error::OverlayError;
use super::records::{CommitIntent, CommitLog, StepInodes};
use super::staging;
use crate::openat2::entry_stamp::{EntryKind, EntryStamp, MODE_BITS};
use crate::openat2::{BeneathRoot, split};

/// A commit under way.
#[derive(Debug)]
pub(super) struct Commit<'a> {
    pub(super) sides: &'a mut ThreeWay,
    pub(super) intent: &'a CommitIntent,
    pub(super) log: CommitLog,
}

/// A step of a commit.
#[derive(Debug, Clone, Copy)]
enum CommitStep {
    /// The whole step.
    Apply(usize),
    /// The final mode of a new directory, set after all others: no entry could be created in one
    /// that is closed.
    SetMode(usize),
}

/// Why a step failed: the operation and its error.
type StepError = (&'static str, io::Error);

impl Commit<'_> {
    /// Executes every step that is not done yet.
    pub(super) fn run(&mut self) -> Result<(), OverlayError> {
        self.run_steps(usize::MAX)
    }

    /// Executes this many steps.
    pub(super) fn run_steps(&mut self, steps: usize) -> Result<(), OverlayError> {
        let intent = self.intent;
        let edits = &intent.edits;
        for commit_step in commit_order(edits).into_iter().take(steps) {
            let (CommitStep::Apply(step) | CommitStep::SetMode(step)) = commit_step;
            let edit = &edits[step];
            let result = match commit_step {
                CommitStep::Apply(step) => self.apply(step, edit),
                CommitStep::SetMode(_) => self.set_mode(edit),
            };
            result.map_err(|(what, source)| OverlayError::Interrupted {
                what,
                path: edit.path.clone().into(),
                source,
                done: completed_edits(&mut self.sides.host, intent, &self.log.inodes).len(),
                of: edits.len(),
            })?;
        }
        Ok(())
    }

    fn apply(&mut self, step: usize, edit: &OverlayEdit) -> Result<(), StepError> {
        match edit.action {
            EditAction::Replace => self.replace(step, edit),
            EditAction::Remove => self.remove(step, edit),
            EditAction::Mode => self.set_mode(edit),
            EditAction::Skip => Ok(()),
        }
    }

    fn replace(&mut self, step: usize, edit: &OverlayEdit) -> Result<(), StepError> {
        let Some(new) = &edit.new else {
            return Ok(());
        };
        let temporary = self.intent.temporary_name(step);
        let write = |error| ("cannot write", error);
        let now = self.sides.host.stamp_at(&edit.path).map_err(write)?;
        let (dir, name) = self.sides.host.parent(&edit.path).map_err(write)?;
        if self.log.is_resumed() {
            // Left by a process that was killed between two calls.
            discard(dir, &temporary).map_err(write)?;
        }
        if is_logged(&self.log.inodes, step, now.as_ref()) {
            return Ok(());
        }
        let staged = staging::stage(&mut self.sides.upper, &edit.path, new, dir, &temporary);
        let moved = staged.and_then(|ino| {
            self.log.append(step_number(step), ino)?;
            move_into_place(dir, &temporary, name, edit)
        });
        if moved.is_err() {
            // The error is reported below; the staged file is removed by the next attempt too.
            drop(discard(dir, &temporary));
        }
        moved.map_err(write)
    }

    fn remove(&mut self, step: usize, edit: &OverlayEdit) -> Result<(), StepError> {
        let failed = |error| ("cannot remove", error);
        let Some(old) = &edit.old else {
            return Ok(());
        };
        let temporary = self.intent.temporary_name(step);
        let (dir, name) = match self.sides.host.parent(&edit.path) {
            Ok(found) => found,
            Err(error) if crate::openat2::is_absent(&error) => return Ok(()),
            Err(error) => return Err(failed(error)),
        };
        if old.kind == EntryKind::Directory {
            return match unlinkat(dir, name, AtFlags::REMOVEDIR) {
                Ok(()) | Err(Errno::NOENT) => Ok(()),
                Err(error) => Err(failed(error.into())),
            };
        }
        match renameat_with(dir, name, dir, temporary.as_str(), RenameFlags::NOREPLACE) {
            // Gone already, or renamed by a process that was killed then.
            Ok(()) | Err(Errno::NOENT) => {}
            Err(Errno::INVAL | Errno::NOSYS) => {
                return remove_expected(dir, name, old).map_err(failed);
            }
            Err(error) => return Err(failed(error.into())),
        }
        match statat(dir, temporary.as_str(), AtFlags::SYMLINK_NOFOLLOW) {
            Err(Errno::NOENT) => Ok(()),
            Err(error) => Err(failed(error.into())),
            Ok(stat) if old.has_same_content(&EntryStamp::of(&stat)) => {
                discard(dir, &temporary).map_err(failed)
            }
            Ok(_) => {
                let back =
                    renameat_with(dir, temporary.as_str(), dir, name, RenameFlags::NOREPLACE);
                Err(failed(
                    back.map_or_else(io::Error::from, |()| host_changed()),
                ))
            }
        }
    }

    fn set_mode(&mut self, edit: &OverlayEdit) -> Result<(), StepError> {
        let failed = |error| ("cannot change the mode of", error);
        let path: &[u8] = if edit.path == b"." { b"" } else { &edit.path };
        let Some(new) = edit.new else {
            return Ok(());
        };
        staging::chmod(&self.sides.host, path, new.mode & MODE_BITS).map_err(failed)
    }
}

impl CommitIntent {
    /// The name of a staged file until it is moved into place.
    fn temporary_name(&self, step: usize) -> String {
        format!(".ostler-{:016x}-{step}", self.tag)
    }
}

/// The changes of a commit that are on the host.
pub(super) fn completed_edits(
    host: &mut BeneathRoot,
    intent: &CommitIntent,
    inodes: &StepInodes,
) -> Vec<OverlayEdit> {
    let edits = intent.edits.iter().enumerate();
    let done = edits.filter(|(step, edit)| is_done(host, inodes, *step, edit).unwrap_or(false));
    done.map(|(_, edit)| edit.clone()).collect()
}

fn is_done(
    host: &mut BeneathRoot,
    inodes: &StepInodes,
    step: usize,
    edit: &OverlayEdit,
) -> io::Result<bool> {
    let now = host.stamp_at(&edit.path)?;
    Ok(match edit.action {
        EditAction::Replace => is_logged(inodes, step, now.as_ref()),
        EditAction::Mode => {
            let mode = |seen: &Option<EntryStamp>| seen.map(|it| it.mode & MODE_BITS);
            mode(&now) == mode(&edit.new)
        }
        EditAction::Remove => now.is_none(),
        EditAction::Skip => false,
    })
}

/// Removes staged files that were not moved into place.
pub(super) fn remove_temporaries(host: &mut BeneathRoot, intent: &CommitIntent) {
    for (step, edit) in intent.edits.iter().enumerate() {
        if let Ok((dir, _)) = host.parent(&edit.path) {
            // A missing file needs no removal; one that cannot be removed does no harm.
            drop(discard(dir, &intent.temporary_name(step)));
        }
    }
}

/// Checks before a commit that every directory it writes to is writable.
pub(super) fn check_access(
    sides: &mut ThreeWay,
    edits: &[OverlayEdit],
) -> Result<(), OverlayError> {
    let mut checked_dirs = BTreeSet::new();
    for edit in edits {
        let parent = split(&edit.path).0;
        if !matches!(edit.action, EditAction::Replace | EditAction::Remove)
            || !checked_dirs.insert(parent)
        {
            continue;
        }
        let was = sides
            .baseline
            .find(parent)
            .map(|at| sides.baseline.stamp(at).kind);
        // Other directories are created by the commit.
        let stands = was == Some(EntryKind::Directory);
        let checked = || -> io::Result<()> {
            let (dir, _) = sides.host.parent(&edit.path)?;
            if stands {
                let write = Access::WRITE_OK | Access::EXEC_OK;
                accessat(dir, ".", write, AtFlags::EACCESS)?;
            }
            Ok(())
        }();
        match checked {
            Err(source) if stands => {
                return Err(OverlayError::Io {
                    what: "cannot write in",
                    path: parent.to_vec().into(),
                    source,
                });
            }
            Ok(()) | Err(_) => {}
        }
    }
    Ok(())
}

/// The order of steps; see the module documentation.
fn commit_order(edits: &[OverlayEdit]) -> Vec<CommitStep> {
    let directory =
        |seen: &Option<EntryStamp>| seen.is_some_and(|it| it.kind == EntryKind::Directory);
    let replaced_dirs: BTreeSet<&[u8]> = edits
        .iter()
        .filter(|it| it.action == EditAction::Replace && directory(&it.old) && !directory(&it.new))
        .map(|it| it.path.as_slice())
        .collect();
    let phase = |edit: &OverlayEdit| match edit.action {
        EditAction::Remove if is_below_any(&edit.path, &replaced_dirs) => 0,
        EditAction::Replace => 1,
        EditAction::Remove => 2,
        EditAction::Mode | EditAction::Skip => 3,
    };
    let mut steps: [Vec<usize>; 4] = Default::default();
    for (step, edit) in edits.iter().enumerate() {
        steps[phase(edit)].push(step);
    }
    for backwards in [0, 2, 3] {
        steps[backwards].reverse();
    }
    let puts = steps[1].clone();
    let mut order: Vec<CommitStep> = steps.concat().into_iter().map(CommitStep::Apply).collect();
    let made = puts.into_iter().rev();
    let made = made.filter(|step| directory(&edits[*step].new));
    order.extend(made.map(CommitStep::SetMode));
    order
}

fn is_below_any(path: &[u8], directories: &BTreeSet<&[u8]>) -> bool {
    let mut above = split(path).0;
    while !above.is_empty() {
        if directories.contains(above) {
            return true;
        }
        above = split(above).0;
    }
    false
}

/// Whether the host has what a step wrote there.
fn is_logged(inodes: &StepInodes, step: usize, now: Option<&EntryStamp>) -> bool {
    let logged = inodes.get(step_number(step));
    logged.is_some() && logged == now.map(|it| it.ino)
}

/// Moves a staged entry into place.
fn move_into_place(
    dir: std::os::fd::BorrowedFd<'_>,
    temporary: &str,
    name: &std::ffi::OsStr,
    edit: &OverlayEdit,
) -> io::Result<()> {
    let becomes = edit.new.is_some_and(|new| new.kind != EntryKind::Directory);
    let old = match &edit.old {
        Some(old) if old.kind == EntryKind::Directory && becomes => {
            match unlinkat(dir, name, AtFlags::REMOVEDIR) {
                // Removed by a process that was killed then.
                Ok(()) | Err(Errno::NOENT) => None,
                Err(error) => return Err(error.into()),
            }
        }
        other => other.as_ref(),
    };
    let Some(old) = old else {
        return Ok(renameat_with(
            dir,
            temporary,
            dir,
            name,
            RenameFlags::NOREPLACE,
        )?);
    };
    match renameat_with(dir, temporary, dir, name, RenameFlags::EXCHANGE) {
        Ok(()) => {}
        Err(Errno::INVAL | Errno::NOSYS) => {
            remove_expected(dir, name, old)?;
            return Ok(rustix::fs::renameat(dir, temporary, dir, name)?);
        }
        Err(error) => return Err(error.into()),
    }
    let stat = statat(dir, temporary, AtFlags::SYMLINK_NOFOLLOW)?;
    if old.has_same_content(&EntryStamp::of(&stat)) {
        return discard(dir, temporary);
    }
    renameat_with(dir, temporary, dir, name, RenameFlags::EXCHANGE)?;
    Err(host_changed())
}

/// Removes the entry the command saw, where a file system cannot exchange two names.
fn remove_expected(
    dir: std::os::fd::BorrowedFd<'_>,
    name: &std::ffi::OsStr,
    old: &EntryStamp,
) -> io::Result<()> {
    let stat = match statat(dir, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => stat,
        Err(Errno::NOENT) => return Ok(()),
        Err(error) => return Err(error.into()),
    };
    if !old.has_same_content(&EntryStamp::of(&stat)) {
        return Err(host_changed());
    }
    Ok(unlinkat(dir, name, AtFlags::empty())?)
}

/// Removes a file, or an empty directory, that may be there.
fn discard(dir: std::os::fd::BorrowedFd<'_>, name: &str) -> io::Result<()> {
    let removed = match unlinkat(dir, name, AtFlags::empty()) {
        Err(Errno::ISDIR | Errno::PERM) => unlinkat(dir, name, AtFlags::REMOVEDIR),
        other => other,
    };
    match removed {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

fn host_changed() -> io::Error {
    io::Error::new(io::ErrorKind::ResourceBusy, "the host changed meanwhile")
}

fn step_number(step: usize) -> u32 {
    // At most twice OVERLAY_ENTRIES_MAX.
    u32::try_from(step).unwrap_or(u32::MAX)
}
