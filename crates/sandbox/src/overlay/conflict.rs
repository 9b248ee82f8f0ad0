//! What the host did meanwhile.

use std::collections::BTreeSet;
use std::io;

use ostler_model::{Conflict, ConflictReason};

use super::baseline::Baseline;
use super::beneath::{Root, is_absent, join, split};
use super::scan::{Act, Edit};
use super::seen::{Kind, Seen};
use super::store::OVERLAY_ENTRIES_MAX;

/// Conflicts that are told; more are as good a reason to look.
pub(super) const CONFLICTS_MAX: usize = 1_000;

/// Everything on the host that is not what the command saw, of the paths that a commit would
/// touch; sorted by path, at most [`CONFLICTS_MAX`].
pub(super) fn find(host: &mut Root, then: &Baseline, edits: &[Edit]) -> io::Result<Vec<Conflict>> {
    let mut found = Vec::new();
    let mut parents = BTreeSet::new();
    let top = Seen::of(&host.stat()?);
    if !is_same_directory(then.seen(Baseline::ROOT), &top) {
        found.push(conflict(b".", ConflictReason::Replaced));
        return Ok(found);
    }
    for edit in edits {
        if found.len() >= CONFLICTS_MAX {
            break;
        }
        if edit.act == Act::Leave {
            continue;
        }
        find_above(host, then, &edit.path, &mut parents, &mut found)?;
        let now = if edit.path == b"." {
            Some(top)
        } else {
            host.see(&edit.path)?
        };
        if let Some(reason) = Seen::conflict(edit.old.as_ref(), now.as_ref()) {
            found.push(conflict(&edit.path, reason));
        } else if goes(edit) {
            find_new(host, then, &edit.path, &mut found)?;
        }
    }
    found.sort_by(|a, b| super::scan::by_path(a.path.as_bytes(), b.path.as_bytes()));
    found.dedup();
    found.truncate(CONFLICTS_MAX);
    Ok(found)
}

/// Whether a directory goes with this edit.
fn goes(edit: &Edit) -> bool {
    let directory = |seen: &Option<Seen>| seen.is_some_and(|it| it.kind == Kind::Directory);
    directory(&edit.old) && !directory(&edit.new)
}

/// The directories above must be those that the command saw.
fn find_above(
    host: &mut Root,
    then: &Baseline,
    path: &[u8],
    known: &mut BTreeSet<Vec<u8>>,
    found: &mut Vec<Conflict>,
) -> io::Result<()> {
    let mut parent = split(path).0;
    while !parent.is_empty() && known.insert(parent.to_vec()) {
        // A directory of the command's own has a conflict of its own.
        let was = then.find(parent).map(|at| *then.seen(at));
        if let Some(was) = was.filter(|it| it.kind == Kind::Directory) {
            match host.see(parent)? {
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

/// Nothing may have come into a directory that goes.
fn find_new(
    host: &Root,
    then: &Baseline,
    path: &[u8],
    found: &mut Vec<Conflict>,
) -> io::Result<()> {
    let listed = match host.list(path, OVERLAY_ENTRIES_MAX) {
        Ok(listed) => listed,
        Err(error) if is_absent(&error) => return Ok(()),
        Err(error) => return Err(error),
    };
    let was = then.find(path);
    for entry in listed {
        let known = was.is_some_and(|at| then.child(at, &entry.name).is_some());
        if !known && found.len() < CONFLICTS_MAX {
            found.push(conflict(&join(path, &entry.name), ConflictReason::Appeared));
        }
    }
    Ok(())
}

fn is_same_directory(then: &Seen, now: &Seen) -> bool {
    (then.kind, then.ino, then.dev) == (now.kind, now.ino, now.dev)
}

fn conflict(path: &[u8], reason: ConflictReason) -> Conflict {
    Conflict {
        path: path.to_vec().into(),
        reason,
    }
}
