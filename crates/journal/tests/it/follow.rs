//! Following: everything once, in order, without unnecessary wake-ups.

use std::os::fd::AsFd;
use std::time::Duration;

use ostler_journal::{
    Gap, Journal, JournalEnd, JournalFollower, MemorySegment, MemorySlot, OutputWriter,
    SegmentLimits, StreamSet,
};
use ostler_model::{Cursor, StreamName};
use tokio::sync::watch;

/// A timeout that only a hang reaches.
const PATIENCE: Duration = Duration::from_secs(30);

async fn within<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, future)
        .await
        .expect("no hang")
}

fn writer(dir: &std::path::Path) -> OutputWriter {
    let handle = std::fs::File::open(dir).unwrap();
    OutputWriter::create(
        handle.as_fd(),
        SegmentLimits {
            segment_bytes: 4096,
        },
    )
    .unwrap()
}

#[tokio::test]
async fn a_follower_gets_everything_once_and_ends() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = writer(dir.path());
    let (marks, seen) = watch::channel(JournalEnd::default());
    let journal = Journal::open(dir.path()).unwrap();
    let follow = |page_bytes| {
        let mut follower = JournalFollower::new(journal.clone(), Cursor::START, seen.clone())
            .page_bytes(page_bytes);
        async move {
            let mut all = Vec::new();
            while let Some(page) = within(follower.next()).await.unwrap() {
                all.extend(page.chunks.into_iter().flat_map(|chunk| chunk.bytes));
            }
            assert_eq!(within(follower.next()).await.unwrap(), None);
            all
        }
    };
    let mut want = Vec::new();
    let write = async {
        for number in 0..2_000 {
            let line = format!("line {number} {}\n", "x".repeat(number % 200));
            let end = writer
                .append(
                    i64::try_from(number).unwrap(),
                    StreamName::Stdout,
                    line.as_bytes(),
                )
                .unwrap();
            want.extend_from_slice(line.as_bytes());
            marks.send_replace(JournalEnd {
                end,
                finished: false,
            });
            if number % 7 == 0 {
                tokio::task::yield_now().await;
            }
        }
        let end = writer.end();
        marks.send_replace(JournalEnd {
            end,
            finished: true,
        });
    };
    let (one, two, ()) = tokio::join!(follow(u64::MAX), follow(100), write);
    let differs = |got: &[u8]| got.iter().zip(&want).position(|(one, two)| one != two);
    assert_eq!((one.len(), differs(&one)), (want.len(), None));
    assert_eq!((two.len(), differs(&two)), (want.len(), None));
}

#[tokio::test]
async fn a_follower_of_one_stream_sleeps_through_the_other() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = writer(dir.path());
    let (marks, seen) = watch::channel(JournalEnd::default());
    let journal = Journal::open(dir.path()).unwrap();
    let mut follower = JournalFollower::new(journal.clone(), Cursor::START, seen)
        .streams(StreamSet::only(StreamName::Stderr));
    let end = writer.append(1, StreamName::Stdout, b"out\n").unwrap();
    marks.send_replace(JournalEnd {
        end,
        finished: false,
    });
    // The wait is cancelled and nothing is lost.
    assert!(
        tokio::time::timeout(Duration::from_millis(20), follower.next())
            .await
            .is_err()
    );
    let end = writer.append(2, StreamName::Stderr, b"err\n").unwrap();
    marks.send_replace(JournalEnd {
        end,
        finished: false,
    });
    let page = within(follower.next()).await.unwrap().unwrap();
    assert_eq!(page.chunks.len(), 1);
    assert_eq!(
        (page.chunks[0].offset, page.chunks[0].bytes.as_slice()),
        (4, &b"err\n"[..])
    );
    journal.clear().unwrap();
    let end = writer.append(3, StreamName::Stderr, b"more\n").unwrap();
    marks.send_replace(JournalEnd {
        end,
        finished: true,
    });
    let page = within(follower.next()).await.unwrap().unwrap();
    assert_eq!(page.gap, None);
    assert_eq!(within(follower.next()).await.unwrap(), None);
    let (_marks, seen) = watch::channel(JournalEnd {
        end,
        finished: true,
    });
    let mut late = JournalFollower::new(journal, Cursor::START, seen);
    let page = within(late.next()).await.unwrap().unwrap();
    assert_eq!(
        (page.gap, page.chunks.len()),
        (Some(Gap { from: 0, to: 8 }), 1)
    );
}

#[tokio::test]
async fn a_follower_ends_when_the_writer_is_not_observed() {
    let dir = tempfile::tempdir().unwrap();
    let (marks, seen) = watch::channel(JournalEnd::default());
    let mut follower =
        JournalFollower::new(Journal::open(dir.path()).unwrap(), Cursor::START, seen);
    drop(marks);
    assert_eq!(within(follower.next()).await.unwrap(), None);
}

/// The disk fills up while a follower reads: a reader that was open before continues in memory, and
/// output that no file holds at the end is reported as a gap, not as the end.
#[tokio::test]
async fn a_follower_continues_in_memory_created_later_and_gets_the_gap() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = writer(dir.path());
    writer.append(1, StreamName::Stdout, b"disk\n").unwrap();
    let slot = MemorySlot::default();
    let journal = Journal::open(dir.path())
        .unwrap()
        .with_memory_slot(slot.clone());
    let (marks, seen) = watch::channel(JournalEnd {
        end: 5,
        finished: false,
    });
    let mut follower = JournalFollower::new(journal, Cursor::START, seen);
    let first = within(follower.next()).await.unwrap().unwrap();
    assert_eq!(first.chunks[0].bytes, b"disk\n");
    let mut memory = MemorySegment::after(&writer).unwrap();
    memory.append(2, StreamName::Stdout, b"memory\n").unwrap();
    slot.set(memory.as_fd().try_clone_to_owned().unwrap());
    marks.send_replace(JournalEnd {
        end: 12 + 100,
        finished: true,
    });
    let second = within(follower.next()).await.unwrap().unwrap();
    assert_eq!(second.chunks[0].bytes, b"memory\n");
    let third = within(follower.next()).await.unwrap().unwrap();
    assert_eq!(third.gap, Some(Gap { from: 12, to: 112 }));
    assert!(third.chunks.is_empty());
    assert_eq!(within(follower.next()).await.unwrap(), None);
}
