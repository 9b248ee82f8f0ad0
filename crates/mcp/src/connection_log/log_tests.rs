use std::io::Read as _;
use std::os::unix::net::UnixStream;

use rustix::fs::{MemfdFlags, memfd_create};

use super::*;

fn memfd() -> OwnedFd {
    memfd_create("test", MemfdFlags::CLOEXEC).unwrap()
}

fn input(log: &ConnectionLog, text: &[u8]) {
    assert!(matches!(log.add_input(text), Ok(ReadOutcome::Lines(_))));
}

fn reopened(file: &OwnedFd) -> (ConnectionLog, Vec<Range<u64>>) {
    ConnectionLog::open(file.try_clone().unwrap()).unwrap()
}

fn answer(line: u64) -> OutputKind {
    let standing = false;
    OutputKind::Answer { line, standing }
}

#[test]
fn the_next_service_finds_what_is_not_answered() {
    let file = memfd();
    let (log, unsent) = reopened(&file);
    assert!(unsent.is_empty());
    input(&log, b"one\ntwo\nthr");
    let range = log.add_output(answer(0), b"{}\n").unwrap();
    drop(log);
    let (log, unsent) = reopened(&file);
    assert_eq!(unsent, std::slice::from_ref(&range));
    let live = log.with_state(|it| it.unanswered().clone());
    assert_eq!(live.keys().copied().collect::<Vec<_>>(), [1]);
    assert_eq!(live[&1].text, b"two");
    assert_eq!(log.with_state(|it| it.generation()), 2);
    input(&log, b"ee\n");
    let live = log.with_state(|it| it.unanswered().clone());
    assert_eq!(live[&2].text, b"three");
    // What the client has of a line is known to the byte.
    let (ours, mut theirs) = UnixStream::pair().unwrap();
    seek(&file, SeekFrom::Start(range.start)).unwrap();
    rustix::fs::sendfile(&ours, &file, None, 2).unwrap();
    let rest = range.start + 2..range.end;
    assert_eq!(reopened(&file).1, std::slice::from_ref(&rest));
    rustix::fs::sendfile(&ours, &file, None, 1).unwrap();
    assert!(reopened(&file).1.is_empty());
    let mut read = [0; 3];
    theirs.read_exact(&mut read).unwrap();
    assert_eq!(&read, b"{}\n");
}

#[test]
fn a_record_that_is_cut_off_is_none() {
    let file = memfd();
    let (log, _) = reopened(&file);
    input(&log, b"one\n");
    let whole = fstat(&file).unwrap().st_size.cast_unsigned();
    input(&log, b"two and more\n");
    let size = fstat(&file).unwrap().st_size.cast_unsigned();
    for cut in (whole..size).rev() {
        ftruncate(&file, cut).unwrap();
        let (log, _) = reopened(&file);
        assert_eq!(log.with_state(|it| it.unanswered().len()), 1);
        ftruncate(&file, whole).unwrap();
        let zeros = vec![0; usize::try_from(size - whole).unwrap()];
        pwrite(&file, &zeros, whole).unwrap();
    }
}

#[test]
fn a_busy_log_stays_small_and_loses_nothing() {
    let file = memfd();
    let (log, _) = reopened(&file);
    input(&log, b"waits for ever\n");
    let line = [&[b'x'; 1_000][..], b"\n"].concat();
    for number in 1..=8_000 {
        input(&log, &line);
        let range = log.add_output(answer(number), b"{}\n").unwrap();
        seek(&file, SeekFrom::Start(range.end)).unwrap();
        log.compact().unwrap();
    }
    let blocks = fstat(&file).unwrap().st_blocks.cast_unsigned() * 512;
    assert!(blocks < 2 * SHARED_BYTES, "{blocks}");
    let (log, unsent) = reopened(&file);
    assert!(unsent.is_empty());
    let live = log.with_state(|it| it.unanswered().clone());
    assert_eq!(live.len(), 1);
    assert_eq!(live[&0].text, b"waits for ever");
}

#[test]
fn another_file_is_refused() {
    let file = memfd();
    pwrite(&file, &[1; 64], 0).unwrap();
    assert!(ConnectionLog::open(file).is_err());
}

#[test]
fn a_read_that_fills_its_buffer_is_followed_by_a_larger_one() {
    let log = ConnectionLog::in_memory();
    let room = |full: bool| {
        let mut room = 0;
        let read = |bytes: &mut [u8]| {
            room = bytes.len();
            bytes.fill(b' ');
            Ok(if full { room } else { 1 })
        };
        assert!(matches!(log.read_into(read), Ok(ReadOutcome::Lines(_))));
        room
    };
    assert_eq!(room(false), FIRST_READ_BYTES);
    assert_eq!(room(true), FIRST_READ_BYTES);
    assert_eq!(room(true), READ_BYTES);
    assert_eq!(room(true), READ_BYTES);
}

#[test]
fn nothing_is_read_once_it_is_sealed() {
    let log = ConnectionLog::in_memory();
    input(&log, b"one\n");
    assert_eq!(log.seal().len(), 1);
    let filled = log.read_into(|_| panic!("read"));
    assert!(matches!(filled, Ok(ReadOutcome::Sealed)));
}

#[test]
fn fuzz_log() {
    let corpus = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fuzz/log");
    let file = memfd();
    let (log, _) = reopened(&file);
    input(&log, b"one\n{\"id\":1}\ntwo\nthr");
    log.add_output(answer(0), b"{}\n").unwrap();
    let mut whole = vec![0; usize::try_from(rustix::fs::fstat(&file).unwrap().st_size).unwrap()];
    rustix::io::pread(&file, &mut whole, 0).unwrap();
    ostler_fuzz::fuzz(&corpus, vec![whole], |bytes| {
        let file = memfd();
        rustix::io::pwrite(&file, bytes, 0).unwrap();
        if let Ok((log, unsent)) = ConnectionLog::open(file) {
            let end = bytes.len() as u64;
            assert!(
                unsent
                    .iter()
                    .all(|range| range.start <= range.end && range.end <= end)
            );
            input(&log, b"more\n");
            log.compact().unwrap();
        }
    });
}
