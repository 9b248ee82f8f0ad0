//! Writes changes as a unified diff, in the form that git(1) writes and applies.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use ostler_model::ByteString;
use rustix::fs::OFlags;
use similar::{Algorithm, DiffOp, capture_diff_slices_deadline, group_diff_ops};

use super::compare::{EditAction, OverlayEdit, ThreeWay, read_link};
use super::staging;
use crate::openat2::BeneathRoot;
use crate::openat2::entry_stamp::{EntryKind, EntryStamp};

/// The largest file that is shown, in bytes.
pub(super) const DIFF_FILE_BYTES_MAX: u64 = 4 * 1024 * 1024;
/// A file with a NUL byte within this many bytes is binary, as in git.
const TEXT_CHECKED_BYTES: usize = 8_000;
/// How long all files of one response are searched for the shortest edit script, in milliseconds;
/// after that any will do.
const SEARCH_MS: u64 = 2_000;
/// Lines of context around a change.
const CONTEXT_LINES: usize = 3;

/// One side of a file.
enum DiffSide {
    Nothing,
    Bytes(Vec<u8>),
    /// Not read: too large, not a file, or not readable.
    Unread,
}

/// The diff of some edits, at most about `limit_bytes`, and whether it was truncated.
pub(super) fn write_diff(
    sides: &mut ThreeWay,
    edits: &[OverlayEdit],
    limit_bytes: usize,
) -> (String, bool) {
    let deadline = Instant::now() + Duration::from_millis(SEARCH_MS);
    let mut text = String::new();
    for edit in edits {
        write_file_diff(&mut text, sides, edit, deadline);
        if text.len() > limit_bytes {
            truncate_at_line(&mut text, limit_bytes);
            return (text, true);
        }
    }
    (text, false)
}

/// Whether a path is one of those, or below one; an empty list selects all.
pub(super) fn is_selected(path: &[u8], paths: &[ByteString]) -> bool {
    paths.is_empty()
        || paths.iter().any(|selected| {
            let wanted = selected.as_bytes();
            let wanted = wanted.strip_prefix(b"./").unwrap_or(wanted);
            let wanted = wanted.strip_suffix(b"/").unwrap_or(wanted);
            let rest = path.strip_prefix(wanted);
            wanted == b"." || rest.is_some_and(|rest| rest.is_empty() || rest[0] == b'/')
        })
}

/// Truncates at the end of a line.
fn truncate_at_line(text: &mut String, limit_bytes: usize) {
    let mut end = limit_bytes.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let end = text[..end].rfind('\n').map_or(0, |at| at + 1);
    text.truncate(end);
}

fn write_file_diff(text: &mut String, sides: &mut ThreeWay, edit: &OverlayEdit, deadline: Instant) {
    let is_file = |seen: &EntryStamp| matches!(seen.kind, EntryKind::File | EntryKind::Symlink);
    let old = edit.old.filter(is_file);
    let new = edit.new.filter(is_file);
    if edit.action == EditAction::Skip || (old.is_none() && new.is_none()) {
        return;
    }
    let (a, b) = (quote_name("a/", &edit.path), quote_name("b/", &edit.path));
    text.push_str(&format!("diff --git {a} {b}\n"));
    write_mode_lines(text, old.as_ref(), new.as_ref());
    let before = read_side(&mut sides.host, &edit.path, old.as_ref(), false);
    let may_open = sides.closed.may_open();
    let after = read_side(&mut sides.upper, &edit.path, new.as_ref(), may_open);
    let from = if old.is_some() {
        a.as_str()
    } else {
        "/dev/null"
    };
    let to = if new.is_some() {
        b.as_str()
    } else {
        "/dev/null"
    };
    match (before, after) {
        (DiffSide::Unread, _) | (_, DiffSide::Unread) => {
            text.push_str(&format!("Binary files {from} and {to} differ\n"));
        }
        (DiffSide::Nothing, DiffSide::Nothing) => {}
        (before, after) => {
            let (before, after) = (before.bytes(), after.bytes());
            if is_binary(&before) || is_binary(&after) {
                text.push_str(&format!("Binary files {from} and {to} differ\n"));
            } else if before != after {
                text.push_str(&format!("--- {from}\n+++ {to}\n"));
                write_hunks(text, &before, &after, deadline);
            }
        }
    }
}

impl DiffSide {
    fn bytes(self) -> Vec<u8> {
        match self {
            Self::Bytes(bytes) => bytes,
            Self::Nothing | Self::Unread => Vec::new(),
        }
    }
}

fn write_mode_lines(text: &mut String, old: Option<&EntryStamp>, new: Option<&EntryStamp>) {
    let head = match (old, new) {
        (None, Some(new)) => format!("new file mode {}\n", git_mode(new)),
        (Some(old), None) => format!("deleted file mode {}\n", git_mode(old)),
        (Some(old), Some(new)) if git_mode(old) != git_mode(new) => {
            format!("old mode {}\nnew mode {}\n", git_mode(old), git_mode(new))
        }
        (Some(_), Some(_)) | (None, None) => return,
    };
    text.push_str(&head);
}

fn git_mode(stamp: &EntryStamp) -> String {
    match stamp.kind {
        EntryKind::Symlink => "120000".to_owned(),
        EntryKind::File | EntryKind::Directory | EntryKind::Special => {
            format!("100{:03o}", stamp.mode & 0o777)
        }
    }
}

/// Reads a file or link of one side; `may_open` says whether a file may be opened to its owner for
/// that.
fn read_side(
    root: &mut BeneathRoot,
    path: &[u8],
    stamp: Option<&EntryStamp>,
    may_open: bool,
) -> DiffSide {
    let Some(seen) = stamp else {
        return DiffSide::Nothing;
    };
    let bytes = match seen.kind {
        EntryKind::Symlink => read_link(root, path),
        EntryKind::File if may_open => staging::open_file(root, path, seen).and_then(read_file),
        EntryKind::File => root.open_at(path, OFlags::RDONLY).and_then(read_file),
        EntryKind::Directory | EntryKind::Special => return DiffSide::Unread,
    };
    bytes.map_or(DiffSide::Unread, DiffSide::Bytes)
}

fn read_file(file: OwnedFd) -> io::Result<Vec<u8>> {
    let file = File::from(file);
    let metadata = file.metadata()?;
    if !metadata.is_file() || metadata.len() > DIFF_FILE_BYTES_MAX {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    let mut bytes = Vec::new();
    file.take(DIFF_FILE_BYTES_MAX).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn is_binary(bytes: &[u8]) -> bool {
    bytes[..bytes.len().min(TEXT_CHECKED_BYTES)].contains(&0)
}

fn write_hunks(text: &mut String, before: &[u8], after: &[u8], deadline: Instant) {
    let old: Vec<&[u8]> = before.split_inclusive(|byte| *byte == b'\n').collect();
    let new: Vec<&[u8]> = after.split_inclusive(|byte| *byte == b'\n').collect();
    let ops = capture_diff_slices_deadline(Algorithm::Myers, &old, &new, Some(deadline));
    for hunk in group_diff_ops(ops, CONTEXT_LINES) {
        let (Some(first), Some(last)) = (hunk.first(), hunk.last()) else {
            continue;
        };
        let old_lines = first.old_range().start..last.old_range().end;
        let new_lines = first.new_range().start..last.new_range().end;
        text.push_str(&format!(
            "@@ -{} +{} @@\n",
            hunk_range(old_lines),
            hunk_range(new_lines)
        ));
        for op in hunk {
            write_op(text, &op, &old, &new);
        }
    }
}

fn write_op(text: &mut String, op: &DiffOp, old: &[&[u8]], new: &[&[u8]]) {
    if let DiffOp::Equal { .. } = op {
        old[op.old_range()]
            .iter()
            .for_each(|it| write_line(text, ' ', it));
        return;
    }
    old[op.old_range()]
        .iter()
        .for_each(|it| write_line(text, '-', it));
    new[op.new_range()]
        .iter()
        .for_each(|it| write_line(text, '+', it));
}

fn write_line(text: &mut String, prefix: char, line: &[u8]) {
    text.push(prefix);
    text.push_str(&String::from_utf8_lossy(line));
    if !line.ends_with(b"\n") {
        text.push_str("\n\\ No newline at end of file\n");
    }
}

/// A range of lines as a hunk header writes it: from 1; the preceding line where it is empty.
fn hunk_range(lines: std::ops::Range<usize>) -> String {
    match lines.len() {
        0 => format!("{},0", lines.start),
        1 => format!("{}", lines.start + 1),
        len => format!("{},{len}", lines.start + 1),
    }
}

/// A path as git quotes it.
fn quote_name(side: &str, path: &[u8]) -> String {
    let plain = |byte: &u8| (b' '..=b'~').contains(byte) && !b"\"\\".contains(byte);
    let mut quoted = String::from(side);
    if path.iter().all(plain) {
        quoted.push_str(&String::from_utf8_lossy(path));
        return quoted;
    }
    quoted.insert(0, '"');
    for byte in path {
        match byte {
            b'\n' => quoted.push_str("\\n"),
            b'\t' => quoted.push_str("\\t"),
            b'"' => quoted.push_str("\\\""),
            b'\\' => quoted.push_str("\\\\"),
            byte if plain(byte) => quoted.push(char::from(*byte)),
            byte => quoted.push_str(&format!("\\{byte:03o}")),
        }
    }
    quoted.push('"');
    quoted
}
