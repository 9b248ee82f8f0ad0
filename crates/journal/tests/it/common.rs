//! A reference journal for comparison: a list of appended chunks.

use std::os::fd::AsFd;
use std::path::Path;

use ostler_journal::{
    Chunk, GrepMode, Journal, JournalLine, LineQuery, OpenLineMode, OutputWriter, SegmentLimits,
    StreamSet,
};
use ostler_model::{StreamName, Timestamp};
use proptest::prelude::*;

#[derive(Debug, Clone)]
pub(crate) struct JournalOp {
    pub(crate) at_ns: i64,
    pub(crate) stream: StreamName,
    pub(crate) bytes: Vec<u8>,
}

/// A line of the reference journal.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ModelLine {
    pub(crate) line: JournalLine,
    /// The offset after its last byte.
    pub(crate) end: u64,
}

pub(crate) fn at(at_ns: i64) -> Timestamp {
    Timestamp::from_nanosecond(i128::from(at_ns)).unwrap()
}

/// Appends of short pieces with many newlines, at rising times that repeat.
pub(crate) fn ops(most: usize) -> impl Strategy<Value = Vec<JournalOp>> {
    let stream = prop_oneof![
        4 => Just(StreamName::Stdout),
        3 => Just(StreamName::Stderr),
        1 => Just(StreamName::Stdin),
    ];
    let byte = prop_oneof![
        4 => Just(b'a'), 2 => Just(b'b'), 1 => Just(0xff), 1 => Just(b'\r'), 4 => Just(b'\n'),
    ];
    let bytes = prop::collection::vec(byte, 1..12);
    let op = (0i64..3, stream, bytes);
    prop::collection::vec(op, 0..most).prop_map(|ops| {
        let mut now = 1_000;
        ops.into_iter()
            .map(|(later, stream, bytes)| {
                now += later;
                JournalOp {
                    at_ns: now,
                    stream,
                    bytes,
                }
            })
            .collect()
    })
}

/// Writes all of them to a new journal.
pub(crate) fn write(dir: &Path, ops: &[JournalOp], segment_bytes: u64) -> Journal {
    let handle = std::fs::File::open(dir).unwrap();
    let limits = SegmentLimits { segment_bytes };
    let mut writer = OutputWriter::create(handle.as_fd(), limits).unwrap();
    for op in ops {
        writer.append(op.at_ns, op.stream, &op.bytes).unwrap();
    }
    Journal::open(dir).unwrap()
}

/// The chunks that a reader must get.
pub(crate) fn chunks(ops: &[JournalOp], streams: StreamSet) -> Vec<Chunk> {
    let mut offset = 0;
    let mut chunks = Vec::new();
    for op in ops {
        if streams.contains(op.stream) {
            chunks.push(Chunk {
                at: at(op.at_ns),
                stream: op.stream,
                offset,
                bytes: op.bytes.clone(),
            });
        }
        offset += op.bytes.len() as u64;
    }
    chunks
}

/// All lines in the order in which they end, open ones last.
pub(crate) fn lines(ops: &[JournalOp]) -> Vec<ModelLine> {
    let mut done = Vec::new();
    let mut open: Vec<(StreamName, ModelLine)> = Vec::new();
    let mut numbers: Vec<(StreamName, u64)> = Vec::new();
    let mut offset = 0;
    for op in ops {
        for &byte in &op.bytes {
            let place = open.iter().position(|(stream, _)| *stream == op.stream);
            let mut line = match place {
                Some(place) => open.remove(place).1,
                None => {
                    if !numbers.iter().any(|(stream, _)| *stream == op.stream) {
                        numbers.push((op.stream, 0));
                    }
                    let number = numbers
                        .iter_mut()
                        .find(|(stream, _)| *stream == op.stream)
                        .unwrap();
                    number.1 += 1;
                    let line = JournalLine {
                        at: at(op.at_ns),
                        stream: op.stream,
                        offset,
                        number: number.1,
                        bytes: Vec::new(),
                        terminated: false,
                        clipped: 0,
                        skipped: 0,
                    };
                    ModelLine { line, end: 0 }
                }
            };
            offset += 1;
            line.end = offset;
            if byte == b'\n' {
                line.line.terminated = true;
                done.push(line);
            } else {
                line.line.bytes.push(byte);
                open.push((op.stream, line));
            }
        }
    }
    open.sort_by_key(|(_, line)| line.line.offset);
    done.extend(open.into_iter().map(|(_, line)| line));
    done
}

/// The expected result of a query: every match from `query.from` on, in the order of ends, without
/// budgets.
pub(crate) fn matches(ops: &[JournalOp], query: &LineQuery) -> Vec<ModelLine> {
    let from = query.from.map_or(0, |cursor| cursor.offset);
    let end: u64 = ops.iter().map(|op| op.bytes.len() as u64).sum();
    let until = query
        .until_cursor
        .map_or(end, |cursor| cursor.offset.min(end));
    let regex = query
        .grep
        .as_ref()
        .map(|grep| regex::bytes::Regex::new(grep.as_str()).unwrap());
    let wanted = lines(ops).into_iter().filter(|one| {
        let placed = if one.line.terminated {
            one.end > from && one.end <= until
        } else {
            query.unfinished != OpenLineMode::Hide && from <= end && until == end
        };
        placed
            && query.streams.contains(one.line.stream)
            && query.since.is_none_or(|since| one.line.at >= since)
            && query.until.is_none_or(|until| one.line.at <= until)
    });
    let mut found = Vec::new();
    for one in wanted {
        match (&regex, query.grep_mode) {
            (None, _) => found.push(one),
            (Some(regex), GrepMode::Line) => {
                if regex.is_match(&one.line.bytes) {
                    found.push(one);
                }
            }
            (Some(regex), GrepMode::Content) => {
                for hit in regex
                    .find_iter(&one.line.bytes)
                    .filter(|hit| !hit.is_empty())
                {
                    let mut part = one.clone();
                    part.line.bytes = hit.as_bytes().to_vec();
                    found.push(part);
                }
            }
        }
    }
    if let Some(head) = query.head {
        found.truncate(usize::try_from(head).unwrap());
    }
    if let Some(tail) = query.tail {
        let tail = usize::try_from(tail).unwrap();
        found.drain(..found.len().saturating_sub(tail));
    }
    found
}

/// Lines in the order of a page.
pub(crate) fn to_lines(found: &[ModelLine]) -> Vec<JournalLine> {
    let mut lines: Vec<JournalLine> = found.iter().map(|one| one.line.clone()).collect();
    lines.sort_by_key(|line| line.offset);
    lines
}
