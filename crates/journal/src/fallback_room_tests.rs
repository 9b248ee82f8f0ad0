//! Free space that returns, and attempts that end while there is none.

use super::*;

/// The disk is checked before anything is overwritten, and used before anything is lost.
#[test]
fn free_space_without_a_notification_is_found_in_time() {
    let mut fixture = FallbackFixture::new(crate::writer::SEGMENT_BYTES);
    fixture.append(100, 10, false);
    fixture.fill(0, false);
    fixture.append(1_000_000, 100, false);
    assert!(!fixture.writer.is_on_disk());
    assert_eq!(overwritten(&fixture.writer), 0);
    fixture.make_room();
    fixture.append(5_000_000, 100, true);
    assert!(fixture.writer.is_on_disk());
    assert_eq!(fixture.missing, []);
    fixture.check();
    assert_eq!(fixture.gaps, []);
    fixture.check_files();
}

#[test]
fn a_disk_that_says_room_and_refuses_is_not_written_to_over_and_over() {
    let mut fixture = FallbackFixture::new(crate::writer::SEGMENT_BYTES);
    fixture.fill(0, true);
    fixture.append(400_000, 100, false);
    assert!(!fixture.writer.is_on_disk());
    // An attempt would succeed now.
    fixture.make_room();
    fixture.append(400_000, 100, false);
    assert!(!fixture.writer.is_on_disk(), "it is tried on schedule only");
    fixture.look();
    assert!(fixture.writer.is_on_disk());
    fixture.check();
    fixture.check_files();
}

/// The writer is killed together with everyone who knew its offset.
#[test]
fn offsets_that_only_memory_had_are_not_used_again() {
    for (bytes, returns) in [(5_000_000, false), (10, false), (10, true)] {
        let mut fixture = FallbackFixture::new(crate::writer::SEGMENT_BYTES);
        fixture.append(100, 10, false);
        fixture.fill(0, false);
        fixture.append(bytes, 10, false);
        fixture.make_room();
        if returns {
            fixture.look();
        }
        let handle = std::fs::File::open(fixture.dir.path()).expect("it opens");
        for _ in 0..2 {
            let (next, error) = FallbackWriter::resume_after(handle.as_fd(), fixture.limits, 0);
            assert!(error.is_none(), "{error:?}");
            let more = if returns { 0 } else { 256 * 1024 };
            let ends = fixture.writer.end()..=fixture.writer.end() + more;
            assert!(ends.contains(&next.end()), "{ends:?}: {}", next.end());
        }
    }
}
