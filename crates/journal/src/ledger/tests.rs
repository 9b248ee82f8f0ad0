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
            let (records, next) = reader.read(LedgerCursor(from as u64), limit).unwrap();
            let until = (from + limit).min(times.len());
            let got: Vec<LedgerEntry> = records.into_iter().map(|record| record.entry).collect();
            assert_eq!(got, entries[from..until]);
            assert_eq!(next, LedgerCursor(until as u64));
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
    let (records, _) = ledger.reader().read(LedgerCursor(0), 10).unwrap();
    assert_eq!(records[0].seq, 2);
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
        let (records, after) = ledger.reader().read(next, 10).unwrap();
        let got: Vec<&LedgerEntry> = records.iter().map(|record| &record.entry).collect();
        assert_eq!(got, [entry]);
        next = after;
        assert_eq!(ledger.reader().read(next, 10).unwrap(), (Vec::new(), next));
    }
    // It parses no entry twice: only a new reader notices that one was changed meanwhile.
    ledger.append(&entry(3 * DAY_S + 1)).unwrap();
    let path = dir.path().join("2.seg");
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, text.replacen("echo hi", "echo ho", 1)).unwrap();
    assert_eq!(ledger.reader().read(next, 10).unwrap().0.len(), 1);
    let new_reader = LedgerReader::open(dir.path());
    assert_eq!(new_reader.read(next, 10).unwrap().0.len(), 0);
}
