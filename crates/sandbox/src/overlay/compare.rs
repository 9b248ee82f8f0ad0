//! Computes the difference between the state before the command and the state after it.

use std::fs::File;
use std::io::{self, Read};

use ostler_model::{ChangeKind, OverlayChange};
use rustix::fs::{OFlags, Stat, fgetxattr, readlinkat};
use serde::{Deserialize, Serialize};

use super::baseline::{Baseline, NodeId};
use super::closed_directories::ClosedDirectories;
use super::error::OverlayError;
use super::store::OVERLAY_ENTRIES_MAX;
use crate::openat2::entry_stamp::{EntryKind, EntryStamp, MODE_BITS};
use crate::openat2::{BeneathRoot, StatEntry, is_absent, join};
use crate::whiteout::is_whiteout;

/// Two files of one size are compared up to this many bytes; a larger one that was opened for
/// writing counts as changed.
const COMPARED_BYTES: u64 = 64 * 1024 * 1024;
/// How many bytes are compared for one list; beyond that, too, a file that was opened for writing
/// counts as changed.
const COMPARED_SUM_BYTES: u64 = 1024 * 1024 * 1024;
/// The size of a read, in bytes.
const CHUNK_BYTES: usize = 64 * 1024;
/// The longest path that is processed, in bytes: PATH_MAX without the null byte.
const PATH_BYTES: usize = 4_095;
/// The attributes that mark a directory as opaque: the lower directory is not merged into it.
const OPAQUE_XATTRS: [&str; 2] = ["user.overlay.opaque", "trusted.overlay.opaque"];

/// One change of a path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct OverlayEdit {
    /// Relative to the workspace.
    pub(super) path: Vec<u8>,
    /// The state the command saw at its start.
    pub(super) old: Option<EntryStamp>,
    /// The state it left in the upper layer.
    pub(super) new: Option<EntryStamp>,
    pub(super) action: EditAction,
}

/// The effect of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum EditAction {
    /// The new entry takes the place of the old one, or of none.
    Replace,
    /// A directory stays and changes its mode.
    Mode,
    /// The old entry is removed.
    Remove,
    /// The change is listed and never committed.
    Skip,
}

impl OverlayEdit {
    /// The change as it is reported.
    pub(super) fn change(&self) -> OverlayChange {
        let kind = match (&self.old, &self.new) {
            (_, None) => ChangeKind::Deleted,
            (None, Some(_)) => ChangeKind::Created,
            (Some(_), Some(_)) => ChangeKind::Changed,
        };
        let stamp = self.new.as_ref().or(self.old.as_ref());
        OverlayChange {
            path: self.path.clone().into(),
            kind,
            what: stamp.map_or(EntryKind::Special, |it| it.kind).into(),
            bytes: stamp.map_or(0, EntryStamp::bytes),
            bytes_before: self.old.as_ref().map(EntryStamp::bytes),
        }
    }
}

/// The three states of a workspace: at the start, on the host now, and in the upper layer.
#[derive(Debug)]
pub(super) struct ThreeWay {
    pub(super) baseline: Baseline,
    pub(super) host: BeneathRoot,
    pub(super) upper: BeneathRoot,
    /// The directories of the upper layer that the command closed.
    pub(super) closed: ClosedDirectories,
    /// Whether a directory that cannot be read is an error: what is in it would be left out.
    pub(super) must_read_all: bool,
    /// The first directory of the upper layer that could not be read.
    pub(super) unread: Option<Vec<u8>>,
    /// How many bytes were compared so far.
    pub(super) compared: u64,
}

/// A directory of the upper layer that is still to be compared.
struct PendingLayerDir {
    path: Vec<u8>,
    baseline_node: Option<NodeId>,
    /// Whether a directory above it is opaque. The kernel marks only the topmost one: nothing of
    /// the lower layer is merged into a directory below it, marked or not.
    below_opaque: bool,
}

impl ThreeWay {
    /// All changes, sorted so that a directory comes before its entries.
    pub(super) fn find_edits(&mut self) -> Result<Vec<OverlayEdit>, OverlayError> {
        let mut edits = Vec::new();
        let mut visited = 0;
        let mut pending = vec![PendingLayerDir {
            path: Vec::new(),
            baseline_node: Some(Baseline::ROOT),
            below_opaque: false,
        }];
        self.compare_top(&mut edits)?;
        while let Some(dir) = pending.pop() {
            let listed = match self.upper.list(&dir.path, OVERLAY_ENTRIES_MAX) {
                Ok(listed) => listed,
                // Closed by the command; its entries are unknown while it runs.
                Err(error)
                    if error.kind() == io::ErrorKind::PermissionDenied && !self.must_read_all =>
                {
                    self.unread.get_or_insert(dir.path);
                    continue;
                }
                Err(error) if is_absent(&error) => continue,
                Err(error) => return Err(unreadable(&dir.path, error)),
            };
            visited += listed.len();
            if visited > OVERLAY_ENTRIES_MAX {
                return Err(OverlayError::TooMany {
                    what: "the overlay",
                    limit: OVERLAY_ENTRIES_MAX,
                });
            }
            // Without a directory before there is nothing to hide, here or below.
            let hiding = dir.baseline_node;
            let hiding = hiding.filter(|_| dir.below_opaque || self.is_opaque(&dir.path));
            if let Some(baseline_node) = hiding {
                self.add_hidden(&dir.path, baseline_node, &listed, &mut edits);
            }
            for entry in listed {
                let baseline_node = dir
                    .baseline_node
                    .and_then(|at| self.baseline.child(at, &entry.name));
                let path = join(&dir.path, &entry.name);
                let next = self.compare(path, baseline_node, &entry.stat, &mut edits)?;
                pending.extend(next.map(|next| PendingLayerDir {
                    below_opaque: hiding.is_some(),
                    ..next
                }));
            }
        }
        edits.sort_unstable_by(|a, b| compare_paths(&a.path, &b.path));
        Ok(edits)
    }

    fn compare_top(&self, edits: &mut Vec<OverlayEdit>) -> Result<(), OverlayError> {
        let stat = self.upper.stat().map_err(|error| unreadable(b".", error))?;
        let (old, mut new) = (*self.baseline.stamp(Baseline::ROOT), EntryStamp::of(&stat));
        new.mode = self.closed.original_mode(b"", new.mode);
        if old.mode & MODE_BITS != new.mode & MODE_BITS {
            edits.push(OverlayEdit {
                path: b".".to_vec(),
                old: Some(old),
                new: Some(new),
                action: EditAction::Mode,
            });
        }
        Ok(())
    }

    /// Compares one entry; returns a directory to continue with.
    fn compare(
        &mut self,
        path: Vec<u8>,
        baseline_node: Option<NodeId>,
        stat: &Stat,
        edits: &mut Vec<OverlayEdit>,
    ) -> Result<Option<PendingLayerDir>, OverlayError> {
        if path.len() > PATH_BYTES {
            let long = io::Error::from(rustix::io::Errno::NAMETOOLONG);
            return Err(unreadable(&path, long));
        }
        if is_whiteout(stat) {
            if let Some(removed_node) = baseline_node {
                self.add_removed(&path, removed_node, edits);
            }
            return Ok(None);
        }
        let mut new = EntryStamp::of(stat);
        if new.kind == EntryKind::Directory {
            new.mode = self.closed.original_mode(&path, new.mode);
        }
        let old = baseline_node.map(|at| *self.baseline.stamp(at));
        let stays = old.filter(|old| old.kind == new.kind);
        if let (None, Some(replaced_node)) = (stays, baseline_node)
            && new.kind != EntryKind::Special
        {
            // The entries of a directory that is not a directory any more.
            self.add_removed_below(&path, replaced_node, edits);
        }
        if new.kind == EntryKind::Directory {
            match self.closed.open(&self.upper, &path, stat.st_mode) {
                Err(error) if self.must_read_all => return Err(unreadable(&path, error)),
                // Where it stays closed, it is noted as not read.
                Ok(()) | Err(_) => {}
            }
            let act = if stays.is_some() {
                EditAction::Mode
            } else {
                EditAction::Replace
            };
            let another = stays.is_none_or(|old| old.mode & MODE_BITS != new.mode & MODE_BITS);
            if another && !self.is_mount_point(baseline_node) {
                edits.push(OverlayEdit {
                    path: path.clone(),
                    old,
                    new: Some(new),
                    action: act,
                });
            }
            return Ok(Some(PendingLayerDir {
                path,
                baseline_node: baseline_node.filter(|_| stays.is_some()),
                below_opaque: false,
            }));
        }
        let same = match stays {
            Some(old) => self.is_unchanged(&path, &old, &new),
            None => false,
        };
        if !same {
            let act = match new.kind {
                EntryKind::Special => EditAction::Skip,
                EntryKind::File | EntryKind::Symlink | EntryKind::Directory => EditAction::Replace,
            };
            edits.push(OverlayEdit {
                path,
                old,
                new: Some(new),
                action: act,
            });
        }
        Ok(None)
    }

    /// A directory across a mount of the host: an overlay shows the directory below that mount.
    fn is_mount_point(&self, baseline_node: Option<NodeId>) -> bool {
        let top = self.baseline.stamp(Baseline::ROOT).dev;
        baseline_node.is_some_and(|at| self.baseline.stamp(at).dev != top)
    }

    /// Adds the removal of earlier entries that an opaque directory hides.
    fn add_hidden(
        &self,
        path: &[u8],
        baseline_node: NodeId,
        listed: &[StatEntry],
        edits: &mut Vec<OverlayEdit>,
    ) {
        for at in self.baseline.children(baseline_node) {
            let name = self.baseline.name(at);
            let there = listed.binary_search_by(|it| it.name.as_slice().cmp(name));
            if there.is_err() {
                self.add_removed(&join(path, name), at, edits);
            }
        }
    }

    /// Adds the removal of an entry and all below it.
    fn add_removed(&self, path: &[u8], baseline_node: NodeId, edits: &mut Vec<OverlayEdit>) {
        edits.push(OverlayEdit {
            path: path.to_vec(),
            old: Some(*self.baseline.stamp(baseline_node)),
            new: None,
            action: EditAction::Remove,
        });
        self.add_removed_below(path, baseline_node, edits);
    }

    fn add_removed_below(&self, path: &[u8], baseline_node: NodeId, edits: &mut Vec<OverlayEdit>) {
        let mut pending = vec![(path.to_vec(), baseline_node)];
        while let Some((path, node)) = pending.pop() {
            for at in self.baseline.children(node) {
                let path = join(&path, self.baseline.name(at));
                edits.push(OverlayEdit {
                    path: path.clone(),
                    old: Some(*self.baseline.stamp(at)),
                    new: None,
                    action: EditAction::Remove,
                });
                pending.push((path, at));
            }
        }
    }

    /// Whether a path has the same content, mode or target as before. Times are ignored: a file
    /// that was only touched has not changed.
    fn is_unchanged(&mut self, path: &[u8], old: &EntryStamp, new: &EntryStamp) -> bool {
        let like = (old.mode & MODE_BITS, old.size) == (new.mode & MODE_BITS, new.size);
        if !like && new.kind != EntryKind::Symlink {
            return false;
        }
        // The host's entry is not what the command saw: there is nothing to compare with.
        let now = self.host.stamp_at(path).ok().flatten();
        if !now.is_some_and(|now| now.has_same_content(old)) {
            return false;
        }
        match new.kind {
            EntryKind::File => {
                self.charge_comparison(new.size) && self.has_same_bytes(path).unwrap_or(false)
            }
            EntryKind::Symlink => self.has_same_target(path).unwrap_or(false),
            EntryKind::Special => true,
            EntryKind::Directory => false,
        }
    }

    fn charge_comparison(&mut self, bytes: u64) -> bool {
        let sum = self.compared.saturating_add(bytes);
        let may = bytes <= COMPARED_BYTES && sum <= COMPARED_SUM_BYTES;
        if may {
            self.compared = sum;
        }
        may
    }

    fn has_same_bytes(&self, path: &[u8]) -> io::Result<bool> {
        let mut host = File::from(self.host.open_at(path, OFlags::RDONLY)?);
        let mut upper = File::from(self.upper.open_at(path, OFlags::RDONLY)?);
        let (mut a, mut b) = (vec![0; CHUNK_BYTES], vec![0; CHUNK_BYTES]);
        loop {
            let (read_a, read_b) = (
                read_full(&mut host, &mut a)?,
                read_full(&mut upper, &mut b)?,
            );
            if a[..read_a] != b[..read_b] {
                return Ok(false);
            }
            if read_a == 0 {
                return Ok(true);
            }
        }
    }

    fn has_same_target(&mut self, path: &[u8]) -> io::Result<bool> {
        Ok(read_link(&mut self.host, path)? == read_link(&mut self.upper, path)?)
    }

    fn is_opaque(&self, path: &[u8]) -> bool {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY;
        let Ok(fd) = self.upper.open_at(path, flags) else {
            return false;
        };
        OPAQUE_XATTRS.iter().any(|name| {
            let mut value = [0; 4];
            fgetxattr(&fd, *name, &mut value).is_ok_and(|len| value[..len] == *b"y")
        })
    }
}

/// The target of a symbolic link.
pub(super) fn read_link(root: &mut BeneathRoot, path: &[u8]) -> io::Result<Vec<u8>> {
    let (dir, name) = root.parent(path)?;
    Ok(readlinkat(dir, name, Vec::new())?.into_bytes())
}

/// Reads until a buffer is full or the file ends.
fn read_full(file: &mut File, buffer: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match file.read(&mut buffer[filled..])? {
            0 => break,
            read => filled += read,
        }
    }
    Ok(filled)
}

/// Orders paths so that a directory precedes its entries, and those its next sibling.
pub(super) fn compare_paths(a: &[u8], b: &[u8]) -> std::cmp::Ordering {
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
