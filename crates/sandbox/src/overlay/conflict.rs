//! Finds changes on the host that conflict with a commit.

use std::collections::BTreeSet;
use std::io;

use ostler_model::{ConflictReason, OverlayConflict};

use super::baseline::Baseline;
use super::compare::{EditAction, OverlayEdit};
use super::store::OVERLAY_ENTRIES_MAX;
use crate::openat2::entry_stamp::{EntryKind, EntryStamp};
use crate::openat2::{BeneathRoot, is_absent, join, split};

/// The most conflicts that are reported.
pub(super) const CONFLICTS_MAX: usize = 1_000;

/// All paths a commit would touch whose state on the host differs from the one that the command
/// saw; sorted by path, at most [`CONFLICTS_MAX`].
pub(super) fn find_conflicts(
    host: &mut BeneathRoot,
    baseline: &Baseline,
    edits: &[OverlayEdit],
) -> io::Result<Vec<OverlayConflict>> {
    let mut found = Vec::new();
    let mut parents = BTreeSet::new();
    let top = EntryStamp::of(&host.stat()?);
    if !is_same_directory(baseline.stamp(Baseline::ROOT), &top) {
        found.push(conflict(b".", ConflictReason::Replaced));
        return Ok(found);
    }
    for edit in edits {
        if found.len() >= CONFLICTS_MAX {
            break;
        }
        if edit.action == EditAction::Skip {
            continue;
        }
        check_parents(host, baseline, &edit.path, &mut parents, &mut found)?;
        let now = if edit.path == b"." {
            Some(top)
        } else {
            host.stamp_at(&edit.path)?
        };
        if let Some(reason) = EntryStamp::conflict(edit.old.as_ref(), now.as_ref()) {
            found.push(conflict(&edit.path, reason));
        } else if removes_directory(edit) {
            check_new_entries(host, baseline, &edit.path, &mut found)?;
        }
    }
    found.sort_by(|a, b| super::compare::compare_paths(a.path.as_bytes(), b.path.as_bytes()));
    found.dedup();
    found.truncate(CONFLICTS_MAX);
    Ok(found)
}

/// Whether this edit removes a directory.
fn removes_directory(edit: &OverlayEdit) -> bool {
    let directory =
        |seen: &Option<EntryStamp>| seen.is_some_and(|it| it.kind == EntryKind::Directory);
    directory(&edit.old) && !directory(&edit.new)
}

/// Parent directories must be those that the command saw.
fn check_parents(
    host: &mut BeneathRoot,
    baseline: &Baseline,
    path: &[u8],
    checked: &mut BTreeSet<Vec<u8>>,
    found: &mut Vec<OverlayConflict>,
) -> io::Result<()> {
    let mut parent = split(path).0;
    while !parent.is_empty() && checked.insert(parent.to_vec()) {
        // A directory the command created has a conflict of its own.
        let was = baseline.find(parent).map(|at| *baseline.stamp(at));
        if let Some(was) = was.filter(|it| it.kind == EntryKind::Directory) {
            match host.stamp_at(parent)? {
                None => found.push(conflict(parent, ConflictReason::Vanished)),
                Some(now) if !is_same_directory(&was, &now) => {
                    found.push(conflict(parent, ConflictReason::Replaced));
                }
                Some(_) => {}
            }
        }
        parent = split(parent).0;
    }
    Ok(())
}

/// No entry may have been added to a directory that is removed.
fn check_new_entries(
    host: &BeneathRoot,
    baseline: &Baseline,
    path: &[u8],
    found: &mut Vec<OverlayConflict>,
) -> io::Result<()> {
    let listed = match host.list(path, OVERLAY_ENTRIES_MAX) {
        Ok(listed) => listed,
        Err(error) if is_absent(&error) => return Ok(()),
        Err(error) => return Err(error),
    };
    let was = baseline.find(path);
    for entry in listed {
        let known = was.is_some_and(|at| baseline.child(at, &entry.name).is_some());
        if !known && found.len() < CONFLICTS_MAX {
            found.push(conflict(&join(path, &entry.name), ConflictReason::Appeared));
        }
    }
    Ok(())
}

fn is_same_directory(then: &EntryStamp, now: &EntryStamp) -> bool {
    (then.kind, then.ino, then.dev) == (now.kind, now.ino, now.dev)
}

fn conflict(path: &[u8], reason: ConflictReason) -> OverlayConflict {
    OverlayConflict {
        path: path.to_vec().into(),
        reason,
    }
}
