//! The way of changes to the host. Each step stands on the host whole or not at all, and never
//! in the place of anything the command did not see:
//!
//! 1. what was in directories that become something else goes,
//! 2. what is new or changed is made beside its place, noted, and exchanged with what stands
//!    there; what came out of the exchange must be what the command saw, or it is put back,
//! 3. what is gone goes, directories after what was in them,
//! 4. directories get their modes, the deepest first.
//!
//! A step that was carried out is known by its inode, so that a commit can go on where a killed
//! process left it. Nothing is flushed to the disk, as with every other writer of files: after
//! a loss of power the host has what its file system kept.

use std::collections::BTreeSet;
use std::io;

use rustix::fs::{Access, AtFlags, RenameFlags, accessat, renameat_with, statat, unlinkat};
use rustix::io::Errno;

use super::beneath::split;
use super::error::OverlayError;
use super::records::{Intent, Log};
use super::scan::{Act, Edit, Sides};
use super::seen::{Kind, MODE_BITS, Seen};
use super::upper;

/// A commit under way.
#[derive(Debug)]
pub(super) struct Commit<'a> {
    pub(super) sides: &'a mut Sides,
    pub(super) intent: &'a Intent,
    pub(super) log: Log,
}

/// A step, or what is left of it once all others were taken.
#[derive(Debug, Clone, Copy)]
enum Visit {
    /// The whole step.
    Take(usize),
    /// The mode of a new directory: nothing could be put in one that is closed.
    Close(usize),
}

/// Why a step could not be taken.
type Failed = (&'static str, io::Error);

impl Commit<'_> {
    /// Carries out every step that is not done yet.
    pub(super) fn run(&mut self) -> Result<(), OverlayError> {
        self.run_some(usize::MAX)
    }

    /// Carries out so many steps.
    pub(super) fn run_some(&mut self, steps: usize) -> Result<(), OverlayError> {
        let edits = &self.intent.edits;
        for (done, visit) in order(edits).into_iter().enumerate().take(steps) {
            let (Visit::Take(step) | Visit::Close(step)) = visit;
            let edit = &edits[step];
            let taken = match visit {
                Visit::Take(step) => self.step(step, edit),
                Visit::Close(_) => self.mode(edit),
            };
            taken.map_err(|(what, source)| OverlayError::Interrupted {
                what,
                path: edit.path.clone().into(),
                source,
                done: done.min(edits.len()),
                of: edits.len(),
            })?;
        }
        Ok(())
    }

    /// The steps that are on the host, where a commit did not come to its end.
    pub(super) fn done(&mut self) -> Vec<Edit> {
        let edits = self.intent.edits.iter().enumerate();
        let done = edits.filter(|(step, edit)| self.is_done(*step, edit).unwrap_or(false));
        let done: Vec<Edit> = done.map(|(_, edit)| edit.clone()).collect();
        self.clear();
        done
    }

    fn is_done(&mut self, step: usize, edit: &Edit) -> io::Result<bool> {
        let now = self.sides.host.see(&edit.path)?;
        Ok(match edit.act {
            Act::Put => is_noted(&self.log, step, now.as_ref()),
            Act::Mode => {
                let mode = |seen: &Option<Seen>| seen.map(|it| it.mode & MODE_BITS);
                mode(&now) == mode(&edit.new)
            }
            Act::Remove => now.is_none(),
            Act::Leave => false,
        })
    }

    /// Takes away what lies beside its place.
    fn clear(&mut self) {
        for (step, edit) in self.intent.edits.iter().enumerate() {
            if let Ok((dir, _)) = self.sides.host.parent(&edit.path) {
                // What is not there needs no clearing; what cannot be removed harms nobody.
                drop(discard(dir, &self.intent.beside(step)));
            }
        }
    }

    fn step(&mut self, step: usize, edit: &Edit) -> Result<(), Failed> {
        match edit.act {
            Act::Put => self.put(step, edit),
            Act::Remove => self.remove(step, edit),
            Act::Mode => self.mode(edit),
            Act::Leave => Ok(()),
        }
    }

    fn put(&mut self, step: usize, edit: &Edit) -> Result<(), Failed> {
        let Some(new) = &edit.new else {
            return Ok(());
        };
        let beside = self.intent.beside(step);
        let write = |error| ("cannot write", error);
        let now = self.sides.host.see(&edit.path).map_err(write)?;
        let (dir, name) = self.sides.host.parent(&edit.path).map_err(write)?;
        if self.log.is_resumed() {
            // Left behind by a process that was killed between two calls.
            discard(dir, &beside).map_err(write)?;
        }
        if is_noted(&self.log, step, now.as_ref()) {
            return Ok(());
        }
        let ino = upper::stage(&mut self.sides.upper, (&edit.path, new), (dir, &beside))
            .map_err(write)?;
        self.log.note(number(step), ino).map_err(write)?;
        let placed = place(dir, (&beside, name), edit);
        if placed.is_err() {
            // Told below; what lies beside is removed by the next try too.
            drop(discard(dir, &beside));
        }
        placed.map_err(write)
    }

    fn remove(&mut self, step: usize, edit: &Edit) -> Result<(), Failed> {
        let failed = |error| ("cannot remove", error);
        let Some(old) = &edit.old else {
            return Ok(());
        };
        let beside = self.intent.beside(step);
        let (dir, name) = match self.sides.host.parent(&edit.path) {
            Ok(found) => found,
            Err(error) if super::beneath::is_absent(&error) => return Ok(()),
            Err(error) => return Err(failed(error)),
        };
        if old.kind == Kind::Directory {
            return match unlinkat(dir, name, AtFlags::REMOVEDIR) {
                Ok(()) | Err(Errno::NOENT) => Ok(()),
                Err(error) => Err(failed(error.into())),
            };
        }
        match renameat_with(dir, name, dir, beside.as_str(), RenameFlags::NOREPLACE) {
            // Gone already, or renamed by a process that was killed then.
            Ok(()) | Err(Errno::NOENT) => {}
            Err(Errno::INVAL | Errno::NOSYS) => return take_out(dir, name, old).map_err(failed),
            Err(error) => return Err(failed(error.into())),
        }
        match statat(dir, beside.as_str(), AtFlags::SYMLINK_NOFOLLOW) {
            Err(Errno::NOENT) => Ok(()),
            Err(error) => Err(failed(error.into())),
            Ok(stat) if old.same_content(&Seen::of(&stat)) => discard(dir, &beside).map_err(failed),
            Ok(_) => {
                let back = renameat_with(dir, beside.as_str(), dir, name, RenameFlags::NOREPLACE);
                Err(failed(back.map_or_else(io::Error::from, |()| meanwhile())))
            }
        }
    }

    fn mode(&mut self, edit: &Edit) -> Result<(), Failed> {
        let failed = |error| ("cannot change the mode of", error);
        let path: &[u8] = if edit.path == b"." { b"" } else { &edit.path };
        let Some(new) = edit.new else {
            return Ok(());
        };
        upper::chmod(&self.sides.host, path, new.mode & MODE_BITS).map_err(failed)
    }
}

impl Intent {
    /// What a file is called until it is in its place.
    fn beside(&self, step: usize) -> String {
        format!(".ostler-{:016x}-{step}", self.tag)
    }
}

/// Whether every directory that a commit writes to lets us write, before it begins.
pub(super) fn check_access(sides: &mut Sides, edits: &[Edit]) -> Result<(), OverlayError> {
    let mut known = BTreeSet::new();
    for edit in edits {
        let parent = split(&edit.path).0;
        if !matches!(edit.act, Act::Put | Act::Remove) || !known.insert(parent) {
            continue;
        }
        let was = sides.then.find(parent).map(|at| sides.then.seen(at).kind);
        // Another one is still to be made.
        let stands = was == Some(Kind::Directory);
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

/// The order of steps; see the module.
fn order(edits: &[Edit]) -> Vec<Visit> {
    let directory = |seen: &Option<Seen>| seen.is_some_and(|it| it.kind == Kind::Directory);
    let becomes: BTreeSet<&[u8]> = edits
        .iter()
        .filter(|it| it.act == Act::Put && directory(&it.old) && !directory(&it.new))
        .map(|it| it.path.as_slice())
        .collect();
    let phase = |edit: &Edit| match edit.act {
        Act::Remove if is_below(&edit.path, &becomes) => 0,
        Act::Put => 1,
        Act::Remove => 2,
        Act::Mode | Act::Leave => 3,
    };
    let mut steps: [Vec<usize>; 4] = Default::default();
    for (step, edit) in edits.iter().enumerate() {
        steps[phase(edit)].push(step);
    }
    for backwards in [0, 2, 3] {
        steps[backwards].reverse();
    }
    let puts = steps[1].clone();
    let mut order: Vec<Visit> = steps.concat().into_iter().map(Visit::Take).collect();
    let made = puts.into_iter().rev();
    let made = made.filter(|step| directory(&edits[*step].new));
    order.extend(made.map(Visit::Close));
    order
}

fn is_below(path: &[u8], those: &BTreeSet<&[u8]>) -> bool {
    let mut above = split(path).0;
    while !above.is_empty() {
        if those.contains(above) {
            return true;
        }
        above = split(above).0;
    }
    false
}

/// Whether what stands there is what a step put there.
fn is_noted(log: &Log, step: usize, now: Option<&Seen>) -> bool {
    let noted = log.noted(number(step));
    noted.is_some() && noted == now.map(|it| it.ino)
}

/// Moves what was made beside to its place.
fn place(
    dir: std::os::fd::BorrowedFd<'_>,
    (beside, name): (&str, &std::ffi::OsStr),
    edit: &Edit,
) -> io::Result<()> {
    let becomes = edit.new.is_some_and(|new| new.kind != Kind::Directory);
    let old = match &edit.old {
        Some(old) if old.kind == Kind::Directory && becomes => {
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
            beside,
            dir,
            name,
            RenameFlags::NOREPLACE,
        )?);
    };
    match renameat_with(dir, beside, dir, name, RenameFlags::EXCHANGE) {
        Ok(()) => {}
        Err(Errno::INVAL | Errno::NOSYS) => {
            take_out(dir, name, old)?;
            return Ok(rustix::fs::renameat(dir, beside, dir, name)?);
        }
        Err(error) => return Err(error.into()),
    }
    let stat = statat(dir, beside, AtFlags::SYMLINK_NOFOLLOW)?;
    if old.same_content(&Seen::of(&stat)) {
        return discard(dir, beside);
    }
    renameat_with(dir, beside, dir, name, RenameFlags::EXCHANGE)?;
    Err(meanwhile())
}

/// Removes what the command saw, where a file system cannot exchange two names.
fn take_out(
    dir: std::os::fd::BorrowedFd<'_>,
    name: &std::ffi::OsStr,
    old: &Seen,
) -> io::Result<()> {
    let stat = match statat(dir, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => stat,
        Err(Errno::NOENT) => return Ok(()),
        Err(error) => return Err(error.into()),
    };
    if !old.same_content(&Seen::of(&stat)) {
        return Err(meanwhile());
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

fn meanwhile() -> io::Error {
    io::Error::new(io::ErrorKind::ResourceBusy, "the host changed meanwhile")
}

fn number(step: usize) -> u32 {
    // At most twice OVERLAY_ENTRIES_MAX.
    u32::try_from(step).unwrap_or(u32::MAX)
}
