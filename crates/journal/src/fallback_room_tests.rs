//! Room on the disk that comes back, and attempts that end while there is none.

use super::*;

/// The disk is checked before anything is overwritten, and used before anything is lost.
#[test]
fn room_that_nobody_tells_of_is_found_in_time() {
    let mut lab = Lab::new(crate::writer::SEGMENT_BYTES);
    lab.append(100, 10, false);
    lab.fill(0, false);
    lab.append(1_000_000, 100, false);
    assert!(!lab.writer.is_on_disk());
    assert_eq!(overwritten(&lab.writer), 0);
    lab.make_room();
    lab.append(5_000_000, 100, true);
    assert!(lab.writer.is_on_disk());
    assert_eq!(lab.missing, []);
    lab.check();
    assert_eq!(lab.gaps, []);
    lab.check_files();
}

#[test]
fn a_disk_that_says_room_and_refuses_is_not_written_to_over_and_over() {
    let mut lab = Lab::new(crate::writer::SEGMENT_BYTES);
    lab.fill(0, true);
    lab.append(400_000, 100, false);
    assert!(!lab.writer.is_on_disk());
    // An attempt would succeed now.
    lab.make_room();
    lab.append(400_000, 100, false);
    assert!(!lab.writer.is_on_disk(), "it is tried on schedule only");
    lab.look();
    assert!(lab.writer.is_on_disk());
    lab.check();
    lab.check_files();
}

/// The writer is killed together with everyone who knew its offset.
#[test]
fn offsets_that_only_memory_had_are_not_used_again() {
    for (bytes, returns) in [(5_000_000, false), (10, false), (10, true)] {
        let mut lab = Lab::new(crate::writer::SEGMENT_BYTES);
        lab.append(100, 10, false);
        lab.fill(0, false);
        lab.append(bytes, 10, false);
        lab.make_room();
        if returns {
            lab.look();
        }
        let handle = std::fs::File::open(lab.dir.path()).expect("it opens");
        for _ in 0..2 {
            let (next, error) = FallbackWriter::resume_after(handle.as_fd(), lab.limits, 0);
            assert!(error.is_none(), "{error:?}");
            let more = if returns { 0 } else { 256 * 1024 };
            let ends = lab.writer.end()..=lab.writer.end() + more;
            assert!(ends.contains(&next.end()), "{ends:?}: {}", next.end());
        }
    }
}
