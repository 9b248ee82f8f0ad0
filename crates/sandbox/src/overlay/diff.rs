//! Changes as text, in the form that git(1) writes and applies.

use std::fs::File;
use std::io::{self, Read};
use std::time::{Duration, Instant};

use ostler_model::Text;
use rustix::fs::OFlags;
use similar::{Algorithm, DiffOp, capture_diff_slices_deadline, group_diff_ops};

use super::beneath::Root;
use super::scan::{Act, Edit, Sides, target};
use super::seen::{Kind, Seen};

/// Bytes of the largest file that is shown.
pub(super) const SHOWN_BYTES: u64 = 4 * 1024 * 1024;
/// A file with a NUL byte within so many bytes is no text, as git has it.
const TEXT_CHECKED_BYTES: usize = 8_000;
/// For how long all files of one answer look for the shortest way; after that any will do.
const SEARCH_MS: u64 = 2_000;
/// Lines shown around a change.
const CONTEXT_LINES: usize = 3;

/// One side of a file.
enum Side {
    Nothing,
    Bytes(Vec<u8>),
    /// Not read: too large, no file, or closed to us.
    Unread,
}

/// The diff of some edits, at most about `limit_bytes`, and whether more was to be said.
pub(super) fn write(
    sides: &mut Sides,
    edits: &[Edit],
    paths: &[Text],
    limit_bytes: usize,
) -> (String, bool) {
    let deadline = Instant::now() + Duration::from_millis(SEARCH_MS);
    let mut text = String::new();
    for edit in edits.iter().filter(|edit| is_among(&edit.path, paths)) {
        one(&mut text, sides, edit, deadline);
        if text.len() > limit_bytes {
            cut(&mut text, limit_bytes);
            return (text, true);
        }
    }
    (text, false)
}

/// Whether a path is one of those, or below one; none means all.
fn is_among(path: &[u8], paths: &[Text]) -> bool {
    paths.is_empty()
        || paths.iter().any(|wanted| {
            let wanted = wanted.as_bytes();
            let wanted = wanted.strip_prefix(b"./").unwrap_or(wanted);
            let wanted = wanted.strip_suffix(b"/").unwrap_or(wanted);
            let rest = path.strip_prefix(wanted);
            wanted == b"." || rest.is_some_and(|rest| rest.is_empty() || rest[0] == b'/')
        })
}

/// Cuts at the end of a line.
fn cut(text: &mut String, limit_bytes: usize) {
    let mut end = limit_bytes.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let end = text[..end].rfind('\n').map_or(0, |at| at + 1);
    text.truncate(end);
}

fn one(text: &mut String, sides: &mut Sides, edit: &Edit, deadline: Instant) {
    let is_file = |seen: &Seen| matches!(seen.kind, Kind::File | Kind::Symlink);
    let old = edit.old.filter(is_file);
    let new = edit.new.filter(is_file);
    if edit.act == Act::Leave || (old.is_none() && new.is_none()) {
        return;
    }
    let (a, b) = (name("a/", &edit.path), name("b/", &edit.path));
    text.push_str(&format!("diff --git {a} {b}\n"));
    heads(text, old.as_ref(), new.as_ref());
    let before = read(&mut sides.host, &edit.path, old.as_ref());
    let after = read(&mut sides.upper, &edit.path, new.as_ref());
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
        (Side::Unread, _) | (_, Side::Unread) => {
            text.push_str(&format!("Binary files {from} and {to} differ\n"));
        }
        (Side::Nothing, Side::Nothing) => {}
        (before, after) => {
            let (before, after) = (before.bytes(), after.bytes());
            if is_binary(&before) || is_binary(&after) {
                text.push_str(&format!("Binary files {from} and {to} differ\n"));
            } else if before != after {
                text.push_str(&format!("--- {from}\n+++ {to}\n"));
                hunks(text, &before, &after, deadline);
            }
        }
    }
}

impl Side {
    fn bytes(self) -> Vec<u8> {
        match self {
            Self::Bytes(bytes) => bytes,
            Self::Nothing | Self::Unread => Vec::new(),
        }
    }
}

fn heads(text: &mut String, old: Option<&Seen>, new: Option<&Seen>) {
    let head = match (old, new) {
        (None, Some(new)) => format!("new file mode {}\n", mode(new)),
        (Some(old), None) => format!("deleted file mode {}\n", mode(old)),
        (Some(old), Some(new)) if mode(old) != mode(new) => {
            format!("old mode {}\nnew mode {}\n", mode(old), mode(new))
        }
        (Some(_), Some(_)) | (None, None) => return,
    };
    text.push_str(&head);
}

fn mode(seen: &Seen) -> String {
    match seen.kind {
        Kind::Symlink => "120000".to_owned(),
        Kind::File | Kind::Directory | Kind::Special => {
            format!("100{:03o}", seen.mode & 0o777)
        }
    }
}

fn read(root: &mut Root, path: &[u8], seen: Option<&Seen>) -> Side {
    let Some(seen) = seen else {
        return Side::Nothing;
    };
    let bytes = match seen.kind {
        Kind::Symlink => target(root, path),
        Kind::File => read_file(root, path),
        Kind::Directory | Kind::Special => return Side::Unread,
    };
    bytes.map_or(Side::Unread, Side::Bytes)
}

fn read_file(root: &Root, path: &[u8]) -> io::Result<Vec<u8>> {
    let file = File::from(root.open_at(path, OFlags::RDONLY)?);
    let metadata = file.metadata()?;
    if !metadata.is_file() || metadata.len() > SHOWN_BYTES {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    let mut bytes = Vec::new();
    file.take(SHOWN_BYTES).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn is_binary(bytes: &[u8]) -> bool {
    bytes[..bytes.len().min(TEXT_CHECKED_BYTES)].contains(&0)
}

fn hunks(text: &mut String, before: &[u8], after: &[u8], deadline: Instant) {
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
            span(old_lines),
            span(new_lines)
        ));
        for op in hunk {
            op_lines(text, &op, &old, &new);
        }
    }
}

fn op_lines(text: &mut String, op: &DiffOp, old: &[&[u8]], new: &[&[u8]]) {
    if let DiffOp::Equal { .. } = op {
        old[op.old_range()]
            .iter()
            .for_each(|it| line(text, ' ', it));
        return;
    }
    old[op.old_range()]
        .iter()
        .for_each(|it| line(text, '-', it));
    new[op.new_range()]
        .iter()
        .for_each(|it| line(text, '+', it));
}

fn line(text: &mut String, mark: char, line: &[u8]) {
    text.push(mark);
    text.push_str(&String::from_utf8_lossy(line));
    if !line.ends_with(b"\n") {
        text.push_str("\n\\ No newline at end of file\n");
    }
}

/// Lines as a hunk names them: from 1; the one before where there are none.
fn span(lines: std::ops::Range<usize>) -> String {
    match lines.len() {
        0 => format!("{},0", lines.start),
        1 => format!("{}", lines.start + 1),
        len => format!("{},{len}", lines.start + 1),
    }
}

/// A path as git quotes it.
fn name(side: &str, path: &[u8]) -> String {
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
