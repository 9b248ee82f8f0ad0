use std::collections::BTreeMap;
use std::os::fd::AsFd as _;

use ostler_journal::{OpenLineMode, OutputWriter, SegmentLimits};
use ostler_model::StreamName;
use proptest::prelude::*;

use super::*;
use crate::{ExcerptBudget, ExcerptInput, excerpt};

const STREAMS: [StreamName; 2] = [StreamName::Stdout, StreamName::Stderr];

fn show(rows: Vec<OutputRow>) -> Vec<String> {
    excerpt(
        ExcerptInput::from_rows(rows),
        ExcerptBudget::new(usize::MAX, usize::MAX),
    )
    .blocks
}

fn read(journal: &Journal, from: Cursor, (chars, unfinished): (usize, OpenLineMode)) -> TextPage {
    let reader = PageReader {
        journal,
        query: LineQuery {
            from: Some(from),
            unfinished,
            ..LineQuery::default()
        },
        encoding: None,
        chars,
        render_rows: &show,
    };
    let page = reader.read_page().unwrap();
    let text = page.blocks.join("\n");
    assert!(text.chars().count() <= chars, "{} of {chars}", text.len());
    page
}

/// What a reader has received of each stream.
#[derive(Debug, Default)]
struct Walker {
    at: Cursor,
    received: BTreeMap<String, Vec<String>>,
    gone: Vec<(u64, u64)>,
}

impl Walker {
    /// Reads pages until the end; unfinished rows are checked and discarded.
    fn walk(&mut self, journal: &Journal, chars: usize, unfinished: OpenLineMode) {
        loop {
            let page = read(journal, self.at, (chars, unfinished));
            self.gone
                .extend(page.slice.gap.map(|gap| (gap.from, gap.to)));
            for row in &page.slice.front {
                // The newline counts.
                let is_over = row.bytes > row.text.len() as u64;
                let lines = self
                    .received
                    .entry(format!("{:?}", row.stream))
                    .or_default();
                if is_over || unfinished == OpenLineMode::Final {
                    lines.push(row.text.clone());
                }
            }
            let more = page.remaining_lines > 0;
            assert!(!more || page.next > self.at, "it does not go on: {page:?}");
            self.at = page.next;
            if !more {
                return;
            }
        }
    }

    fn of(&self, stream: StreamName) -> Vec<String> {
        let rows = self.received.get(&format!("{stream:?}"));
        rows.cloned().unwrap_or_default()
    }
}

/// Chunks of numbered lines of two streams, cut at arbitrary positions.
fn chunks() -> impl Strategy<Value = Vec<(usize, Vec<u8>)>> {
    let chunk = (0_usize..2, 1_usize..60, 0_usize..90);
    prop::collection::vec(chunk, 1..80).prop_map(|pieces| {
        let mut pending = [Vec::new(), Vec::new()];
        let mut numbers = [0, 0];
        let mut chunks = Vec::new();
        for (stream, bytes, width) in pieces {
            while pending[stream].len() < bytes {
                numbers[stream] += 1;
                let number = numbers[stream];
                let line = format!("line {number} {}\n", "x".repeat(width));
                pending[stream].extend(line.into_bytes());
            }
            let rest = pending[stream].split_off(bytes);
            chunks.push((stream, std::mem::replace(&mut pending[stream], rest)));
        }
        chunks
    })
}

fn lines(chunks: &[(usize, Vec<u8>)], stream: usize) -> Vec<String> {
    let bytes = chunks.iter().filter(|(of, _)| *of == stream);
    let bytes: Vec<u8> = bytes.flat_map(|(_, bytes)| bytes.clone()).collect();
    let text = String::from_utf8(bytes).unwrap();
    text.lines().map(str::to_owned).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Every line comes exactly once and in the order of its stream, for any page size and any
    /// position of the command at the time of reading.
    #[test]
    fn pages_hold_every_line_once(
        chunks in chunks(),
        chars in 200_usize..900,
        looks in prop::collection::vec(any::<bool>(), 80),
    ) {
        let dir = tempfile::tempdir().unwrap();
        let handle = std::fs::File::open(dir.path()).unwrap();
        let mut writer = OutputWriter::create(handle.as_fd(), SegmentLimits::default()).unwrap();
        let journal = Journal::open(dir.path()).unwrap();
        let mut walker = Walker::default();
        for ((at_ns, (stream, bytes)), look) in (1..).zip(&chunks).zip(looks) {
            writer.append(at_ns, STREAMS[*stream], bytes).unwrap();
            if look {
                walker.walk(&journal, chars, OpenLineMode::Preview);
            }
        }
        walker.walk(&journal, chars, OpenLineMode::Final);
        walker.walk(&journal, chars, OpenLineMode::Final);
        for (index, stream) in STREAMS.into_iter().enumerate() {
            prop_assert_eq!(walker.of(stream), lines(&chunks, index));
        }
        prop_assert!(walker.gone.is_empty());
    }

    /// Output that was cleared before it was read is reported as a gap; the rest comes once.
    #[test]
    fn what_was_cleared_is_a_gap(chunks in chunks(), chars in 200_usize..900, cut in 0_usize..80) {
        let dir = tempfile::tempdir().unwrap();
        let handle = std::fs::File::open(dir.path()).unwrap();
        let mut writer = OutputWriter::create(handle.as_fd(), SegmentLimits::default()).unwrap();
        let journal = Journal::open(dir.path()).unwrap();
        let cut = cut % chunks.len();
        for ((at_ns, place), (stream, bytes)) in (1..).zip(0..).zip(&chunks) {
            if place == cut {
                journal.clear().unwrap();
            }
            writer.append(at_ns, STREAMS[*stream], bytes).unwrap();
        }
        let mut walker = Walker::default();
        walker.walk(&journal, chars, OpenLineMode::Final);
        let cleared: usize = chunks[..cut].iter().map(|(_, bytes)| bytes.len()).sum();
        let gap = (cleared > 0).then_some((0, cleared as u64));
        prop_assert_eq!(walker.gone, gap.into_iter().collect::<Vec<_>>());
        for (index, stream) in STREAMS.into_iter().enumerate() {
            let all = lines(&chunks[cut..], index);
            prop_assert_eq!(walker.received.get(&format!("{stream:?}")).cloned().unwrap_or_default(), all);
        }
    }
}

#[test]
fn a_line_longer_than_a_page_has_a_page_of_its_own() {
    let dir = tempfile::tempdir().unwrap();
    let handle = std::fs::File::open(dir.path()).unwrap();
    let mut writer = OutputWriter::create(handle.as_fd(), SegmentLimits::default()).unwrap();
    let long = format!("first\n{}\nlast\n", "x".repeat(100_000));
    writer
        .append(1, StreamName::Stdout, long.as_bytes())
        .unwrap();
    let journal = Journal::open(dir.path()).unwrap();
    let mut walker = Walker::default();
    walker.walk(&journal, 2_000, OpenLineMode::Final);
    let lines = walker.of(StreamName::Stdout);
    assert_eq!(lines.len(), 3, "{lines:?}");
    assert!(lines[1].contains("a line of 100001 bytes"), "{}", lines[1]);
    assert_eq!((lines[0].as_str(), lines[2].as_str()), ("first", "last"));
}
