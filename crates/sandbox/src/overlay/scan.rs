//! The difference between what the command saw and what it left behind.

use std::fs::File;
use std::io::{self, Read};

use ostler_model::{Change, ChangeKind};
use rustix::fs::{FileType, OFlags, Stat, fgetxattr, readlinkat};
use serde::{Deserialize, Serialize};

use super::baseline::{At, Baseline};
use super::beneath::{Listed, Root, is_absent, join};
use super::error::OverlayError;
use super::seen::{Kind, MODE_BITS, Seen};
use super::store::OVERLAY_ENTRIES_MAX;

/// Bytes up to which two files of one size are compared; a larger one that was opened for
/// writing counts as changed.
const COMPARED_BYTES: u64 = 64 * 1024 * 1024;
/// Bytes that are compared for one list; beyond that, too, what was opened for writing counts
/// as changed.
const COMPARED_SUM_BYTES: u64 = 1024 * 1024 * 1024;
/// Bytes read at once.
const CHUNK_BYTES: usize = 64 * 1024;
/// The longest path that is looked at, in bytes: PATH_MAX without its end.
const PATH_BYTES: usize = 4_095;
/// What says that nothing of the directory below shines through.
const OPAQUE: [&str; 2] = ["user.overlay.opaque", "trusted.overlay.opaque"];

/// One step from what was to what is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Edit {
    /// Relative to the workspace.
    pub(super) path: Vec<u8>,
    /// What the command saw there at its start.
    pub(super) old: Option<Seen>,
    /// What it left in the upper layer.
    pub(super) new: Option<Seen>,
    pub(super) act: Act,
}

/// What a step does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Act {
    /// The new one stands in the place of the old one, or of nothing.
    Put,
    /// A directory stays and has another mode.
    Mode,
    /// The old one goes.
    Remove,
    /// Something that is listed and never committed.
    Leave,
}

impl Edit {
    /// The same for people.
    pub(super) fn change(&self) -> Change {
        let kind = match (&self.old, &self.new) {
            (_, None) => ChangeKind::Deleted,
            (None, Some(_)) => ChangeKind::Created,
            (Some(_), Some(_)) => ChangeKind::Changed,
        };
        let shown = self.new.as_ref().or(self.old.as_ref());
        Change {
            path: self.path.clone().into(),
            kind,
            what: shown.map_or(Kind::Special, |it| it.kind).into(),
            bytes: shown.map_or(0, Seen::bytes),
            bytes_before: self.old.as_ref().map(Seen::bytes),
        }
    }
}

/// The three states of a workspace: then, on the host now, and in the upper layer.
#[derive(Debug)]
pub(super) struct Sides {
    pub(super) then: Baseline,
    pub(super) host: Root,
    pub(super) upper: Root,
    /// Whether directories that the command closed may be opened: it has ended.
    pub(super) may_unlock: bool,
    /// Bytes compared so far.
    pub(super) compared: u64,
}

/// A directory of the upper layer that is still to be looked at.
struct Open {
    path: Vec<u8>,
    then: Option<At>,
    /// Whether a directory above it is opaque. The kernel marks only the topmost one: nothing of
    /// the lower layer is merged into a directory below it, marked or not.
    below_opaque: bool,
}

impl Sides {
    /// All differences, sorted so that a directory comes before what is in it.
    pub(super) fn scan(&mut self) -> Result<Vec<Edit>, OverlayError> {
        let mut edits = Vec::new();
        let mut looked_at = 0;
        let mut open = vec![Open {
            path: Vec::new(),
            then: Some(Baseline::ROOT),
            below_opaque: false,
        }];
        self.compare_top(&mut edits)?;
        while let Some(dir) = open.pop() {
            let listed = match self.upper.list(&dir.path, OVERLAY_ENTRIES_MAX) {
                Ok(listed) => listed,
                // Closed by the command; what is in it is not known while it runs.
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => continue,
                Err(error) if is_absent(&error) => continue,
                Err(error) => return Err(unreadable(&dir.path, error)),
            };
            looked_at += listed.len();
            if looked_at > OVERLAY_ENTRIES_MAX {
                return Err(OverlayError::TooMany {
                    what: "the overlay",
                    limit: OVERLAY_ENTRIES_MAX,
                });
            }
            // Without a directory before there is nothing to hide, here or below.
            let hiding = dir.then;
            let hiding = hiding.filter(|_| dir.below_opaque || self.is_opaque(&dir.path));
            if let Some(then) = hiding {
                self.hidden(&dir.path, then, &listed, &mut edits);
            }
            for entry in listed {
                let then = dir.then.and_then(|at| self.then.child(at, &entry.name));
                let path = join(&dir.path, &entry.name);
                let next = self.compare(path, then, &entry.stat, &mut edits)?;
                open.extend(next.map(|next| Open {
                    below_opaque: hiding.is_some(),
                    ..next
                }));
            }
        }
        edits.sort_unstable_by(|a, b| by_path(&a.path, &b.path));
        Ok(edits)
    }

    fn compare_top(&self, edits: &mut Vec<Edit>) -> Result<(), OverlayError> {
        let stat = self.upper.stat().map_err(|error| unreadable(b".", error))?;
        let (old, new) = (*self.then.seen(Baseline::ROOT), Seen::of(&stat));
        if old.mode & MODE_BITS != new.mode & MODE_BITS {
            edits.push(Edit {
                path: b".".to_vec(),
                old: Some(old),
                new: Some(new),
                act: Act::Mode,
            });
        }
        Ok(())
    }

    /// Compares one entry; answers a directory to go on with.
    fn compare(
        &mut self,
        path: Vec<u8>,
        then: Option<At>,
        stat: &Stat,
        edits: &mut Vec<Edit>,
    ) -> Result<Option<Open>, OverlayError> {
        if path.len() > PATH_BYTES {
            let long = io::Error::from(rustix::io::Errno::NAMETOOLONG);
            return Err(unreadable(&path, long));
        }
        if is_whiteout(stat) {
            if let Some(then) = then {
                self.gone(&path, then, edits);
            }
            return Ok(None);
        }
        let new = Seen::of(stat);
        let old = then.map(|at| *self.then.seen(at));
        let stays = old.filter(|old| old.kind == new.kind);
        if let (None, Some(then)) = (stays, then)
            && new.kind != Kind::Special
        {
            // What was in a directory that is none any more.
            self.gone_below(&path, then, edits);
        }
        if new.kind == Kind::Directory {
            self.unlock(&path, new.mode)?;
            let act = if stays.is_some() { Act::Mode } else { Act::Put };
            let another = stays.is_none_or(|old| old.mode & MODE_BITS != new.mode & MODE_BITS);
            if another && !self.is_mount_point(then) {
                edits.push(Edit {
                    path: path.clone(),
                    old,
                    new: Some(new),
                    act,
                });
            }
            return Ok(Some(Open {
                path,
                then: then.filter(|_| stays.is_some()),
                below_opaque: false,
            }));
        }
        let same = match stays {
            Some(old) => self.is_same(&path, &old, &new),
            None => false,
        };
        if !same {
            let act = match new.kind {
                Kind::Special => Act::Leave,
                Kind::File | Kind::Symlink | Kind::Directory => Act::Put,
            };
            edits.push(Edit {
                path,
                old,
                new: Some(new),
                act,
            });
        }
        Ok(None)
    }

    /// A directory across a mount of the host: an overlay shows what is below that mount.
    fn is_mount_point(&self, then: Option<At>) -> bool {
        let top = self.then.seen(Baseline::ROOT).dev;
        then.is_some_and(|at| self.then.seen(at).dev != top)
    }

    /// Opens a directory whose owner, we ourselves, may not read it. The mode it had is kept
    /// by the edit that tells of it.
    fn unlock(&self, path: &[u8], mode: u32) -> Result<(), OverlayError> {
        const OWNER: u32 = 0o700;
        if mode & OWNER == OWNER || !self.may_unlock || rustix::process::geteuid().is_root() {
            return Ok(());
        }
        super::upper::chmod(&self.upper, path, mode | OWNER)
            .map_err(|error| unreadable(path, error))
    }

    /// What an opaque directory hides of what was there.
    fn hidden(&self, path: &[u8], then: At, listed: &[Listed], edits: &mut Vec<Edit>) {
        for at in self.then.children(then) {
            let name = self.then.name(at);
            let there = listed.binary_search_by(|it| it.name.as_slice().cmp(name));
            if there.is_err() {
                self.gone(&join(path, name), at, edits);
            }
        }
    }

    /// An entry and all that was below it are gone.
    fn gone(&self, path: &[u8], then: At, edits: &mut Vec<Edit>) {
        edits.push(Edit {
            path: path.to_vec(),
            old: Some(*self.then.seen(then)),
            new: None,
            act: Act::Remove,
        });
        self.gone_below(path, then, edits);
    }

    fn gone_below(&self, path: &[u8], then: At, edits: &mut Vec<Edit>) {
        let mut open = vec![(path.to_vec(), then)];
        while let Some((path, then)) = open.pop() {
            for at in self.then.children(then) {
                let path = join(&path, self.then.name(at));
                edits.push(Edit {
                    path: path.clone(),
                    old: Some(*self.then.seen(at)),
                    new: None,
                    act: Act::Remove,
                });
                open.push((path, at));
            }
        }
    }

    /// Whether a path holds what it held: its content, mode or target is no other. Its times
    /// may be: a file that was only touched is none that changed.
    fn is_same(&mut self, path: &[u8], old: &Seen, new: &Seen) -> bool {
        let like = (old.mode & MODE_BITS, old.size) == (new.mode & MODE_BITS, new.size);
        if !like && new.kind != Kind::Symlink {
            return false;
        }
        // What the host has now is not what the command saw: there is nothing to compare with.
        let now = self.host.see(path).ok().flatten();
        if !now.is_some_and(|now| now.same_content(old)) {
            return false;
        }
        match new.kind {
            Kind::File => self.may_compare(new.size) && self.same_bytes(path).unwrap_or(false),
            Kind::Symlink => self.same_target(path).unwrap_or(false),
            Kind::Special => true,
            Kind::Directory => false,
        }
    }

    fn may_compare(&mut self, bytes: u64) -> bool {
        let sum = self.compared.saturating_add(bytes);
        let may = bytes <= COMPARED_BYTES && sum <= COMPARED_SUM_BYTES;
        if may {
            self.compared = sum;
        }
        may
    }

    fn same_bytes(&self, path: &[u8]) -> io::Result<bool> {
        let mut host = File::from(self.host.open_at(path, OFlags::RDONLY)?);
        let mut upper = File::from(self.upper.open_at(path, OFlags::RDONLY)?);
        let (mut a, mut b) = (vec![0; CHUNK_BYTES], vec![0; CHUNK_BYTES]);
        loop {
            let (read_a, read_b) = (fill(&mut host, &mut a)?, fill(&mut upper, &mut b)?);
            if a[..read_a] != b[..read_b] {
                return Ok(false);
            }
            if read_a == 0 {
                return Ok(true);
            }
        }
    }

    fn same_target(&mut self, path: &[u8]) -> io::Result<bool> {
        Ok(target(&mut self.host, path)? == target(&mut self.upper, path)?)
    }

    fn is_opaque(&self, path: &[u8]) -> bool {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY;
        let Ok(fd) = self.upper.open_at(path, flags) else {
            return false;
        };
        OPAQUE.iter().any(|name| {
            let mut value = [0; 4];
            fgetxattr(&fd, *name, &mut value).is_ok_and(|len| value[..len] == *b"y")
        })
    }
}

/// Where a symbolic link leads.
pub(super) fn target(root: &mut Root, path: &[u8]) -> io::Result<Vec<u8>> {
    let (dir, name) = root.parent(path)?;
    Ok(readlinkat(dir, name, Vec::new())?.into_bytes())
}

/// Whether this is how an overlay says that something is gone.
fn is_whiteout(stat: &Stat) -> bool {
    FileType::from_raw_mode(stat.st_mode) == FileType::CharacterDevice && stat.st_rdev == 0
}

/// Reads until a buffer is full or the file ends.
fn fill(file: &mut File, buffer: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match file.read(&mut buffer[filled..])? {
            0 => break,
            read => filled += read,
        }
    }
    Ok(filled)
}

/// The order of names: a directory, what is in it, then its next neighbour.
pub(super) fn by_path(a: &[u8], b: &[u8]) -> std::cmp::Ordering {
    let names = |path| <[u8]>::split(path, |byte: &u8| *byte == b'/');
    names(a).cmp(names(b))
}

fn unreadable(path: &[u8], source: io::Error) -> OverlayError {
    OverlayError::Io {
        what: "cannot read the overlay's",
        path: path.to_vec().into(),
        source,
    }
}
