use super::*;
use ostler_journal::{OutputWriter, SegmentLimits, retention};
use ostler_model::StreamName;
use proptest::prelude::*;
use std::os::fd::AsFd;
use tempfile::TempDir;

/// Output: whole characters, parts of them, and invalid bytes.
fn pieces() -> impl Strategy<Value = Vec<Vec<u8>>> {
    let piece = prop_oneof![
        "[a-zé漢🦀]{1,40}".prop_map(String::into_bytes),
        proptest::collection::vec(any::<u8>(), 1..20),
        Just(vec![0xF0, 0x9F]),
        Just(vec![0xE6, 0xBC]),
    ];
    proptest::collection::vec(piece, 0..40)
}

struct Model {
    bytes: Vec<u8>,
    start: usize,
    finished: bool,
}

impl Model {
    /// The answer, the slow way.
    fn page(&self, query: TerminalPageQuery) -> (Vec<u8>, usize, bool) {
        let requested = query
            .offset
            .map_or(self.start, |it| usize::try_from(it).unwrap());
        let from = requested.clamp(self.start, self.bytes.len());
        let limit = query
            .limit
            .map_or(usize::MAX, |it| usize::try_from(it).unwrap());
        let rest = &self.bytes[from..];
        let mut taken = 0;
        while taken < rest.len() {
            let length = self.character(&rest[taken..]);
            if length == 0 || limit == 0 || (taken > 0 && taken + length > limit) {
                break;
            }
            taken += length;
        }
        (rest[..taken].to_vec(), from, requested < self.start)
    }

    /// The length of the first character or invalid byte; 0 where the rest may still come.
    fn character(&self, bytes: &[u8]) -> usize {
        for length in 1..=bytes.len().min(4) {
            match std::str::from_utf8(&bytes[..length]) {
                Ok(_) => return length,
                // An invalid sequence ends before what shows that it is one.
                Err(error) if error.error_len().is_some() => return length.max(2) - 1,
                Err(_) => {}
            }
        }
        if self.finished { bytes.len() } else { 0 }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    #[test]
    fn pages_are_those_of_the_model(
        pieces in pieces(),
        view in 1_u64..400,
        requested in proptest::collection::vec((proptest::option::of(0_u64..900), proptest::option::of(0_u64..60)), 1..12),
        cleared in proptest::option::of(0_usize..40),
        finished in any::<bool>(),
    ) {
        let dir = TempDir::new().unwrap();
        let handle = std::fs::File::open(dir.path()).unwrap();
        let mut writer = OutputWriter::create(handle.as_fd(), SegmentLimits::default()).unwrap();
        let journal = Journal::open(dir.path()).unwrap();
        let mut bytes = Vec::new();
        let mut dropped = 0;
        for (number, piece) in pieces.iter().enumerate() {
            writer.append(1, StreamName::Pty, piece).unwrap();
            bytes.extend_from_slice(piece);
            if cleared == Some(number) {
                dropped = usize::try_from(journal.clear().unwrap().to).unwrap();
            }
        }
        let start = bytes.len().saturating_sub(usize::try_from(view).unwrap()).max(dropped);
        let model = Model { bytes, start, finished };
        let reach = ViewWindow { view_bytes: view, dropped_to: 0, finished };
        for (offset, limit) in requested {
            let query = TerminalPageQuery { offset, limit };
            let page = read(&journal, query, reach).unwrap();
            let (data, from, truncated) = model.page(query);
            prop_assert_eq!(&page.data, &data, "{:?} of {:?}", query, &model.bytes);
            prop_assert_eq!(page.offset, from as u64);
            prop_assert_eq!(page.next_offset, (from + data.len()) as u64);
            prop_assert_eq!(page.start_offset, start as u64);
            prop_assert_eq!(page.end_offset, model.bytes.len() as u64);
            prop_assert_eq!(page.truncated, truncated);
        }
    }

}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]
    #[test]
    fn going_on_yields_every_byte_once(pieces in pieces(), limit in 1_u64..9) {
        let dir = TempDir::new().unwrap();
        let handle = std::fs::File::open(dir.path()).unwrap();
        let mut writer = OutputWriter::create(handle.as_fd(), SegmentLimits::default()).unwrap();
        let journal = Journal::open(dir.path()).unwrap();
        let (mut printed, mut seen, mut at) = (Vec::new(), Vec::new(), 0);
        let last = pieces.len();
        for (number, piece) in pieces.into_iter().map(Some).chain([None]).enumerate() {
            if let Some(piece) = piece {
                writer.append(1, StreamName::Pty, &piece).unwrap();
                printed.extend(piece);
            }
            let finished = number == last;
            let reach = ViewWindow { view_bytes: u64::MAX, dropped_to: 0, finished };
            loop {
                let query = TerminalPageQuery { offset: Some(at), limit: Some(limit) };
                let page = read(&journal, query, reach).unwrap();
                prop_assert_eq!(page.offset, at);
                at = page.next_offset;
                if page.data.is_empty() {
                    break;
                }
                seen.extend(page.data);
            }
        }
        prop_assert_eq!(seen, printed);
    }
}

fn written(bytes: &[u8]) -> (TempDir, Journal) {
    let dir = TempDir::new().unwrap();
    let handle = std::fs::File::open(dir.path()).unwrap();
    let mut writer = OutputWriter::create(handle.as_fd(), SegmentLimits::default()).unwrap();
    writer.append(1, StreamName::Pty, bytes).unwrap();
    let journal = Journal::open(dir.path()).unwrap();
    (dir, journal)
}

#[test]
fn a_dropped_middle_is_behind_the_view() {
    let dir = TempDir::new().unwrap();
    let handle = std::fs::File::open(dir.path()).unwrap();
    const STEP: usize = 1024;
    let limits = SegmentLimits {
        segment_bytes: 4096,
    };
    let mut writer = OutputWriter::create(handle.as_fd(), limits).unwrap();
    for _ in 0..40 {
        writer.append(1, StreamName::Pty, &[b'x'; STEP]).unwrap();
    }
    let policy = retention::OutputPolicy {
        head_bytes: STEP as u64,
        tail_bytes: STEP as u64,
    };
    let gone = retention::trim(dir.path(), policy).unwrap().expect("some");
    assert!(gone.from > 0);
    let journal = Journal::open(dir.path()).unwrap();
    // Known by an event or met while reading: the answer is the same.
    for dropped_to in [0, gone.to] {
        let reach = ViewWindow {
            view_bytes: 60 * STEP as u64,
            dropped_to,
            finished: false,
        };
        let query = TerminalPageQuery {
            offset: Some(gone.from + 5),
            limit: None,
        };
        let page = read(&journal, query, reach).unwrap();
        assert_eq!((page.offset, page.start_offset), (gone.to, gone.to));
        assert!(page.truncated);
        assert_eq!(page.data.len() as u64, 40 * STEP as u64 - gone.to);
    }
}

#[test]
fn a_large_limit_is_bounded_by_the_view() {
    let (_dir, journal) = written(&[b'x'; 5_000]);
    let reach = ViewWindow {
        view_bytes: 1_000,
        dropped_to: 0,
        finished: false,
    };
    let query = TerminalPageQuery {
        offset: Some(0),
        limit: Some(u64::MAX),
    };
    let page = read(&journal, query, reach).unwrap();
    assert_eq!((page.data.len(), page.start_offset), (1_000, 4_000));
    let beyond = TerminalPageQuery {
        offset: Some(9_000),
        limit: None,
    };
    let page = read(&journal, beyond, reach).unwrap();
    assert_eq!((page.next_offset, page.data.len()), (5_000, 0));
    assert!(!page.truncated);
}
