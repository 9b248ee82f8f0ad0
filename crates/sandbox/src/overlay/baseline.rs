//! [`Baseline`]: the workspace as the command saw it at its start.

use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::error::OverlayError;
use super::staging::is_marked;
use super::store::OVERLAY_ENTRIES_MAX;
use crate::openat2::entry_stamp::{EntryKind, EntryStamp};
use crate::openat2::{BeneathRoot, StatEntry, is_absent, join};

/// Every entry of a workspace. The children of a directory are adjacent and sorted by name.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Baseline {
    nodes: Vec<BaselineNode>,
    /// All names, concatenated.
    names: Vec<u8>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct BaselineNode {
    name: (u32, u16),
    stamp: EntryStamp,
    children: (u32, u32),
}

/// The index of an entry in a baseline.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct NodeId(u32);

/// The first of a directory and its empty files that has overlay attributes: because of them a
/// mount treats a file as removed, and any process that could write here may have set them.
fn find_marked(root: &BeneathRoot, directory: &[u8], listed: &[StatEntry]) -> Option<Vec<u8>> {
    let is_empty = |entry: &&StatEntry| {
        let stamp = EntryStamp::of(&entry.stat);
        stamp.kind == EntryKind::File && entry.stat.st_size == 0
    };
    let files = listed.iter().filter(is_empty);
    let files = files.map(|entry| join(directory, &entry.name));
    let mut all = std::iter::once(directory.to_vec()).chain(files);
    all.find(|path| is_marked(root, path))
}

impl Baseline {
    /// The workspace itself.
    pub(super) const ROOT: NodeId = NodeId(0);

    /// Records every entry of a directory. Entries that vanish meanwhile are left out; directories
    /// that cannot be read count as empty, because the command cannot read them either, and so do
    /// mounts below, because an overlay does not show them.
    pub(super) fn capture(workspace: &Path) -> Result<Self, OverlayError> {
        let failed = |path: &[u8], source| OverlayError::Io {
            what: "cannot read",
            path: path.to_vec().into(),
            source,
        };
        let root = BeneathRoot::open(workspace).map_err(|error| failed(b".", error))?;
        let top = root.stat().map_err(|error| failed(b".", error))?;
        let mut baseline = Self {
            nodes: vec![BaselineNode {
                name: (0, 0),
                stamp: EntryStamp::of(&top),
                children: (0, 0),
            }],
            names: Vec::new(),
        };
        let device = baseline.nodes[0].stamp.dev;
        let mut open = vec![(Self::ROOT, Vec::new())];
        while let Some((at, path)) = open.pop() {
            let remaining = OVERLAY_ENTRIES_MAX.saturating_sub(baseline.len());
            let listed = match root.list(&path, remaining) {
                Ok(listed) => listed,
                Err(error) if is_absent(&error) || is_permission_denied(&error) => continue,
                Err(error) => return Err(failed(&path, error)),
            };
            if listed.len() > remaining {
                return Err(OverlayError::TooMany {
                    what: "the workspace",
                    limit: OVERLAY_ENTRIES_MAX,
                });
            }
            if let Some(path) = find_marked(&root, &path, &listed) {
                return Err(OverlayError::Marked { path: path.into() });
            }
            let first = baseline.nodes.len();
            for entry in listed {
                let stamp = EntryStamp::of(&entry.stat);
                let node = baseline.push(&entry.name, stamp);
                if stamp.kind == EntryKind::Directory && stamp.dev == device {
                    open.push((node, join(&path, &entry.name)));
                }
            }
            let count = baseline.nodes.len() - first;
            baseline.nodes[at.0 as usize].children = (index(first), index(count));
        }
        Ok(baseline)
    }

    fn push(&mut self, name: &[u8], stamp: EntryStamp) -> NodeId {
        let start = index(self.names.len());
        self.names.extend_from_slice(name);
        let at = NodeId(index(self.nodes.len()));
        self.nodes.push(BaselineNode {
            // NAME_MAX is 255.
            name: (start, u16::try_from(name.len()).unwrap_or(u16::MAX)),
            stamp,
            children: (0, 0),
        });
        at
    }

    /// How many entries there are, without the workspace itself.
    pub(super) const fn len(&self) -> usize {
        self.nodes.len().saturating_sub(1)
    }

    /// Whether every reference within it is valid: it was read from a file.
    pub(super) fn is_valid(&self) -> bool {
        let count = self.nodes.len();
        let is_node_valid = |(at, node): (usize, &BaselineNode)| {
            let (start, len) = node.name;
            let (first, children) = node.children;
            let last = (first as usize).saturating_add(children as usize);
            start as usize + len as usize <= self.names.len()
                && last <= count
                && (children == 0 || first as usize > at)
        };
        count > 0 && self.nodes.iter().enumerate().all(is_node_valid)
    }

    /// The stamp of an entry.
    pub(super) fn stamp(&self, at: NodeId) -> &EntryStamp {
        &self.nodes[at.0 as usize].stamp
    }

    /// The name of an entry in its directory.
    pub(super) fn name(&self, at: NodeId) -> &[u8] {
        self.name_of(&self.nodes[at.0 as usize])
    }

    fn name_of(&self, node: &BaselineNode) -> &[u8] {
        let (start, len) = (node.name.0 as usize, node.name.1 as usize);
        &self.names[start..start + len]
    }

    /// The entries of a directory, sorted by name.
    pub(super) fn children(&self, at: NodeId) -> impl DoubleEndedIterator<Item = NodeId> + use<> {
        let (first, count) = self.nodes[at.0 as usize].children;
        (first..first + count).map(NodeId)
    }

    /// The entry of this name in a directory.
    pub(super) fn child(&self, at: NodeId, name: &[u8]) -> Option<NodeId> {
        let (first, count) = self.nodes[at.0 as usize].children;
        let among = &self.nodes[first as usize..(first + count) as usize];
        let found = among.binary_search_by(|node| self.name_of(node).cmp(name));
        found.ok().map(|offset| NodeId(first + index(offset)))
    }

    /// The entry at a relative path.
    pub(super) fn find(&self, path: &[u8]) -> Option<NodeId> {
        let mut names = path.split(|byte| *byte == b'/');
        names.try_fold(Self::ROOT, |at, name| {
            if name.is_empty() {
                return Some(at);
            }
            self.child(at, name)
        })
    }
}

/// An index as `u32`; [`OVERLAY_ENTRIES_MAX`] names of at most 255 bytes fit.
fn index(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(u32::MAX)
}

fn is_permission_denied(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::PermissionDenied
}
