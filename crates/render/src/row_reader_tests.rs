use std::os::fd::AsFd;

use ostler_journal::{OpenLineMode, OutputWriter, Pattern, SegmentLimits, encoding_for_label};
use proptest::prelude::*;

use super::*;
use crate::HiddenLines;

/// A journal with these chunks, one nanosecond apart.
fn journal(chunks: &[(StreamName, Vec<u8>)]) -> (tempfile::TempDir, Journal) {
    let dir = tempfile::tempdir().unwrap();
    let handle = std::fs::File::open(dir.path()).unwrap();
    let mut writer = OutputWriter::create(handle.as_fd(), SegmentLimits::default()).unwrap();
    for (at_ns, (stream, bytes)) in (1..).zip(chunks) {
        writer.append(at_ns, *stream, bytes).unwrap();
    }
    let journal = Journal::open(dir.path()).unwrap();
    (dir, journal)
}

fn numbered(stream: StreamName, count: usize) -> (StreamName, Vec<u8>) {
    let text: String = (1..=count).map(|n| format!("{stream:?} {n}\n")).collect();
    (stream, text.into_bytes())
}

fn query(streams: StreamSet) -> LineQuery {
    LineQuery {
        streams,
        unfinished: OpenLineMode::Final,
        ..LineQuery::default()
    }
}

/// Lines shown and lines hidden.
fn count(slice: &RowSlice) -> (u64, u64) {
    let shown: u64 = shown(slice).map(|row| row.lines).sum();
    (shown, hidden(slice).map(|hidden| hidden.lines).sum())
}

fn shown(slice: &RowSlice) -> impl Iterator<Item = &OutputRow> {
    let middle = slice.middle.iter().filter_map(ExcerptPiece::row);
    slice.front.iter().chain(middle).chain(&slice.back)
}

fn hidden(slice: &RowSlice) -> impl Iterator<Item = &HiddenLines> {
    slice.middle.iter().filter_map(|piece| match piece {
        ExcerptPiece::Hidden(hidden) => Some(hidden),
        ExcerptPiece::Row(_) => None,
    })
}

/// Bytes shown and bytes hidden.
fn bytes(slice: &RowSlice) -> u64 {
    let shown: u64 = shown(slice).map(|row| row.bytes).sum();
    shown
        + hidden(slice)
            .map(|hidden| hidden.bytes.unwrap())
            .sum::<u64>()
}

#[test]
fn small_journals_are_read_whole() {
    let (_dir, journal) = journal(&[numbered(StreamName::Stdout, 100)]);
    let slice = read_rows(&journal, &query(StreamSet::OUTPUT), None).unwrap();
    assert_eq!(count(&slice), (100, 0));
    assert!(!slice.is_partial() && slice.back.is_empty());
}

#[test]
fn hidden_lines_and_bytes_of_one_stream_are_exact() {
    let (_dir, journal) = journal(&[numbered(StreamName::Stdout, 200_000)]);
    let slice = read_rows(&journal, &query(StreamSet::OUTPUT), None).unwrap();
    let (shown, hidden) = count(&slice);
    assert_eq!(shown + hidden, 200_000);
    assert_eq!(bytes(&slice), journal.end().unwrap());
    assert_eq!(slice.back.last().unwrap().text, "Stdout 200000");
}

#[test]
fn hidden_lines_are_exact_over_two_streams_and_for_each() {
    let chunks = [
        numbered(StreamName::Stderr, 10),
        numbered(StreamName::Stdout, 100_000),
        numbered(StreamName::Stderr, 50_000),
    ];
    let (_dir, journal) = journal(&chunks);
    let out = StreamSet::only(StreamName::Stdout);
    let err = StreamSet::only(StreamName::Stderr);
    for (streams, total) in [(StreamSet::OUTPUT, 150_010), (out, 100_000), (err, 50_010)] {
        let slice = read_rows(&journal, &query(streams), None).unwrap();
        let (shown, hidden) = count(&slice);
        assert_eq!(shown + hidden, total, "{streams:?}");
        let whole: u64 = streams
            .iter()
            .map(|s| journal.stats().unwrap().for_stream(s).bytes)
            .sum();
        assert_eq!(bytes(&slice), whole, "{streams:?}");
    }
}

#[test]
fn hidden_matches_are_counted() {
    let (_dir, journal) = journal(&[numbered(StreamName::Stdout, 300_000)]);
    let grep = Some(Pattern::new("[02468]$").unwrap());
    let slice = read_rows(
        &journal,
        &LineQuery {
            grep,
            ..query(StreamSet::OUTPUT)
        },
        None,
    )
    .unwrap();
    let (shown, hidden) = count(&slice);
    assert_eq!(shown + hidden, 150_000);
}

#[test]
fn a_tail_hides_only_what_is_within_it() {
    let (_dir, journal) = journal(&[numbered(StreamName::Stdout, 200_000)]);
    let tail = Some(100_000);
    let slice = read_rows(
        &journal,
        &LineQuery {
            tail,
            ..query(StreamSet::OUTPUT)
        },
        None,
    )
    .unwrap();
    let (shown, hidden) = count(&slice);
    assert_eq!(shown + hidden, 100_000);
    assert_eq!(slice.front[0].text, "Stdout 100001");
}

#[test]
fn a_line_too_long_to_fetch_keeps_its_ends_and_its_size() {
    let long = [b"begin".as_slice(), &[b'x'; 500_000], b"end\n", b"after\n"].concat();
    let (_dir, journal) = journal(&[(StreamName::Stdout, long)]);
    let slice = read_rows(&journal, &query(StreamSet::OUTPUT), None).unwrap();
    let text = &slice.front[0].text;
    assert!(
        text.starts_with("beginx") && text.ends_with("xend"),
        "{text}"
    );
    assert!(text.contains("a line of 500009 bytes"), "{text}");
    assert_eq!(slice.front[0].bytes, 500_009);
}

/// A stream of numbered lines with an error on every line named.
fn failing(stream: StreamName, count: usize, errors: &[usize]) -> (StreamName, Vec<u8>) {
    let line = |n| {
        let kind = if errors.contains(&n) {
            "error: item"
        } else {
            "item"
        };
        format!("{kind} {n} of {stream:?}\n")
    };
    let text: String = (1..=count).map(line).collect();
    (stream, text.into_bytes())
}

#[test]
fn what_failed_in_the_middle_is_found_and_every_stretch_exact() {
    let chunks = [
        failing(StreamName::Stdout, 100_000, &[50_000]),
        failing(StreamName::Stderr, 60_000, &[20_000, 40_000]),
        failing(StreamName::Stdout, 100_000, &[]),
    ];
    let (_dir, journal) = journal(&chunks);
    let slice = read_rows(&journal, &query(StreamSet::OUTPUT), None).unwrap();
    let (rows, left) = count(&slice);
    assert_eq!(rows + left, 260_000);
    assert_eq!(bytes(&slice), journal.end().unwrap());
    assert_eq!(slice.unsearched, 0);
    let errors: Vec<&str> = shown(&slice)
        .map(|row| row.text.as_str())
        .filter(|text| text.starts_with("error"))
        .collect();
    assert_eq!(
        errors,
        [
            "error: item 50000 of Stdout",
            "error: item 20000 of Stderr",
            "error: item 40000 of Stderr"
        ]
    );
}

#[test]
fn a_search_beyond_its_bounds_is_reported() {
    let (_dir, journal) = journal(&[
        failing(StreamName::Stdout, 2_000_000, &[1_000_000]),
        failing(StreamName::Stdout, 100_000, &[90_000]),
    ]);
    let slice = read_rows(&journal, &query(StreamSet::OUTPUT), None).unwrap();
    assert!(slice.unsearched > 0);
    let (rows, left) = count(&slice);
    assert_eq!(rows + left, 2_100_000);
    assert_eq!(bytes(&slice), journal.end().unwrap());
    let is_newest = |row: &OutputRow| row.text == "error: item 90000 of Stdout";
    assert!(shown(&slice).any(is_newest));
}

#[test]
fn a_huge_redraw_shows_its_last_state() {
    let mut bytes: Vec<u8> = (0..40_000)
        .flat_map(|n| format!("\rat {n:>7}").into_bytes())
        .collect();
    bytes.extend_from_slice(b"\rdone at 40000\n");
    let (_dir, journal) = journal(&[(StreamName::Stdout, bytes)]);
    let slice = read_rows(&journal, &query(StreamSet::OUTPUT), None).unwrap();
    assert_eq!(slice.front[0].text, "done at 40000");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// At any split point of the input, in any encoding, lines decode whole.
    #[test]
    fn decoding_never_splits_a_character(
        lines in prop::collection::vec("[a-z世界日本あいう]{0,20}", 1..30),
        cuts in prop::collection::vec(1_usize..7, 1..200),
        label in prop::sample::select(vec!["utf-8", "gbk", "gb18030", "shift_jis", "utf-16le"]),
    ) {
        let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
        let bytes = encoded(label, &text);
        let mut chunks = Vec::new();
        let mut rest = bytes.as_slice();
        for cut in cuts.iter().cycle() {
            if rest.is_empty() {
                break;
            }
            let (piece, later) = rest.split_at((*cut).min(rest.len()));
            chunks.push((StreamName::Stdout, piece.to_vec()));
            rest = later;
        }
        let (_dir, journal) = journal(&chunks);
        let encoding = encoding_for_label(label).unwrap();
        let slice = read_rows(&journal, &query(StreamSet::OUTPUT), Some(encoding)).unwrap();
        let shown: Vec<&str> = slice.front.iter().map(|row| row.text.as_str()).collect();
        prop_assert_eq!(shown, lines);
    }
}

fn encoded(label: &str, text: &str) -> Vec<u8> {
    if label == "utf-16le" {
        return text.encode_utf16().flat_map(u16::to_le_bytes).collect();
    }
    let encoding = encoding_rs::Encoding::for_label(label.as_bytes()).unwrap();
    let (bytes, _, lossy) = encoding.encode(text);
    assert!(!lossy, "{label} cannot spell {text}");
    bytes.into_owned()
}

/// A marker for a line or two costs more than they do.
#[test]
fn lines_between_failures_that_are_close_are_fetched() {
    let errors: Vec<usize> = (50_000..50_140).step_by(2).collect();
    let (_dir, journal) = journal(&[failing(StreamName::Stdout, 100_000, &errors)]);
    let slice = read_rows(&journal, &query(StreamSet::OUTPUT), None).unwrap();
    let short: Vec<&HiddenLines> = hidden(&slice).filter(|hidden| hidden.lines <= 3).collect();
    assert!(short.is_empty(), "{short:?}");
    let (rows, left) = count(&slice);
    assert_eq!(rows + left, 100_000);
    assert_eq!(bytes(&slice), journal.end().unwrap());
}
