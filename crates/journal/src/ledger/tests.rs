use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use ostler_model::{Event, ExecutionId, Owner, Principal, Timestamp};

use super::*;
use crate::error::WriteError;

const DAY_S: i64 = 24 * 60 * 60;

fn entry(at: i64) -> LedgerEntry {
    LedgerEntry {
        at: Timestamp::from_second(at).unwrap(),
        execution: Some(ExecutionId::mint()),
        by: Owner {
            principal: Principal::unix(0),
            project: None,
            session: None,
            task: None,
            channel: ostler_model::RequestChannel::Local,
        },
        event: Event::Started { attempt: 1, pid: 7 },
        detail: BTreeMap::from([("command".to_owned(), "echo hi".into())]),
    }
}

fn filled(dir: &Path, times: &[i64]) -> Vec<LedgerEntry> {
    let mut ledger = Ledger::open(dir).unwrap();
    let entries: Vec<LedgerEntry> = times.iter().map(|&at| entry(at)).collect();
    for (seq, entry) in entries.iter().enumerate() {
        assert_eq!(ledger.append(entry).unwrap(), ledger.end() - 1, "{seq}");
    }
    entries
}

#[test]
fn what_was_appended_is_read_from_every_cursor() {
    let dir = tempfile::tempdir().unwrap();
    let times = [0, 10, DAY_S, DAY_S + 1, 3 * DAY_S];
    let entries = filled(dir.path(), &times);
    let reader = LedgerReader::open(dir.path());
    for from in 0..=times.len() {
        for limit in 1..=times.len() {
            let page = reader.read(LedgerCursor(from as u64), limit).unwrap();
            let until = (from + limit).min(times.len());
            let records = page.records.into_iter();
            let got: Vec<LedgerEntry> = records.map(|record| record.entry).collect();
            assert_eq!(got, entries[from..until]);
            assert_eq!(page.next, LedgerCursor(until as u64));
            assert!(page.damaged.is_empty());
        }
    }
    let verified = reader.verify().unwrap();
    assert_eq!((verified.first, verified.end), (0, LedgerCursor(5)));
    assert!(dir.path().join("2.seg").exists());
}

#[test]
fn there_is_one_writer() {
    let dir = tempfile::tempdir().unwrap();
    let held = Ledger::open(dir.path()).unwrap();
    assert!(matches!(
        Ledger::open(dir.path()),
        Err(WriteError::Locked { .. })
    ));
    drop(held);
    Ledger::open(dir.path()).unwrap();
}

#[test]
fn a_torn_tail_is_cut_at_every_byte() {
    let dir = tempfile::tempdir().unwrap();
    let entries = filled(dir.path(), &[0, 1, 2]);
    let path = dir.path().join("0.seg");
    let text = std::fs::read(&path).unwrap();
    for cut in 0..text.len() {
        std::fs::write(&path, &text[..cut]).unwrap();
        let whole = text[..cut]
            .iter()
            .filter(|&&byte| byte == b'\n')
            .count()
            .saturating_sub(1);
        let mut ledger = Ledger::open(dir.path()).unwrap();
        assert_eq!(ledger.end(), whole as u64);
        for entry in &entries[whole..] {
            ledger.append(entry).unwrap();
        }
        assert_eq!(std::fs::read(&path).unwrap(), text, "cut at {cut}");
    }
}

#[test]
fn every_change_breaks_the_chain() {
    let dir = tempfile::tempdir().unwrap();
    filled(dir.path(), &[0, 1, DAY_S, DAY_S]);
    let reader = LedgerReader::open(dir.path());
    let path = dir.path().join("0.seg");
    let text = std::fs::read(&path).unwrap();
    for place in 0..text.len() {
        let mut changed = text.clone();
        changed[place] ^= 1;
        std::fs::write(&path, &changed).unwrap();
        assert!(reader.verify().is_err(), "flip at {place}");
    }
    // A whole entry is missing at the end of a segment that is not the last.
    let last = text[..text.len() - 1]
        .iter()
        .rposition(|&byte| byte == b'\n')
        .unwrap();
    std::fs::write(&path, &text[..=last]).unwrap();
    assert!(matches!(
        reader.verify(),
        Err(VerifyError::Broken { seq: 1, .. })
    ));
    std::fs::write(&path, &text).unwrap();
    reader.verify().unwrap();
}

#[test]
fn expiry_keeps_a_verifiable_chain() {
    let dir = tempfile::tempdir().unwrap();
    filled(dir.path(), &[0, DAY_S, 2 * DAY_S, 100 * DAY_S]);
    let mut ledger = Ledger::open(dir.path()).unwrap();
    let at = |at| Timestamp::from_second(at).unwrap();
    let keep = Duration::from_secs(LEDGER_KEEP_DAYS * 24 * 60 * 60);
    assert_eq!(ledger.expire(at(90 * DAY_S), keep).unwrap(), 0);
    assert_eq!(ledger.expire(at(91 * DAY_S + 1), keep).unwrap(), 2);
    let verified = ledger.reader().verify().unwrap();
    assert_eq!((verified.first, verified.end), (2, LedgerCursor(4)));
    let page = ledger.reader().read(LedgerCursor(0), 10).unwrap();
    assert_eq!((page.records[0].seq, page.damaged), (2, Vec::new()));
    assert_eq!(ledger.append(&entry(101 * DAY_S)).unwrap(), 4);
    // The newest segment stays, whatever its age.
    assert_eq!(ledger.expire(at(900 * DAY_S), keep).unwrap(), 2);
    ledger.reader().verify().unwrap();
}

#[test]
fn what_expires_while_it_is_verified_is_no_break() {
    let dir = tempfile::tempdir().unwrap();
    filled(dir.path(), &[0, DAY_S, 2 * DAY_S, 100 * DAY_S]);
    let mut ledger = Ledger::open(dir.path()).unwrap();
    let reader = LedgerReader::open(dir.path());
    let now = Timestamp::from_second(91 * DAY_S + 1).unwrap();
    let keep = Duration::from_secs(LEDGER_KEEP_DAYS * 24 * 60 * 60);
    let visit = |visited: &mut Vec<u64>, position: reader::ChainPosition<'_>| {
        ledger.expire(now, keep).unwrap();
        visited.push(position.count);
    };
    let (chain, visited) = reader.walk(Vec::new, visit).unwrap();
    assert_eq!((chain.broken, chain.verified.first), (None, 2));
    assert_eq!(visited, [2, 3, 4]);
    // Expiry keeps no older segment.
    filled(dir.path().join("other").as_path(), &[0, DAY_S, 2 * DAY_S]);
    let reader = LedgerReader::open(&dir.path().join("other"));
    let visit = |(): &mut (), _: reader::ChainPosition<'_>| {
        drop(std::fs::remove_file(dir.path().join("other/1.seg")));
    };
    let (chain, ()) = reader.walk(|| (), visit).unwrap();
    assert_eq!(chain.broken, Some((1, "1.seg".to_owned())));
}

#[test]
fn entries_expire_when_a_segment_begins() {
    let dir = tempfile::tempdir().unwrap();
    let mut ledger = Ledger::open(dir.path()).unwrap();
    let at = |at| Timestamp::from_second(at).unwrap();
    let two_days = Duration::from_secs(2 * 24 * 60 * 60);
    ledger.keep_for(two_days, at(0)).unwrap();
    for day in 0..10 {
        ledger.append(&entry(day * DAY_S)).unwrap();
    }
    let verified = ledger.reader().verify().unwrap();
    assert_eq!((verified.first, verified.end), (7, LedgerCursor(10)));
}

#[test]
fn a_read_continues_where_one_ended() {
    let dir = tempfile::tempdir().unwrap();
    let mut ledger = Ledger::open(dir.path()).unwrap();
    let mut next = LedgerCursor(0);
    // A day apart: some begin a new segment.
    let times = [0, 1, DAY_S, DAY_S + 1, DAY_S + 2, 3 * DAY_S];
    let entries: Vec<LedgerEntry> = times.iter().map(|&at| entry(at)).collect();
    for entry in &entries {
        ledger.append(entry).unwrap();
        let page = ledger.reader().read(next, 10).unwrap();
        let got: Vec<&LedgerEntry> = page.records.iter().map(|record| &record.entry).collect();
        assert_eq!(got, [entry]);
        next = page.next;
        let nothing = LedgerPage {
            next,
            ..LedgerPage::default()
        };
        assert_eq!(ledger.reader().read(next, 10).unwrap(), nothing);
    }
    // It parses no entry twice: only a new reader notices that one was changed meanwhile.
    ledger.append(&entry(3 * DAY_S + 1)).unwrap();
    let path = dir.path().join("2.seg");
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, text.replacen("echo hi", "echo ho", 1)).unwrap();
    let from_start = LedgerCursor(0);
    let page = ledger.reader().read(next, 10).unwrap();
    assert_eq!((page.records.len(), page.damaged), (1, Vec::new()));
    let new_reader = LedgerReader::open(dir.path());
    let page = new_reader.read(from_start, 10).unwrap();
    assert_eq!(
        (page.records.len(), bounds(&page.damaged)),
        (6, vec![(5, 5)])
    );
}

/// The first and the last number of each range.
fn bounds(ranges: &[std::ops::Range<u64>]) -> Vec<(u64, u64)> {
    ranges.iter().map(|it| (it.start, it.end - 1)).collect()
}

/// Reads everything, `limit` entries at a time: the numbers of the entries, and the first and last
/// ones of those that are damaged.
fn read_all(dir: &Path, limit: usize) -> (Vec<u64>, Vec<(u64, u64)>) {
    let reader = LedgerReader::open(dir);
    let (mut numbers, mut damaged) = (Vec::new(), Vec::new());
    let mut next = LedgerCursor(0);
    loop {
        let page = reader.read(next, limit).unwrap();
        damaged.extend(bounds(&page.damaged));
        if page.records.is_empty() {
            return (numbers, damaged);
        }
        numbers.extend(page.records.iter().map(|record| record.seq));
        next = page.next;
    }
}

/// Replaces line `line` of the first segment; 0 is the header.
fn replace_line(dir: &Path, line: usize, with: &dyn Fn(&str) -> String) {
    let path = dir.join("0.seg");
    let text = String::from_utf8(std::fs::read(&path).unwrap()).unwrap();
    let lines = text.split_inclusive('\n').enumerate();
    let changed: String = lines
        .map(|(number, text)| {
            if number == line {
                with(text)
            } else {
                text.to_owned()
            }
        })
        .collect();
    std::fs::write(&path, changed).unwrap();
}

#[test]
fn entries_after_a_damaged_line_are_read() {
    let changed = |line: &str| line.replacen("echo hi", "echo ho", 1);
    let no_json = |line: &str| format!("{}\n", "x".repeat(line.len() - 1));
    let removed = |_: &str| String::new();
    let doubled = |line: &str| format!("{line}{line}");
    let inserted = |line: &str| format!("{{}}\n{line}");
    struct Case<'a>(&'a dyn Fn(&str) -> String, &'a [u64], Option<(u64, u64)>);
    let cases = [
        Case(&changed, &[0, 2, 3, 4], Some((1, 1))),
        // Entry 2 cannot be verified without the hash of entry 1.
        Case(&no_json, &[0, 3, 4], Some((1, 2))),
        Case(&removed, &[0, 3, 4], Some((1, 2))),
        Case(&doubled, &[0, 1, 2, 3, 4], None),
        Case(&inserted, &[0, 1, 2, 3, 4], None),
    ];
    for (index, Case(change, numbers, damaged)) in cases.into_iter().enumerate() {
        let dir = tempfile::tempdir().unwrap();
        filled(dir.path(), &[0, 1, 2, 3, 4]);
        replace_line(dir.path(), 2, change);
        let damaged: Vec<_> = damaged.into_iter().collect();
        for limit in 1..=5 {
            let read = read_all(dir.path(), limit);
            assert_eq!(read, (numbers.to_vec(), damaged.clone()), "case {index}");
        }
        // The next writer gives no number twice, and its entries are read too.
        let mut ledger = Ledger::open(dir.path()).unwrap();
        assert_eq!(ledger.append(&entry(5)).unwrap(), 5, "case {index}");
        let (read, _) = read_all(dir.path(), 3);
        assert_eq!(read, [numbers, &[5]].concat(), "case {index}");
    }
}

#[test]
fn a_damaged_header_hides_one_entry_and_no_file_is_removed() {
    let damaged = |line: &str| line.replacen("ostler-ledger", "ostler-ledgeX", 1);
    let dir = tempfile::tempdir().unwrap();
    filled(dir.path(), &[0, 1, 2]);
    replace_line(dir.path(), 0, &damaged);
    assert_eq!(read_all(dir.path(), 2), (vec![1, 2], vec![(0, 0)]));
    let mut ledger = Ledger::open(dir.path()).unwrap();
    assert_eq!(ledger.append(&entry(3)).unwrap(), 3);
    assert!(dir.path().join("0.seg").exists());
    assert_eq!(read_all(dir.path(), 2), (vec![1, 2, 3], vec![(0, 0)]));
    let broken = ledger.reader().verify();
    assert!(matches!(broken, Err(VerifyError::Broken { seq: 0, .. })));
}

#[test]
fn segments_of_which_nothing_can_be_read_keep_their_numbers() {
    let dir = tempfile::tempdir().unwrap();
    filled(dir.path(), &[0, DAY_S, DAY_S + 1, 3 * DAY_S]);
    for (name, text) in [
        ("1.seg", "?\n?\n?\n".to_owned()),
        ("2.seg", "\0".repeat(5_000)),
    ] {
        std::fs::write(dir.path().join(name), text).unwrap();
    }
    let mut ledger = Ledger::open(dir.path()).unwrap();
    assert_eq!(ledger.append(&entry(4 * DAY_S)).unwrap(), 3);
    let mut names: Vec<_> = dir
        .path()
        .read_dir()
        .unwrap()
        .map(|it| it.unwrap().file_name())
        .collect();
    names.sort();
    assert_eq!(names, ["0.seg", "1.seg", "2.seg", "3.seg"]);
    assert_eq!(read_all(dir.path(), 10), (vec![0, 3], vec![(1, 2)]));
}

#[test]
fn a_damaged_last_line_is_reported_with_the_next_entry() {
    let dir = tempfile::tempdir().unwrap();
    let mut ledger = Ledger::open(dir.path()).unwrap();
    for at in 0..3 {
        ledger.append(&entry(at)).unwrap();
    }
    replace_line(dir.path(), 3, &|line| {
        line.replacen("echo hi", "echo ho", 1)
    });
    let reader = ledger.reader();
    let page = reader.read(LedgerCursor(2), 10).unwrap();
    assert_eq!((page.records.len(), page.next), (0, LedgerCursor(2)));
    ledger.append(&entry(3)).unwrap();
    let page = reader.read(page.next, 10).unwrap();
    assert_eq!(
        (page.records[0].seq, bounds(&page.damaged)),
        (3, vec![(2, 2)])
    );
    // Those who continue after it read on.
    let page = reader.read(LedgerCursor(3), 10).unwrap();
    assert_eq!((page.records.len(), page.damaged), (1, Vec::new()));
}

#[test]
fn numbers_that_were_given_again_are_read_once() {
    // An earlier version continued after the last entry in front of the damaged line.
    let dir = tempfile::tempdir().unwrap();
    let whole = tempfile::tempdir().unwrap();
    filled(whole.path(), &[0]);
    let mut ledger = Ledger::open(whole.path()).unwrap();
    for at in [DAY_S, DAY_S + 1] {
        ledger.append(&entry(at)).unwrap();
    }
    filled(dir.path(), &[0, 1, 2, 3]);
    // Its second segment begins with number 1.
    let second = std::fs::read(whole.path().join("1.seg")).unwrap();
    std::fs::write(dir.path().join("1.seg"), second).unwrap();
    replace_line(dir.path(), 2, &|line| {
        line.replacen("echo hi", "echo ho", 1)
    });
    let page = LedgerReader::open(dir.path())
        .read(LedgerCursor(0), 10)
        .unwrap();
    let numbers: Vec<u64> = page.records.iter().map(|record| record.seq).collect();
    assert_eq!((numbers, page.damaged), (vec![0, 1, 2], Vec::new()));
}

#[test]
fn expiry_keeps_a_young_segment_whose_first_line_is_damaged() {
    let dir = tempfile::tempdir().unwrap();
    filled(dir.path(), &[DAY_S, DAY_S + 1, DAY_S + 2, 3 * DAY_S]);
    replace_line(dir.path(), 1, &|line| {
        line.replacen("echo hi", "echo ho", 1)
    });
    let mut ledger = Ledger::open(dir.path()).unwrap();
    let now = Timestamp::from_second(4 * DAY_S).unwrap();
    let week = Duration::from_secs(7 * 24 * 60 * 60);
    assert_eq!(ledger.expire(now, week).unwrap(), 0);
    assert_eq!(read_all(dir.path(), 10), (vec![1, 2, 3], vec![(0, 0)]));
}
